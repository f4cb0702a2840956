//! What a confined process can never get back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{As, UNUSED_UID, finish, in_own_process, inner_command, is_inner, is_root};
use crate::stage::{Stage, confined_by_policy};

const HELPER: &str = "CONFINE_TEST_HELPER";

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

/// A `cat` that becomes another user when executed: made by root, or by the user of the test for others.
fn helper(directory: &Path) -> PathBuf {
    let path = directory.join("cat");
    fs::copy("/bin/cat", &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn effective_user(program: &Path) -> String {
    let user = status_of_a_program(program, "Uid").unwrap();
    user.split_ascii_whitespace().nth(1).unwrap().to_owned()
}

/// Root makes the program and another user starts it. Without root nobody else's program can be made, so then the
/// kernel's word is taken: [`a_program_of_a_user_has_no_capability`] reads it.
#[test]
fn a_program_that_becomes_root_does_not() {
    if is_inner() {
        let program = PathBuf::from(std::env::var_os(HELPER).unwrap());
        let mut stage = Stage::new();
        stage.plan.readable.push(program.clone());
        assert_eq!(effective_user(&program), "0", "not confined");
        let confined = confined_by_policy(&stage, || effective_user(&program));
        assert_eq!(confined, UNUSED_UID.to_string());
        println!("stayed what it was");
    } else if is_root() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut command = inner_command("privileges::a_program_that_becomes_root_does_not", As::Unprivileged);
        let mut inner = command.env(HELPER, helper(directory.path())).spawn().unwrap();
        let output = finish(&mut inner, Duration::from_secs(60));
        assert!(output.contains("stayed what it was"), "{output}");
    }
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
