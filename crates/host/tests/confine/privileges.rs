//! What a confined process can never get back.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{As, in_own_process, inner_command, is_inner, is_root};
use crate::stage::{Stage, confined_by_policy};

/// The line of `/proc/self/status`, as a program started by this thread sees it.
fn status_of_a_program(program: &Path, field: &str) -> Option<String> {
    let output = Command::new(program).arg("/proc/self/status").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix(field)).map(|value| value.trim_start_matches(':').trim().to_owned())
}

fn no_program_has_a_capability() {
    let stage = Stage::new();
    let cat = Path::new("/bin/cat");
    let of = |field| status_of_a_program(cat, field).unwrap();
    assert_eq!(of("NoNewPrivs"), "0");
    confined_by_policy(&stage, || {
        assert_eq!(of("NoNewPrivs"), "1");
        for field in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(of(field), "0000000000000000", "{field}");
        }
        // Only who has the capability may empty the bounding set; without new privileges it gives nothing.
        if is_root() {
            assert_eq!(of("CapBnd"), "0000000000000000");
        }
        // 2: a filter of system calls is in force.
        assert_eq!(of("Seccomp"), "2");
    });
}

#[test]
fn a_program_of_root_has_no_capability() {
    in_own_process("privileges::a_program_of_root_has_no_capability", As::SameUser, no_program_has_a_capability);
}

#[test]
fn a_program_of_a_user_has_no_capability() {
    in_own_process("privileges::a_program_of_a_user_has_no_capability", As::Unprivileged, no_program_has_a_capability);
}

/// A program of root that whoever executes it becomes root by.
fn program_that_becomes_root() -> &'static str {
    let fit = |path: &&str| {
        fs::metadata(path).is_ok_and(|data| data.uid() == 0 && data.permissions().mode() & libc::S_ISUID != 0)
    };
    ["/usr/bin/passwd", "/usr/bin/su", "/usr/bin/mount"].into_iter().find(fit).unwrap()
}

/// The effective user of a process that ran it, read while the ended process was not waited for.
fn effective_user(program: &str) -> u32 {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let mut command = Command::new(program);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id = WaitId::Pid(Pid::from_child(&child));
    waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    child.wait().unwrap();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    users.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_program_that_becomes_root_does_not() {
    in_own_process("privileges::a_program_that_becomes_root_does_not", As::Unprivileged, || {
        let (stage, program) = (Stage::new(), program_that_becomes_root());
        assert_eq!(effective_user(program), 0, "not confined");
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(confined_by_policy(&stage, || effective_user(program)), own);
    });
}

/// Rust ignores this signal; programs that are executed must not.
#[test]
fn a_broken_pipe_ends_an_executed_program() {
    let name = "privileges::a_broken_pipe_ends_an_executed_program";
    if is_inner() {
        let execution = host::confine::Execution::prepare(
            "/bin/sh".as_ref(),
            &["sh".into(), "-c".into(), "kill -PIPE $$; echo survived".into()],
            |name| name == b"HOST_TEST_INNER",
        );
        panic!("{}", execution.unwrap().run());
    }
    let status = inner_command(name, As::SameUser).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGPIPE));
}

#[test]
fn the_environment_is_passed_on_less_what_is_stripped() {
    let name = "privileges::the_environment_is_passed_on_less_what_is_stripped";
    if is_inner() {
        let stripped = |name: &[u8]| name != b"KEPT" && name != b"EMPTY";
        let execution = host::confine::Execution::prepare("/usr/bin/env".as_ref(), &["another name".into()], stripped);
        panic!("{}", execution.unwrap().run());
    }
    let mut command = inner_command(name, As::SameUser);
    command.env("KEPT", "a=b c").env("EMPTY", "").env("STRIPPED", "x").arg0("gatepost");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // The words of the test that became the program stand before it.
    let (_, own) = text.rsplit_once("... ").unwrap();
    let mut lines: Vec<&str> = own.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["EMPTY=", "KEPT=a=b c"], "{text}");
}
