//! The server's files of a conversation survive a kill in the middle of a write; played in the managed install's own Python.

use std::process::Command;
use testkit::daemon::{SERVER_VERSION, shared_install, workspace_root};

#[test]
fn a_conversations_file_is_whole_or_as_it_was_when_the_server_is_killed() {
    let installed = process::install::find(&shared_install().unwrap(), SERVER_VERSION).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(installed.executable)
        .arg(workspace_root().join("tests/tests/whole_files.py"))
        .arg(directory.path())
        .env("PYTHONPATH", workspace_root().join("config/contracts").join(SERVER_VERSION).join("startup"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HOME", directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.trim_end().ends_with("whole"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
