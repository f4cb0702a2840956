//! The confinement wrapper: `gatepost __confine --plan-fd N [--own-fd N] [--outer-fd N] -- PROGRAM ARGV0 [ARGUMENTS...]`.
//!
//! It gives up for good what the plan and the reviewed policy do not grant, then becomes PROGRAM. Whatever the server
//! starts goes through it. On macOS `sandbox-exec` does that for it, which was written and never run. It stays clear of the
//! command line's parser, of logs, configuration and threads: it has to be quick, and to be the only thread.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr};
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::process::ExitCode;

use host::confine::{Execution, Parts};
#[cfg(target_os = "linux")]
use rules::confinement::Policy;
use rules::confinement::{MAX_PLAN_BYTES, Plan};

/// The hidden command's name.
const COMMAND: &str = "__confine";
const USAGE: &str = "--plan-fd N [--own-fd N] [--outer-fd N] -- PROGRAM ARGV0 [ARGUMENTS...]";
/// Nothing was executed; the reason stands on standard error.
const REFUSED: u8 = 126;
/// PROGRAM does not exist. The same two numbers as those of shells and `env(1)`.
const NOT_FOUND: u8 = 127;

/// Runs the wrapper if these arguments of the process, its name among them, ask for it. Returns only when it was not
/// asked for, or nothing was executed.
pub(crate) fn run_if_asked(mut arguments: impl Iterator<Item = OsString>, parts: Parts) -> Option<ExitCode> {
    if arguments.nth(1)? != COMMAND {
        return None;
    }
    let code = match become_confined(&arguments.collect::<Vec<_>>(), parts) {
        Ok(never) => match never {},
        Err((code, reason)) => {
            writeln!(stderr(), "gatepost: nothing was executed: {reason}").ok();
            code
        }
    };
    Some(ExitCode::from(code))
}

/// No value of it exists: who succeeds is another program.
enum Never {}

fn become_confined(arguments: &[OsString], parts: Parts) -> Result<Never, (u8, String)> {
    let asked = Asked::parse(arguments).ok_or_else(|| (REFUSED, format!("usage: gatepost {COMMAND} {USAGE}")))?;
    for number in [asked.own_fd, asked.outer_fd].into_iter().flatten() {
        host::confine::close_on_execution(number).map_err(refused("a program's descriptor"))?;
    }
    let plan = host::memfile::take_sealed(asked.plan_fd, MAX_PLAN_BYTES).map_err(refused("the plan's descriptor"))?;
    let plan = Plan::parse(&plan).map_err(refused("the plan"))?;
    let execution = confined(&asked, &plan, parts)?;
    let error = execution.run();
    let code = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { REFUSED };
    Err((code, format!("{}: {error}", asked.program.display())))
}

/// This process confined, and what it is to become.
#[cfg(target_os = "linux")]
fn confined(asked: &Asked<'_>, plan: &Plan, parts: Parts) -> Result<Execution, (u8, String)> {
    let policy = Policy::reviewed().map_err(refused("the policy"))?;
    let own = asked.own_fd.map(|number| PathBuf::from(format!("/proc/self/fd/{number}")));
    let confinement = process::confine::prepare_with(&policy, plan, own.as_deref(), parts);
    let confinement = confinement.map_err(refused("confinement"))?;
    let execution = Execution::prepare(asked.program, asked.arguments, |name| plan.strips(name))
        .map_err(refused("the program and its arguments"))?;
    confinement.enforce().map_err(refused("confinement"))?;
    Ok(execution)
}

/// What confines itself and then becomes the program; this process has given up core files alone. Never run.
#[cfg(target_os = "macos")]
fn confined(asked: &Asked<'_>, plan: &Plan, parts: Parts) -> Result<Execution, (u8, String)> {
    if parts != Parts::ALL {
        return Err((REFUSED, "no part of a profile can be left out".to_owned()));
    }
    let own = asked.own_fd.map(host::confine::path_of).transpose().map_err(refused("this program's own file"))?;
    let profile = process::seatbelt::profile(plan, own.as_deref()).map_err(refused("confinement"))?;
    // What it would say itself is another number than that of a shell.
    if !std::path::Path::new(asked.program).exists() {
        return Err((NOT_FOUND, format!("{}: there is no such program", asked.program.display())));
    }
    let (sandbox, words) =
        process::seatbelt::command(&profile, asked.program, asked.arguments).map_err(refused("confinement"))?;
    let execution = Execution::prepare(sandbox, &words, |name| plan.strips(name))
        .map_err(refused("the program and its arguments"))?;
    host::hygiene::harden_self().map_err(refused("no core files"))?;
    Ok(execution)
}

