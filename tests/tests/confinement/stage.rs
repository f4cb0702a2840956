//! A plan with its directories, and programs started through the wrapper as another user.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use host::hygiene::is_root;
use rules::confinement::Plan;

/// Who runs the programs where the tests run as root, whom rights of files do not stop. No account has it; nothing else runs
/// under it.
pub(crate) const UNUSED_UID: u32 = 61_235;
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) struct Stage {
    root: tempfile::TempDir,
    pub(crate) plan: Plan,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let root = tempfile::TempDir::new().unwrap();
        let base = root.path().canonicalize().unwrap();
        hand_over(&base);
        let at = |name: &str| {
            let path = base.join(name);
            fs::create_dir(&path).unwrap();
            hand_over(&path);
            path
        };
        let mut plan = Plan::new(at("workspace"), at("tmp"), at("home"));
        plan.strip_environment = vec!["OH_".to_owned(), "SECRET".to_owned()];
        let stage = Self { root, plan };
        stage.write("home/.gitconfig", "[user]\nname = A\nemail = a@example.org\n");
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        hand_over(&path);
    }

    /// The wrapper around this program, with the plan in a descriptor.
    pub(crate) fn wrapped(&self, program: &str, arguments: &[&str]) -> Wrapped {
        self.wrapped_with(&self.plan.to_bytes().unwrap(), program, arguments)
    }

    pub(crate) fn wrapped_with(&self, plan: &[u8], program: &str, arguments: &[&str]) -> Wrapped {
        let plan = host::memfile::memfile("plan", plan).unwrap();
        let number = inheritable(&plan);
        let mut command = self.bare(testkit::daemon::gatepost_binary().unwrap());
        command.args(["__confine", "--plan-fd", &number.to_string(), "--", program]).args(arguments);
        Wrapped { command, plan }
    }

    /// A program that nothing confines.
    pub(crate) fn bare(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", PATH).env("HOME", &self.plan.home).env("TMPDIR", &self.plan.tmp);
        command.env("TMUX_TMPDIR", &self.plan.tmp).env("LC_ALL", "C").env("TERM", "dumb");
        command.current_dir(&self.plan.workspace).stdin(Stdio::null());
        if is_root() {
            command.uid(UNUSED_UID).gid(UNUSED_UID);
        }
        command
    }

    /// What the script says inside, which must succeed.
    pub(crate) fn says(&self, script: &str) -> String {
        let output = self.wrapped("/bin/bash", &["bash", "-c", script]).output();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{script}\n{}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }
}

/// A command that keeps the descriptor of its plan open until it was started.
pub(crate) struct Wrapped {
    pub(crate) command: Command,
    plan: OwnedFd,
}

impl Wrapped {
    pub(crate) fn plan_fd(&self) -> i32 {
        self.plan.as_raw_fd()
    }

    pub(crate) fn output(&mut self) -> Output {
        self.command.output().unwrap()
    }
}

/// Lets children have the descriptor, under the same number. Those of other tests get it as well, and ignore it.
pub(crate) fn inheritable(fd: &OwnedFd) -> i32 {
    rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty()).unwrap();
    fd.as_raw_fd()
}

fn hand_over(path: &Path) {
    if is_root() {
        std::os::unix::fs::chown(path, Some(UNUSED_UID), Some(UNUSED_UID)).unwrap();
    }
}
