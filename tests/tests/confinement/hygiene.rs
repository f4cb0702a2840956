//! What holds a token or a key is closed to its own user's other processes, leaves no core file, and keeps secrets out of swap
//! or says that it does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use gatepost_tests::{LIMIT, wait_until};
use host::hygiene::is_root;
use testkit::daemon::gatepost_binary;

use crate::peers::{home, status};
use crate::stage::UNUSED_UID;

/// What `/proc` says of a process, to its own user.
fn read(pid: u32, file: &str) -> Option<String> {
    let mut command = Command::new("/bin/cat");
    command.arg(format!("/proc/{pid}/{file}")).stderr(Stdio::null());
    if is_root() {
        command.uid(UNUSED_UID).gid(UNUSED_UID);
    }
    let output = command.output().unwrap();
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[track_caller]
fn assert_closed(pid: u32) {
    let core = read(pid, "limits").unwrap();
    let core = core.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"]);
    for file in ["environ", "maps", "mem", "auxv"] {
        assert_eq!(read(pid, file), None, "{file} of process {pid}");
    }
}

#[test]
fn the_daemon_and_the_command_line_are_closed_and_secrets_are_locked() {
    let home = home();
    let daemon = home.serve().unwrap();
    assert_closed(daemon.pid());
    let locked = read(daemon.pid(), "status").unwrap();
    let locked = locked.lines().find_map(|line| line.strip_prefix("VmLck:")?.split_whitespace().next()).unwrap();
    assert!(locked.parse::<u32>().unwrap() >= 8, "{locked} kB are locked");
    assert_eq!(status(&daemon).notes, [] as [String; 0]);

    // It waits for an answer that never comes, with the token in its memory.
    let silent = home.path().join("silent");
    let _listener = UnixListener::bind(&silent).unwrap();
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = home.command();
    command.args(["status", "--socket"]).arg(&silent).arg("--state-dir").arg(home.state());
    let mut asking = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the command line to ask", LIMIT, || {
        let connected = fs::read_link(format!("/proc/{}/exe", asking.id())).ok()?;
        (connected.ends_with("gatepost") && read(asking.id(), "environ").is_none()).then_some(())
    });
    assert_closed(asking.id());
    asking.kill().unwrap();
    asking.wait().unwrap();
    daemon.stop().unwrap();
}

#[test]
fn a_daemon_that_may_lock_no_memory_says_so() {
    let directory = tempfile::Builder::new().prefix("gp-bin-").tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (real, script) = (directory.path().join("real"), directory.path().join("limited"));
    fs::copy(gatepost_binary().unwrap(), &real).unwrap();
    fs::write(&script, format!("#!/bin/sh\nulimit -l 0\nexec {} \"$@\"\n", real.display())).unwrap();
    for file in [&real, &script] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let home = crate::peers::home_with(|setup| setup.binary = Some(script));
    let daemon = home.serve().unwrap();
    let notes = status(&daemon).notes;
    assert!(notes.iter().any(|note| note.contains("not on locked memory")), "{notes:?}");
    daemon.stop().unwrap();
}
