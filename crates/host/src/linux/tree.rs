//! Ending everything that a child left behind.
//!
//! Whatever loses its parent falls to us, the subreaper: a direct child, whose number cannot be reused, because nobody
//! but us reaps it. What is below a direct child is killed in the same pass, parents first, after a look that proves
//! where it hangs; so a tree that forks while it is killed shrinks with each pass, and a process that forks and ends
//! faster than a look can follow is caught all the same, since each of its generations lands here.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::procfs::{self, Stat};
use super::{pidfd, registry};
use crate::child::{ChildProcess, Signal};

/// Passes without a pause, for processes that fork as fast as they can; after that what is left needs time to end.
const BUSY_PASSES: u32 = 500;
/// Pause between later passes.
const PAUSE: Duration = Duration::from_millis(1);
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
    /// Processes that SIGKILL ended.
    pub killed: usize,
    /// Process ids that were still there when the time was up; empty when everything is gone.
    pub left: Vec<u32>,
}

/// The living descendants of `root`, without itself, parents before children. One scan: what forks or ends meanwhile
/// may be missing.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn descendants_of(root: u32) -> io::Result<Vec<ProcessRef>> {
    let scan = procfs::all()?;
    Ok(below(&scan, root).into_iter().filter(|stat| !has_ended(stat)).map(ProcessRef::from).collect())
}

/// The process that has this number now; `None` when none has, or when it has ended.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn process(pid: u32) -> io::Result<Option<ProcessRef>> {
    match procfs::stat(pid) {
        Ok(stat) if has_ended(&stat) => Ok(None),
        Ok(stat) => Ok(Some(ProcessRef::from(&stat))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Kills and reaps every descendant of this process that is not in the tree of a live child: what fell to us, as the
/// subreaper, from children that ended. Left alone are the children held by a [`ChildProcess`], those in `exempt`
/// (children started in other ways, whose exit someone else waits for), and everything below them. Ends when two
/// looks in a row find nothing, or after `budget`.
///
/// # Errors
/// When `/proc` cannot be read, or this process is no subreaper, in which case orphans do not fall to it and an empty
/// answer would prove nothing.
pub fn end_descendants(exempt: &[u32], budget: Duration) -> io::Result<EndReport> {
    if !super::hygiene::is_subreaper()? {
        return Err(io::Error::other("orphans do not fall to this process: call become_subreaper first"));
    }
    let deadline = Instant::now() + budget;
    let mut killed = 0;
    let mut looks_without_any = 0;
    for pass in 0_u32.. {
        let is_last = Instant::now() >= deadline;
        let swept = registry::sweep(exempt)?;
        killed += swept.ended_by_kill;
        looks_without_any = if swept.found { 0 } else { looks_without_any + 1 };
        if looks_without_any == 2 {
            break;
        }
        if is_last {
            return Ok(EndReport { killed, left: with_descendants(&swept.remaining)? });
        }
        if pass < BUSY_PASSES {
            std::thread::yield_now();
        } else {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(EndReport { killed, left: Vec::new() })
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

/// These processes and everything below them.
fn with_descendants(roots: &[u32]) -> io::Result<Vec<u32>> {
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let scan = procfs::all()?;
    let mut found: BTreeSet<u32> = roots.iter().copied().collect();
    for root in roots {
        found.extend(below(&scan, *root).into_iter().map(|stat| stat.pid));
    }
    Ok(found.into_iter().collect())
}

/// Whether a process that looks ended is: one whose first thread has ended while others run looks the same.
fn has_ended(stat: &Stat) -> bool {
    stat.is_zombie() && pidfd::open(stat.pid).and_then(|fd| pidfd::is_alive(fd.as_fd())).map_or(true, |alive| !alive)
}

/// Everything below `root`, parents first.
fn below(scan: &[Stat], root: u32) -> Vec<&Stat> {
    let mut children: BTreeMap<u32, Vec<&Stat>> = BTreeMap::new();
    for stat in scan {
        children.entry(stat.parent_pid).or_default().push(stat);
    }
    let mut found: Vec<&Stat> = Vec::new();
    let mut parent = Some(root);
    let mut next = 0;
    while let Some(pid) = parent {
        // Taken out, so that a scan with a number used twice cannot go round in circles.
        found.extend(children.remove(&pid).unwrap_or_default().into_iter().filter(|child| child.pid != root));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent_pid: u32) -> Stat {
        Stat { pid, name: String::new(), state: 'S', parent_pid, session: pid, start_time_ticks: 1 }
    }

    #[test]
    fn a_listing_holds_parents_before_children_and_ends_on_a_circle() {
        let scan = [stat(9, 7), stat(5, 2), stat(7, 5), stat(6, 5), stat(3, 1), stat(2, 9)];
        let pids = |root| below(&scan, root).into_iter().map(|stat| stat.pid).collect::<Vec<_>>();
        assert_eq!(pids(5), [7, 6, 9, 2]);
        assert_eq!(pids(1), [3]);
        assert_eq!(pids(6), [0; 0]);
    }
}