fn refused<E: Display>(what: &'static str) -> impl FnOnce(E) -> (u8, String) {
    move |error| (REFUSED, format!("{what}: {error}"))
}

/// What the arguments after the command's name ask for.
#[derive(Debug, PartialEq, Eq)]
struct Asked<'a> {
    plan_fd: i32,
    /// This very program, executed by this descriptor, so that PROGRAM may be it again: it tries the confinement.
    own_fd: Option<i32>,
    /// What started this program, executed by this descriptor.
    outer_fd: Option<i32>,
    program: &'a OsStr,
    /// From ARGV0 on.
    arguments: &'a [OsString],
}

impl<'a> Asked<'a> {
    fn parse(arguments: &'a [OsString]) -> Option<Self> {
        let (plan_fd, rest) = number("--plan-fd", arguments)?;
        let (own_fd, rest) = number("--own-fd", rest).map_or((None, rest), |(fd, rest)| (Some(fd), rest));
        let (outer_fd, rest) = number("--outer-fd", rest).map_or((None, rest), |(fd, rest)| (Some(fd), rest));
        let [end, program, arguments @ ..] = rest else { return None };
        let is_whole = end == "--" && !arguments.is_empty();
        is_whole.then_some(Self { plan_fd, own_fd, outer_fd, program, arguments })
    }
}

/// The value of the option that stands first, and what stands after it.
fn number<'a>(option: &str, arguments: &'a [OsString]) -> Option<(i32, &'a [OsString])> {
    let [first, number, rest @ ..] = arguments else { return None };
    (first == option).then(|| Some((number.to_str()?.parse().ok()?, rest)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn everything_after_the_program_is_its_own() {
        let arguments = words("--plan-fd 7 -- /bin/sh sh --plan-fd -- -c");
        let asked = Asked::parse(&arguments).unwrap();
        assert_eq!((asked.plan_fd, asked.program), (7, OsStr::new("/bin/sh")));
        assert_eq!(asked.arguments, &arguments[4..]);
        assert_eq!((asked.own_fd, asked.outer_fd), (None, None));
        for (text, own, outer) in [
            ("--plan-fd 7 --own-fd 8 --outer-fd 9 -- /bin/sh sh", Some(8), Some(9)),
            ("--plan-fd 7 --own-fd 8 -- /bin/sh sh", Some(8), None),
            ("--plan-fd 7 --outer-fd 9 -- /bin/sh sh", None, Some(9)),
        ] {
            let arguments = words(text);
            let asked = Asked::parse(&arguments).unwrap();
            assert_eq!((asked.plan_fd, asked.own_fd, asked.outer_fd, asked.arguments.len()), (7, own, outer, 1));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "--plan-fd 7",
            "--plan-fd 7 --",
            "--plan-fd 7 -- /bin/sh",
            "--plan-fd x -- /bin/sh sh",
            "--plan-fd 99999999999 -- /bin/sh sh",
            "--plan-fd=7 -- /bin/sh sh",
            "--plan 7 -- /bin/sh sh",
            "-- /bin/sh sh --plan-fd 7",
            "--plan-fd 7 /bin/sh sh sh",
            "--plan-fd 7 --own-fd -- /bin/sh sh",
            "--plan-fd 7 --own-fd x -- /bin/sh sh",
            "--plan-fd 7 --outer-fd 9 --own-fd 8 -- /bin/sh sh",
            "--own-fd 8 --plan-fd 7 -- /bin/sh sh",
        ] {
            assert_eq!(Asked::parse(&words(text)), None, "{text}");
        }
    }

    #[test]
    fn other_commands_are_left_alone() {
        for text in ["gatepost", "gatepost serve", "gatepost serve __confine", "__confine"] {
            assert!(run_if_asked(words(text).into_iter(), Parts::ALL).is_none(), "{text}");
        }
    }
}
