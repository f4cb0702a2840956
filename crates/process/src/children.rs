//! The processes of this crate's own making, so that reaping orphans never takes an exit status somebody waits for.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

static OWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<u32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Start a process and note its pid in one step: nobody can see the child before it is known to be ours.
pub(crate) fn spawn_known<T>(spawn: impl FnOnce() -> io::Result<T>, pid_of: impl Fn(&T) -> u32) -> io::Result<T> {
    let mut known = own();
    let child = spawn()?;
    known.insert(pid_of(&child));
    Ok(child)
}

/// Forget a process once its exit status was taken.
pub(crate) fn forget(pid: u32) {
    own().remove(&pid);
}

/// Do something that needs every pid of ours, while no new one can appear.
pub(crate) fn with_known<R>(work: impl FnOnce(&[u32]) -> R) -> R {
    let known = own();
    let pids: Vec<u32> = known.iter().copied().collect();
    work(&pids)
}
