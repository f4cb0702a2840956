//! Ending everything that a child left behind.
//!
//! Only descendants of the calling process are ever looked at, and only through a process descriptor whose start time
//! and ancestry were checked again after it was opened.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::ancestry::{self, Walk};
use super::procfs::{self, Stat};
use super::{pidfd, reap, registry};
use crate::child::{ChildProcess, Signal};

/// Pause between two scans while what was killed is still ending.
const PAUSE: Duration = Duration::from_millis(2);
/// Scans that only stop processes before the stopped ones are killed even if new ones keep coming.
const MAX_STOP_SCANS: usize = 16;
/// How long a process that was sent SIGKILL may take to be gone.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// A process as it was seen in a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRef {
    /// Process id.
    pub pid: u32,
    /// Its parent's process id.
    pub parent_pid: u32,
    /// When it started, in clock ticks since the machine did.
    pub start_time_ticks: u64,
    /// Its name, at most 15 bytes, chosen by itself.
    pub name: String,
}

/// What ending a tree came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndReport {
    /// Processes that were sent SIGKILL one by one; those that a signal to a whole group ended are not counted.
    pub killed: usize,
    /// Process ids that were still there when the time was up; empty when everything is gone.
    pub left: Vec<u32>,
}

/// The living descendants of `root`, without itself, parents before children.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn descendants_of(root: u32) -> io::Result<Vec<ProcessRef>> {
    let scan = procfs::all()?;
    let found = below(&scan, root, &BTreeSet::new());
    Ok(found.into_iter().filter(|stat| !has_ended(stat)).map(ProcessRef::from).collect())
}

