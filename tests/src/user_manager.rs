//! A real systemd user manager, in mounts and a control group of its own.

#![expect(clippy::unwrap_used, reason = "what cannot be set up ends the test")]

use crate::wait::{LIMIT, wait_until};
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::daemon::as_user;

const PROGRAM: &str = "/lib/systemd/systemd";
const CGROUPS: &str = "/sys/fs/cgroup";
/// What the system's manager makes, and a user manager relies on.
const SYSTEM_DIRECTORIES: [&str; 4] =
    ["/run/systemd/system", "/run/systemd/unit-root", "/run/systemd/incoming", "/run/credentials"];

/// The manager. It is ended, with all that it started, when this is dropped.
#[derive(Debug)]
pub struct UserManager {
    child: Child,
    user: u32,
    home: PathBuf,
    runtime: PathBuf,
    group: PathBuf,
}

impl UserManager {
    /// Starts it for a user with this home. `/run` and the control groups are mounted anew: only within
    /// [`in_own_mounts`](crate::in_own_mounts), as root.
    ///
    /// # Panics
    /// When this is not root, systemd is not installed, or it does not start.
    #[must_use]
    pub fn start(user: u32, home: &Path) -> Self {
        assert!(host::hygiene::is_root(), "a user manager of a user without a login is started by root alone");
        assert!(Path::new(PROGRAM).exists(), "install the package systemd");
        mount(&["-t", "tmpfs", "-o", "mode=755", "none", "/run"]);
        mount(&["-t", "cgroup2", "none", CGROUPS]);
        for directory in SYSTEM_DIRECTORIES {
            fs::create_dir_all(directory).unwrap();
        }
        let runtime = PathBuf::from(format!("/run/user/{user}"));
        let group = Path::new(CGROUPS).join(format!("gatepost-test-{}", std::process::id()));
        for directory in [&runtime, &group] {
            fs::create_dir_all(directory).unwrap();
            chown(directory, Some(user), Some(user)).unwrap();
        }
        fs::set_permissions(&runtime, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        for file in ["cgroup.procs", "cgroup.subtree_control", "cgroup.threads"] {
            chown(group.join(file), Some(user), Some(user)).unwrap();
        }
        let enter = format!("echo 0 > '{}/cgroup.procs' && exec \"$@\"", group.display());
        let as_user = as_user(user, Path::new(PROGRAM));
        let mut command = Command::new("sh");
        command.args(["-c", &enter, "sh"]).arg(as_user.get_program()).args(as_user.get_args());
        command.args(["--user", "--unit=basic.target"]).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home);
        command.env("XDG_RUNTIME_DIR", &runtime).env("SYSTEMD_LOG_TARGET", "console").stdin(Stdio::null());
        let child = command.spawn().unwrap();
        let manager = Self { child, user, home: home.to_owned(), runtime, group };
        wait_until("the user manager", LIMIT, || {
            let said = manager.command("systemctl").args(["--user", "is-system-running"]).output().unwrap();
            (said.stdout.trim_ascii() == b"running").then_some(())
        });
        manager
    }

    /// A program as the user finds it at a login.
    #[must_use]
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = as_user(self.user, program.as_ref());
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", &self.home);
        command.env("XDG_RUNTIME_DIR", &self.runtime).env("LANG", "C.UTF-8");
        command
    }

    /// What `systemctl --user` says, which must succeed.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn systemctl(&self, words: &[&str]) -> String {
        let output = self.command("systemctl").arg("--user").args(words).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (said, complained) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "systemctl {words:?}: {said}{complained}");
        said
    }

    /// A property of a unit.
    ///
    /// # Panics
    /// When the manager does not answer.
    #[must_use]
    #[track_caller]
    pub fn property(&self, unit: &str, name: &str) -> String {
        self.systemctl(&["show", "--value", "--property", name, unit])
    }

    /// The processes of a unit.
    ///
    /// # Panics
    /// When its control group cannot be read.
    #[must_use]
    pub fn processes(&self, unit: &str) -> Vec<i32> {
        let group = Path::new(CGROUPS).join(self.property(unit, "ControlGroup").trim_start_matches('/'));
        let mut found = Vec::new();
        let mut directories = vec![group];
        while let Some(directory) = directories.pop() {
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            directories.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()));
            let pids = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            found.extend(pids.lines().filter_map(|pid| pid.parse::<i32>().ok()));
        }
        found
    }
}

impl Drop for UserManager {
    fn drop(&mut self) {
        fs::write(self.group.join("cgroup.kill"), "1").ok();
        self.child.wait().ok();
        // A control group goes when the last process is reaped, its children before it.
        for _ in 0..100 {
            remove_groups(&self.group);
            if !self.group.exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        if self.group.exists() {
            eprintln!("{} is left", self.group.display());
        }
        // Another one may be started after it.
        Command::new("umount").args(["--lazy", CGROUPS, "/run"]).status().ok();
    }
}

fn remove_groups(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
        remove_groups(&entry.path());
    }
    fs::remove_dir(group).ok();
}

fn mount(words: &[&str]) {
    let mounted = Command::new("mount").args(words).status().unwrap();
    assert!(mounted.success(), "mount {words:?}: {mounted}");
}
