//! The managed Agent Server: whole or not at all, every file of it compared, and an own executable read without running it.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

mod interrupted;
mod own;
mod package;
mod tampered;

use gatepost_tests::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use testkit::daemon::{cache_dir, gatepost_binary, processes_of};

/// How long any command may take: an install from a slow index takes minutes.
const COMMAND_LIMIT: Duration = Duration::from_secs(900);

/// A state directory of one test, on the file system that the shared install is on.
struct State(TempDir);

impl State {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("install-").tempdir_in(cache_dir().unwrap()).unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// `gatepost server …` on this state directory, with what this process has of network settings.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(gatepost_binary().unwrap());
        command.arg("server").args(arguments).arg("--json").arg("--state-dir").arg(self.path());
        command.stdin(Stdio::null());
        command
    }

    /// Starts it, with its output in a file.
    fn start(&self, arguments: &[&str]) -> Started {
        let printed = tempfile::tempfile().unwrap();
        let child = self.command(arguments).stdout(printed.try_clone().unwrap()).spawn().unwrap();
        Started { child, printed }
    }

    /// Runs it to its end: exit code and the one object it printed.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        self.start(arguments).finish()
    }

    /// The directories of whole installs, as `server list` names them.
    fn listed(&self) -> Vec<PathBuf> {
        let (code, said) = self.run(&["list"]);
        assert_eq!(code, Some(0), "{said}");
        let installs = said["installs"].as_array().unwrap();
        installs.iter().map(|install| PathBuf::from(install["root"].as_str().unwrap())).collect()
    }

    /// The names in the directory of installs, the lock aside.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path().join("servers")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name != ".lock");
        names.sort();
        names
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // What a failing test would leave: installers, and the tools that they started.
        for process in processes_of(self.path(), &[]) {
            kill_process(Pid::from_raw(process.pid.cast_signed()).unwrap(), Signal::KILL).ok();
        }
    }
}

/// A command that was started.
struct Started {
    child: Child,
    printed: File,
}

impl Started {
    /// Its exit code and the one object it printed.
    fn finish(mut self) -> (Option<i32>, Value) {
        let status = wait_until("a command to end", COMMAND_LIMIT, || self.child.try_wait().unwrap());
        let mut printed = String::new();
        self.printed.rewind().unwrap();
        self.printed.read_to_string(&mut printed).unwrap();
        assert_eq!(printed.lines().count(), 1, "{printed}");
        (status.code(), serde_json::from_str(&printed).unwrap())
    }
}

/// The packages of an install.
fn site_packages(root: &Path) -> PathBuf {
    let libraries = std::fs::read_dir(root.join("lib")).unwrap().flatten().map(|entry| entry.path());
    libraries.map(|library| library.join("site-packages")).find(|packages| packages.is_dir()).unwrap()
}
