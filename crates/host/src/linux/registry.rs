//! The children that are held by a [`crate::child::ChildProcess`]: not orphans, and not anyone else's to reap.
//!
//! INVARIANT: forking, reaping and killing orphans happen while the set is locked. So a number in it always means a
//! child that was started here and is unreaped, and the number of any other child stays its own while it is looked at.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, kill_process_group, waitid};

use super::{below, procfs};
use crate::child::ExitStatus;

static HELD: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<u32>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one pass over the orphans came to.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    /// Whether there was any, running or ended.
    pub(crate) found: bool,
    /// Reaped ones that SIGKILL had ended.
    pub(crate) ended_by_kill: usize,
    /// Those not reaped yet.
    pub(crate) remaining: Vec<u32>,
}

/// Runs `fork` and records the child it returns.
pub(crate) fn fork_recorded(fork: impl FnOnce() -> io::Result<u32>) -> io::Result<u32> {
    let mut held = held();
    let pid = fork()?;
    held.insert(pid);
    Ok(pid)
}

/// Reaps a held child if it has ended.
pub(crate) fn reap(pid: u32, pidfd: BorrowedFd<'_>) -> io::Result<Option<ExitStatus>> {
    let mut held = held();
    let Some(status) = reap_if_ended(WaitId::PidFd(pidfd))? else { return Ok(None) };
    held.remove(&pid);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ok(Some(ExitStatus::Code(code))),
        (None, Some(signal)) => Ok(Some(ExitStatus::Signal(signal))),
        (None, None) => Err(io::Error::other("the kernel reported an end that is neither exit nor signal")),
    }
}

/// Makes the child an orphan like any other.
pub(crate) fn give_up(pid: u32) {
    held().remove(&pid);
}

/// Sends SIGKILL to the group of every held child; returns how many there are. Whoever holds them sees them end.
pub(crate) fn kill_held() -> usize {
    let held = held();
    let groups = held.iter().filter_map(|pid| i32::try_from(*pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw));
    for group in groups {
        // An error means that it has ended; its number is its own until it is reaped.
        kill_process_group(group, Signal::KILL).ok();
    }
    held.len()
}

/// Reaps every ended orphan: a child that is neither held nor `known`. Returns how many.
pub(crate) fn reap_unheld(known: &[u32]) -> io::Result<usize> {
    let held = held();
    let orphans = orphans(&held, known)?;
    Ok(orphans.into_iter().filter(|pid| matches!(reap_if_ended(WaitId::Pid(*pid)), Ok(Some(_)))).count())
}

/// Kills every orphan that is there now, and reaps those that have ended.
pub(crate) fn sweep(exempt: &[u32]) -> io::Result<Swept> {
    let held = held();
    let mut swept = Swept::default();
    let orphans = orphans(&held, exempt)?;
    for pid in &orphans {
        // All first: what is killed early cannot fork while the others are reaped. An error leaves it remaining.
        kill_process(*pid, Signal::KILL).ok();
    }
    for pid in &orphans {
        below::kill_below(pid.as_raw_nonzero().get().unsigned_abs());
    }
    for pid in orphans {
        swept.found = true;
        match reap_if_ended(WaitId::Pid(pid)) {
            Ok(Some(status)) => swept.ended_by_kill += usize::from(status.terminating_signal() == Some(libc::SIGKILL)),
            Ok(None) | Err(_) => swept.remaining.push(pid.as_raw_nonzero().get().unsigned_abs()),
        }
    }
    Ok(swept)
}

fn orphans(held: &BTreeSet<u32>, exempt: &[u32]) -> io::Result<Vec<Pid>> {
    let children = procfs::own_children()?.into_iter().filter(|pid| !held.contains(pid) && !exempt.contains(pid));
    Ok(children.filter_map(|pid| i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw)).collect())
}

fn reap_if_ended(id: WaitId<'_>) -> io::Result<Option<WaitIdStatus>> {
    Ok(waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?)
}
