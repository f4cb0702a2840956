//! The confinement wrapper: `gatepost __confine --plan-fd N -- PROGRAM ARGV0 [ARGUMENTS...]`.
//!
//! It gives up for good what the plan and the reviewed policy do not grant, then becomes PROGRAM. Whatever the server
//! starts goes through it. It stays clear of the command line's parser, of logs, configuration and threads: it has to be
//! quick, and to be the only thread.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr};
use std::process::ExitCode;

use host::confine::Execution;
use rules::confinement::{MAX_PLAN_BYTES, Plan, Policy};

/// The hidden command's name.
const COMMAND: &str = "__confine";
/// Nothing was executed; the reason stands on standard error.
const REFUSED: u8 = 126;
/// PROGRAM does not exist. The same two numbers as those of shells and `env(1)`.
const NOT_FOUND: u8 = 127;

/// Runs the wrapper if these arguments of the process, its name among them, ask for it. Returns only when it was not
/// asked for, or nothing was executed.
pub(crate) fn run_if_asked(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.nth(1)? != COMMAND {
        return None;
    }
    let code = match become_confined(&arguments.collect::<Vec<_>>()) {
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

fn become_confined(arguments: &[OsString]) -> Result<Never, (u8, String)> {
    let asked = Asked::parse(arguments)
        .ok_or_else(|| (REFUSED, format!("usage: gatepost {COMMAND} --plan-fd N -- PROGRAM ARGV0 [ARGUMENTS...]")))?;
    let plan = host::memfile::take_sealed(asked.plan_fd, MAX_PLAN_BYTES).map_err(refused("the plan's descriptor"))?;
    let plan = Plan::parse(&plan).map_err(refused("the plan"))?;
    let policy = Policy::reviewed().map_err(refused("the policy"))?;
    let confinement = process::confine::prepare(&policy, &plan).map_err(refused("confinement"))?;
    let execution = Execution::prepare(asked.program, asked.arguments, |name| plan.strips(name))
        .map_err(refused("the program and its arguments"))?;
    confinement.enforce().map_err(refused("confinement"))?;
    let error = execution.run();
    let code = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { REFUSED };
    Err((code, format!("{}: {error}", asked.program.display())))
}

fn refused<E: Display>(what: &'static str) -> impl FnOnce(E) -> (u8, String) {
    move |error| (REFUSED, format!("{what}: {error}"))
}

/// What the arguments after the command's name ask for.
#[derive(Debug, PartialEq, Eq)]
struct Asked<'a> {
    plan_fd: i32,
    program: &'a OsStr,
    /// From ARGV0 on.
    arguments: &'a [OsString],
}

impl<'a> Asked<'a> {
    fn parse(arguments: &'a [OsString]) -> Option<Self> {
        let [option, number, end, program, arguments @ ..] = arguments else { return None };
        if option != "--plan-fd" || end != "--" || arguments.is_empty() {
            return None;
        }
        Some(Self { plan_fd: number.to_str()?.parse().ok()?, program, arguments })
    }
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
        ] {
            assert_eq!(Asked::parse(&words(text)), None, "{text}");
        }
    }

    #[test]
    fn other_commands_are_left_alone() {
        for text in ["gatepost", "gatepost serve", "gatepost serve __confine", "__confine"] {
            assert!(run_if_asked(words(text).into_iter()).is_none(), "{text}");
        }
    }
}
