//! The children that are held by a [`crate::child::ChildProcess`]: not orphans, and not anyone else's to reap.
//!
//! INVARIANT: forking and reaping happen while the set is locked, so a number in it always means a child that was
//! started here and is still unreaped.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::child::ExitStatus;

static HELD: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<u32>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `fork` and records the child it returns.
pub(crate) fn fork_recorded(fork: impl FnOnce() -> io::Result<u32>) -> io::Result<u32> {
    let mut held = held();
    let pid = fork()?;
    held.insert(pid);
    Ok(pid)
}

/// The held children now.
pub(crate) fn snapshot() -> BTreeSet<u32> {
    held().clone()
}

/// Reaps a held child if it has ended.
pub(crate) fn reap(pid: u32, pidfd: BorrowedFd<'_>) -> io::Result<Option<ExitStatus>> {
    let mut held = held();
    let Some(status) = waitid(WaitId::PidFd(pidfd), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)? else {
        return Ok(None);
    };
    held.remove(&pid);
    let status = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitStatus::Code(code),
        (None, Some(signal)) => ExitStatus::Signal(signal),
        (None, None) => return Err(io::Error::other("the kernel reported an end that is neither exit nor signal")),
    };
    Ok(Some(status))
}

/// Makes the child an orphan like any other.
pub(crate) fn give_up(pid: u32) {
    held().remove(&pid);
}
