//! Rounds with a script in the server's place.

use super::observe::{Bystander, Delegated, Scope, Struck, is_open_to, is_root};
use super::speaker::Speaker;
use super::{Blow, Load, Row, Summary};
use crate::daemon::{as_user, built_binary, gatepost_binary, give_tree, make_private_dir};
use crate::failure::{Doing, Failure, Outcome};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// For the load to be under way.
const LOAD_LIMIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);
/// How long a load goes on before the blow.
const UNDER_WAY: Duration = Duration::from_millis(30);
/// No account has these numbers.
const FIRST_USER: u32 = 24_000;
const USERS: u32 = 1_000;

/// Announces itself as the start-up module does, and then does as it is told.
const SERVER: &str = r#"#!/bin/sh
printf '{"announce":{"nonce":"%s","pid":%d,"contract":"1.2.3","measures":["listener","dumpable","listeners_refused","ambient_plugins_dropped","latch","routes"]}}\n' "$GATEPOST_NONCE" $$ >&5
"#;
const WAIT: &str = "while :; do sleep 600; done\n";

/// How the guards are to end the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Means {
    Scope,
    Cgroup,
    Walk,
}

impl Means {
    const ALL: [Self; 3] = [Self::Scope, Self::Cgroup, Self::Walk];

    fn as_str(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::Cgroup => "cgroup",
            Self::Walk => "walk",
        }
    }
}

/// What all rounds share: copies of the binaries that the user can run.
struct Stage {
    root: TempDir,
    user: Option<u32>,
    delegated: Option<Delegated>,
}

pub(super) fn run(rounds: u32, summary: &mut Summary, tell: &dyn Fn(&str)) -> Outcome<()> {
    let stage = Stage::make()?;
    let before = stage.temporary();
    for means in Means::ALL {
        if means == Means::Cgroup && stage.delegated.is_none() {
            tell("no cgroup can be delegated here: those scenarios are left out");
            continue;
        }
        for blow in Blow::ALL {
            // The quiet ones differ in nothing but what the others try too.
            let loads = Load::ALL.into_iter().filter(|load| means == Means::Scope || *load != Load::Quiet);
            for load in loads {
                let mut row = Row::new("stand-in", means.as_str(), blow, load);
                for _round in 0..rounds {
                    stage.round(means, blow, load, &mut row)?;
                }
                tell(&row.line(&row.means));
                summary.rows.push(row);
            }
        }
    }
    match stage.temporary().difference(&before).next() {
        Some(left) => Err(Failure::new(format!("{} was left among the temporary files of all", left.display()))),
        None => Ok(()),
    }
}

/// What a tree left does not outlive the tool: a bomb would go on for ever.
impl Drop for Stage {
    fn drop(&mut self) {
        end_all_of(self.user);
    }
}

/// Ends whatever runs as one of the users that have no account. In one step, which no fork outruns.
fn end_all_of(user: Option<u32>) {
    let Some(user) = user.filter(|user| (FIRST_USER..FIRST_USER + USERS).contains(user)) else { return };
    let mut all_of_it = as_user(user, Path::new("/bin/sh"));
    all_of_it.args(["-c", "kill -KILL -1"]).stderr(Stdio::null()).status().ok();
}

