//! What of the owner's is around: a home with keys, programs that act for whoever asks them, a terminal.

use super::stage::write_as;
use crate::daemon::{Home, UnprivilegedInstall, as_user};
use crate::failure::{Doing, Failure, Outcome};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = include_str!("owner.py");
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// 64 hexadecimal digits that nothing else has, as a key is written.
pub(super) fn word() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

/// The owner's programs. Dropping it ends them.
pub(super) struct Owner {
    root: PathBuf,
    /// In memory, environment and shared memory of a program.
    pub(super) word: String,
    pub(super) ssh_key: String,
    /// In a file that root alone reads.
    pub(super) roots_word: String,
    pub(super) note: String,
    /// What an attacker could find out.
    pub(super) targets: Value,
    program: Child,
    user: u32,
}

impl Owner {
    pub(super) fn start(home: &Home, install: &UnprivilegedInstall) -> Outcome<Self> {
        let (root, user) = (home.path().to_owned(), install.user);
        for name in
            ["run", "home/marks", "home/.ssh", "home/.config", "home/.config/systemd", "home/.config/systemd/user"]
        {
            let path = root.join(name);
            fs::create_dir_all(&path).doing("a directory could not be made")?;
            own(&path, user, 0o700)?;
        }
        let (ssh_key, roots_word, note, secret) = (word(), word(), word(), word());
        for (name, text) in [
            ("home/.ssh/id_ed25519", &ssh_key),
            ("home/.ssh/authorized_keys", &note),
            ("home/note", &note),
            ("home/.bashrc", &note),
        ] {
            write_as(&root.join(name), text, user)?;
            own(&root.join(name), user, 0o600)?;
        }
        // Root's own, in the workspace: what reads it is a program that has root's rights.
        let (setuid, roots_file) = (home.workspace().join("setuid-cat"), home.workspace().join("roots-file"));
        fs::copy("/bin/cat", &setuid).doing("no setuid program")?;
        fs::set_permissions(&setuid, fs::Permissions::from_mode(0o4755)).doing("no setuid program")?;
        fs::write(&roots_file, &roots_word).doing("no file of root's")?;
        fs::set_permissions(&roots_file, fs::Permissions::from_mode(0o600)).doing("no file of root's")?;
        git_init(&home.workspace_root(), user)?;

        let run = root.join("run");
        let tmux = run.join("tmux");
        let command = |program: &Path| {
            let mut command = as_user(user, program);
            command
                .env_clear()
                .env("PATH", PATH)
                .env("HOME", root.join("home"))
                .env("LANG", "C.UTF-8")
                .current_dir(&root);
            command
        };
        let session = ["-f", "/dev/null", "new-session", "-d", "sleep 900"];
        let started = command(Path::new("tmux")).arg("-S").arg(&tmux).args(session).status();
        if !started.doing("tmux could not be started")?.success() {
            return Err(Failure::new("the owner's tmux server does not start"));
        }
        let name = uuid::Uuid::new_v4().simple().to_string();
        let settings = json!({
            "marks": root.join("home/marks"), "service_manager": run.join("private"), "message_bus": run.join("bus"),
            "abstract": format!("gp-escapes-{name}"), "held": root.join("home/held"), "word": secret,
            "shared_memory": format!("/dev/shm/gp-escapes-{name}"), "terminal_seen": root.join("home/terminal-seen"),
        });
        let mut program = command(&install.python_bin.join("python3.12"))
            .args(["-I", "-B", "-c", PROGRAM])
            .arg(settings.to_string())
            .env("OWNERS_WORD", &secret)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .doing("the owner's programs could not be started")?;
        let mut said = String::new();
        let stdout = program.stdout.take().ok_or_else(|| Failure::new("the owner's programs say nothing"))?;
        BufReader::new(stdout).read_line(&mut said).doing("the owner's programs say nothing")?;
        let mut targets: Value = serde_json::from_str(&said).doing("the owner's programs do not start")?;
        for name in ["service_manager", "message_bus", "abstract", "shared_memory"] {
            targets[name] = settings[name].clone();
        }
        targets["tmux"] = json!(tmux);
        targets["setuid"] = json!(setuid);
        targets["roots_file"] = json!(roots_file);
        targets["owners_note"] = json!(root.join("home/note"));
        Ok(Self { root, word: secret, ssh_key, roots_word, note, targets, program, user })
    }

    /// The owner's home.
    pub(super) fn directory(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Where marks are made that a confined process cannot make.
    pub(super) fn marks(&self) -> PathBuf {
        self.root.join("home/marks")
    }
}

impl Owner {
    /// Ends the owner's programs.
    pub(super) fn end(&mut self) {
        drop(self.program.stdin.take());
        self.program.wait().ok();
        let mut command = as_user(self.user, Path::new("tmux"));
        command.arg("-S").arg(self.root.join("run/tmux")).arg("kill-server").stderr(Stdio::null()).status().ok();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.end();
    }
}

fn own(path: &Path, user: u32, mode: u32) -> Outcome<()> {
    chown(path, Some(user), Some(user)).doing("a file could not be given away")?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).doing("a mode could not be set")
}

/// The workspace is part of a repository, as projects often are.
fn git_init(directory: &Path, user: u32) -> Outcome<()> {
    let mut command: Command = as_user(user, Path::new("git"));
    let made =
        command.args(["init", "-q"]).arg(directory).env_clear().env("PATH", PATH).env("HOME", "/nonexistent").status();
    if made.doing("git could not be started")?.success() {
        Ok(())
    } else {
        Err(Failure::new("git makes no repository"))
    }
}