/// Kills and reaps every descendant of this process that is not in the tree of a live child: what fell to us, as the
/// subreaper, from children that ended. Left alone are the children held by a [`ChildProcess`], those in `exempt`
/// (children started in other ways), and everything below them. Ends when two scans in a row find nothing, or after
/// `budget`.
///
/// # Errors
/// When `/proc` cannot be read, or this process is no subreaper, in which case orphans do not fall to it and an empty
/// answer would prove nothing.
pub fn end_descendants(exempt: &[u32], budget: Duration) -> io::Result<EndReport> {
    if !super::hygiene::is_subreaper()? {
        return Err(io::Error::other("orphans do not fall to this process: call become_subreaper first"));
    }
    let deadline = Instant::now() + budget;
    let (stopped, killed) = (BTreeSet::new(), BTreeSet::new());
    let mut hunt = Hunt { own: std::process::id(), exempt, stop_scans: 0, stopped, killed };
    let mut empty_scans = 0;
    loop {
        let left = hunt.round()?;
        empty_scans = if left.is_empty() { empty_scans + 1 } else { 0 };
        if empty_scans == 2 || Instant::now() >= deadline {
            return Ok(EndReport { killed: hunt.killed.len(), left });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Ends a child and everything below it: SIGTERM to its group, at most `grace` for it to end, SIGKILL to the group,
/// then [`end_descendants`] for what fell to us, within `budget`.
///
/// # Errors
/// When the kernel refuses to signal or wait, or as [`end_descendants`].
pub fn end_tree(child: &ChildProcess, grace: Duration, exempt: &[u32], budget: Duration) -> io::Result<EndReport> {
    let mut killed = 0;
    if child.try_wait()?.is_none() {
        ignore_gone(child.signal_group(Signal::Terminate))?;
        if !child.has_ended(grace)? {
            killed = 1;
        }
        // The leader is not reaped yet, so the group is still ours: also for members that outlived it.
        ignore_gone(child.signal_group(Signal::Kill))?;
        if child.wait_exit(KILL_WAIT)?.is_none() {
            return Ok(EndReport { killed, left: vec![child.pid()] });
        }
    }
    let mut report = end_descendants(exempt, budget)?;
    report.killed += killed;
    Ok(report)
}

/// One hunt for everything below this process.
struct Hunt<'a> {
    own: u32,
    exempt: &'a [u32],
    stop_scans: usize,
    /// Process id and start time of what was sent SIGSTOP.
    stopped: BTreeSet<(u32, u64)>,
    /// The same of what was sent SIGKILL.
    killed: BTreeSet<(u32, u64)>,
}

impl Hunt<'_> {
    /// One scan: reaps what has ended, stops what is new, kills once nothing new came. Returns what was found and is
    /// not reaped yet.
    fn round(&mut self) -> io::Result<Vec<u32>> {
        let scan = procfs::all()?;
        // Read after the scan: whatever was started here and is in the scan is in the registry by now.
        let mut spared = registry::snapshot();
        spared.extend(self.exempt);
        let targets = below(&scan, self.own, &spared);
        let left: Vec<&Stat> = targets.into_iter().filter(|stat| !self.reaped(stat)).collect();
        self.stop_scans += 1;
        if !self.stop_new(&left, &spared) || self.stop_scans > MAX_STOP_SCANS {
            for stat in &left {
                if !self.killed.contains(&identity(stat)) && signal_checked(stat, self.own, &spared, Signal::Kill) {
                    self.killed.insert(identity(stat));
                }
            }
        }
        Ok(left.iter().map(|stat| stat.pid).collect())
    }

    fn reaped(&self, stat: &Stat) -> bool {
        stat.is_zombie() && stat.parent_pid == self.own && reap::reap_one(stat.pid)
    }

    /// Stops what was not stopped before; true when there was any. A stopped process starts no others, so a tree that
    /// keeps forking comes to rest before any of it is killed.
    fn stop_new(&mut self, left: &[&Stat], spared: &BTreeSet<u32>) -> bool {
        let mut any = false;
        for stat in left {
            if !self.stopped.contains(&identity(stat)) && signal_checked(stat, self.own, spared, Signal::Stop) {
                self.stopped.insert(identity(stat));
                any = true;
            }
        }
        any
    }
}

fn identity(stat: &Stat) -> (u32, u64) {
    (stat.pid, stat.start_time_ticks)
}

/// Signals a process found in a scan if it still is that process, lives, and still is below us outside the spared
/// trees. False when nothing was sent; the next scan shows how things stand.
fn signal_checked(found: &Stat, own: u32, spared: &BTreeSet<u32>, signal: Signal) -> bool {
    let Ok(fd) = pidfd::open(found.pid) else { return false };
    let same = procfs::stat(found.pid).is_ok_and(|now| now.start_time_ticks == found.start_time_ticks);
    same && ancestry::walk(found.pid, fd.as_fd(), |pid| pid == own || spared.contains(&pid)) == Walk::Reached(own)
        && pidfd::send_signal(fd.as_fd(), signal).is_ok()
}

/// Whether a process that looks ended is: one whose first thread has ended while others run looks the same.
fn has_ended(stat: &Stat) -> bool {
    stat.is_zombie() && pidfd::open(stat.pid).and_then(|fd| pidfd::is_alive(fd.as_fd())).map_or(true, |alive| !alive)
}

/// Everything below `root`, parents first, without the spared ones and what is below them.
fn below<'a>(scan: &'a [Stat], root: u32, spared: &BTreeSet<u32>) -> Vec<&'a Stat> {
    let mut children: BTreeMap<u32, Vec<&Stat>> = BTreeMap::new();
    for stat in scan {
        children.entry(stat.parent_pid).or_default().push(stat);
    }
    let mut found: Vec<&Stat> = Vec::new();
    let mut parent = Some(root);
    let mut next = 0;
    while let Some(pid) = parent {
        // Taken out, so that a scan with a number used twice cannot go round in circles.
        for child in children.remove(&pid).unwrap_or_default() {
            if child.pid != root && !spared.contains(&child.pid) {
                found.push(child);
            }
        }
        parent = found.get(next).map(|stat| stat.pid);
        next += 1;
    }
    found
}

fn ignore_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl From<&Stat> for ProcessRef {
    fn from(stat: &Stat) -> Self {
        Self {
            pid: stat.pid,
            parent_pid: stat.parent_pid,
            start_time_ticks: stat.start_time_ticks,
            name: stat.name.clone(),
        }
    }
}