impl Stage {
    fn make() -> Outcome<Self> {
        let root = tempfile::Builder::new().prefix("gp-left-").tempdir().doing("no temporary directory")?;
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).doing("a mode could not be set")?;
        let copy = |from: PathBuf, name: &str| fs::copy(from, root.path().join(name)).doing("no copy of a binary");
        copy(gatepost_binary()?, "gatepost")?;
        copy(built_binary("gatepost-tests", "stand-in-daemon")?, "stand-in-daemon")?;
        let user = is_root().then(|| FIRST_USER + std::process::id() % USERS);
        Ok(Self { delegated: user.and_then(Delegated::make), root, user })
    }

    /// What the user has where everybody may make something.
    fn temporary(&self) -> BTreeSet<PathBuf> {
        let entries = fs::read_dir("/tmp").into_iter().flatten().flatten();
        let owned = entries.filter(|entry| entry.metadata().is_ok_and(|data| Some(data.uid()) == self.user));
        owned.map(|entry| entry.path()).collect()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn command(&self, program: &Path) -> Command {
        self.user.map_or_else(|| Command::new(program), |user| as_user(user, program))
    }

    fn round(&self, means: Means, blow: Blow, load: Load, row: &mut Row) -> Outcome<()> {
        let directory = tempfile::Builder::new().prefix("round-").tempdir_in(self.root.path()).doing("no directory")?;
        make_private_dir(directory.path())?;
        let script = directory.path().join("agent-server");
        fs::write(&script, format!("{SERVER}{}{WAIT}", load.script())).doing("no script")?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).doing("a mode could not be set")?;
        if let Some(user) = self.user {
            give_tree(directory.path(), user)?;
        }
        let mut sleep = self.command(Path::new("/bin/sleep"));
        sleep.arg("600");
        let mut bystander = Bystander::start(sleep)?;
        let mut daemon = Speaker::start(self.daemon(means, directory.path()))?;
        let ready = daemon.hear()?["ready"].clone();
        if ready["means"] != means.as_str() {
            return Err(Failure::new(format!("the tree is not ended by {}: {ready}", means.as_str())));
        }
        let (server, guards) = (pid(&ready["server"])?, [pid(&ready["guards"][0])?, pid(&ready["guards"][1])?]);
        if let Some(guard) = guards.into_iter().find(|pid| self.user.is_some_and(|user| is_open_to(user, *pid))) {
            return Err(Failure::new(format!("its user can read the guard {guard}")));
        }
        let scope = Scope {
            directory: directory.path().to_owned(),
            user: self.user,
            others: vec![daemon.pid(), bystander.pid()],
        };
        // The server, its guards, and its own child.
        let begun = Instant::now();
        while scope.processes(Some(guards[0])).len() < load.processes() + 4 {
            if begun.elapsed() > LOAD_LIMIT {
                return Err(Failure::new(format!("the load {} did not come up", load.as_str())));
            }
            std::thread::sleep(LOOK);
        }
        std::thread::sleep(UNDER_WAY);
        let known = scope.processes(Some(guards[0]));
        let began = Instant::now();
        if blow == Blow::Stop {
            daemon.ask("stop")?;
        }
        Struck { daemon: daemon.pid(), guards, server }.strike(blow)?;
        let (left, took) = scope.wait_gone(&known, began, true);
        if blow.ends_daemon() {
            daemon.reap();
        } else {
            // The daemon's own word of it.
            let told = daemon.ask("gone")?["ended"].clone();
            row.left_over += told["left"].as_array().map_or(1, Vec::len) + usize::from(!told["unknown"].is_null());
        }
        drop(daemon);
        row.left_over += left + scope.processes(None).len();
        row.left_over += self.delegated.as_ref().map_or(0, Delegated::left);
        row.bystanders_hurt += usize::from(!bystander.lives());
        row.rounds += 1;
        row.took.push(took);
        row.most_processes = row.most_processes.max(known.len());
        Ok(())
    }

    fn daemon(&self, means: Means, directory: &Path) -> Command {
        let mut command = match (means, &self.delegated) {
            (Means::Cgroup, Some(delegated)) => {
                let inner = self.command(&self.at("stand-in-daemon"));
                let mut command = Command::new("/bin/sh");
                command.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(delegated.path());
                command.arg(inner.get_program()).args(inner.get_args());
                command
            }
            (Means::Scope | Means::Cgroup | Means::Walk, _) => self.command(&self.at("stand-in-daemon")),
        };
        command.arg(self.at("gatepost")).arg(directory);
        if means != Means::Scope {
            command.arg("--layered");
        }
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir("/");
        command
    }
}

fn pid(value: &Value) -> Outcome<u32> {
    let pid = value.as_u64().and_then(|pid| u32::try_from(pid).ok());
    pid.ok_or_else(|| Failure::new("the stand-in named no process"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_user_without_account_is_ended_and_nothing_else() {
        let user = is_root().then_some(FIRST_USER + USERS - 1);
        let sleep = |user: Option<u32>| {
            let mut command = user.map_or_else(|| Command::new("sleep"), |user| as_user(user, Path::new("sleep")));
            command.arg("600").env("PATH", "/usr/bin:/bin");
            Bystander::start(command).unwrap()
        };
        let (mut own, mut other) = (sleep(user), sleep(None));
        // As its user by now, not on the way there.
        let named = |pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let begun = Instant::now();
        while named(own.pid()) != "sleep\n" && begun.elapsed() < LOAD_LIMIT {
            std::thread::sleep(LOOK);
        }
        end_all_of(user);
        while own.lives() && user.is_some() && begun.elapsed() < LOAD_LIMIT {
            std::thread::sleep(LOOK);
        }
        assert_eq!((own.lives(), other.lives()), (user.is_none(), true));
    }
}
