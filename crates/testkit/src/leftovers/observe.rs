//! Who is there, seen from outside.

use super::Blow;
use crate::daemon::processes_of;
use crate::failure::{Doing, Failure, Outcome};
use crate::processes;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// For everything to be gone after a blow.
const GONE_LIMIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(1);

/// A process, by number and the moment it started.
pub(super) type Seen = (u32, u64);

/// What runs under that number, an ended one that was not reaped aside.
fn seen(pid: u32) -> Option<Seen> {
    let stat = processes::stat(pid).filter(|stat| stat.runs())?;
    Some((pid, stat.start_time_ticks))
}

/// What a blow goes to.
pub(super) struct Struck {
    pub(super) daemon: u32,
    /// The outer one first.
    pub(super) guards: [u32; 2],
    pub(super) server: u32,
}

impl Struck {
    /// Strikes, but for a stop, which is asked for.
    pub(super) fn strike(&self, blow: Blow) -> Outcome<()> {
        let Self { daemon, guards: [first, second], server } = *self;
        match blow {
            Blow::Stop => Ok(()),
            Blow::Server => kill(server),
            Blow::FirstGuard => kill(first),
            Blow::SecondGuard => kill(second),
            Blow::BothGuards => kill_both([first, second]),
            Blow::Daemon => kill(daemon),
            Blow::DaemonAndFirstGuard => kill_both([daemon, first]),
            Blow::DaemonAndSecondGuard => kill_both([daemon, second]),
        }
    }
}

/// Whether its user can read a process: what is not dumpable is root's there.
pub(super) fn is_open_to(user: u32, pid: u32) -> bool {
    fs::metadata(format!("/proc/{pid}/environ")).is_ok_and(|file| file.uid() == user)
}

/// Where to look for what belongs to one tree.
pub(super) struct Scope {
    /// In the working directory, arguments or environment of what belongs to it.
    pub(super) directory: PathBuf,
    /// Of a user that has nothing else: everything is looked for.
    pub(super) user: Option<u32>,
    /// Not of the tree.
    pub(super) others: Vec<u32>,
}

impl Scope {
    /// All that is of it now.
    pub(super) fn processes(&self, top: Option<u32>) -> BTreeSet<Seen> {
        let roots: Vec<u32> = top.into_iter().collect();
        let mut pids: BTreeSet<u32> =
            processes_of(&self.directory, &roots).into_iter().map(|process| process.pid).collect();
        if let Some(user) = self.user {
            pids.extend(of_user(user));
        }
        pids.retain(|pid| !self.others.contains(pid));
        pids.into_iter().filter_map(seen).collect()
    }

    /// Waits until neither these nor any other of the tree is left; those that are, and how long it took.
    pub(super) fn wait_gone(&self, known: &BTreeSet<Seen>, began: Instant, more: bool) -> (usize, Duration) {
        let runs = |process: &Seen| seen(process.0) == Some(*process);
        loop {
            let took = began.elapsed();
            let mut left: BTreeSet<Seen> = known.iter().filter(|process| runs(process)).copied().collect();
            if left.is_empty() && more {
                left = self.processes(None);
            }
            if left.is_empty() || took > GONE_LIMIT {
                return (left.len(), took);
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn of_user(user: u32) -> Vec<u32> {
    let owned = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        uids.and_then(|uids| uids.split_whitespace().next()?.parse().ok()) == Some(user)
    };
    processes::all().into_iter().filter(owned).collect()
}

fn kill(pid: u32) -> Outcome<()> {
    signal(pid, Signal::KILL)
}

/// Stopped before they are killed, so that neither sees the other's end. Whoever else sees the first one's may be the one who
/// kills the second.
fn kill_both([first, second]: [u32; 2]) -> Outcome<()> {
    [first, second].into_iter().try_for_each(|pid| signal(pid, Signal::STOP))?;
    kill(first)?;
    kill(second).or_else(|error| if seen(second).is_some() { Err(error) } else { Ok(()) })
}

fn signal(pid: u32, signal: Signal) -> Outcome<()> {
    let pid = Pid::from_raw(pid.cast_signed()).filter(|pid| pid.as_raw_nonzero().get() > 1);
    let pid = pid.ok_or_else(|| Failure::new("no process"))?;
    kill_process(pid, signal).doing("a process could not be signalled")
}

/// Another process of the same user, which nothing here may touch.
pub(super) struct Bystander(Child);

impl Bystander {
    pub(super) fn start(mut command: Command) -> Outcome<Self> {
        command.env_clear().current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.spawn().doing("no bystander")?))
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn lives(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Whether this runs as root.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A cgroup of the unified hierarchy that a user may divide, removed when it is dropped.
pub(super) struct Delegated(PathBuf);

impl Delegated {
    /// `None` where there is none that can be written.
    pub(super) fn make(user: u32) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let at = mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            (kind.split(' ').next() == Some("cgroup2")).then(|| place.split(' ').nth(4)).flatten()
        })?;
        let path = Path::new(at).join(format!("leftovers-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let made = Self(path);
        for name in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
            std::os::unix::fs::chown(made.0.join(name), Some(user), Some(user)).ok()?;
        }
        fs::metadata(&made.0).is_ok_and(|data| data.uid() == user).then_some(made)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Cgroups that were left in it.
    pub(super) fn left(&self) -> usize {
        let Ok(entries) = fs::read_dir(&self.0) else { return 0 };
        entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).count()
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            fs::remove_dir(entry.path()).ok();
        }
        fs::remove_dir(&self.0).ok();
    }
}
