//! Whose descendant a process is, answered soundly although processes end and their numbers are reused.
//!
//! One step: read the parent's number, open the parent, read the number again. If it is unchanged and the process
//! still alive, the descriptor is of the parent. A process that ends falls to the nearest subreaper above it, so a
//! descendant of a subreaper stays one whatever ends in between, and a walk that was disturbed starts again.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::{pidfd, procfs};

/// Longest chain of parents that is followed.
const MAX_DEPTH: usize = 256;
/// How often a disturbed walk starts again.
const MAX_ATTEMPTS: usize = 64;
/// Pause after a disturbance, so that what is ending can end.
const PAUSE: Duration = Duration::from_micros(200);

/// Where a walk up the parents ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// At this process, one of those looked for.
    Reached(u32),
    /// At the top, without meeting any of them.
    Top,
    /// Nowhere: the process has ended, or the walk was disturbed too often.
    Unknown,
}

enum Attempt {
    Done(Walk),
    /// A process on the way ended while it was looked at.
    Disturbed,
}

/// Walks up from the process `pid` that `process` is a descriptor of, to the first that `is_wanted`, which is asked
/// about `pid` itself first.
pub(crate) fn walk(pid: u32, process: BorrowedFd<'_>, is_wanted: impl Fn(u32) -> bool) -> Walk {
    for _ in 0..MAX_ATTEMPTS {
        match attempt(pid, process, &is_wanted) {
            Attempt::Done(end) => return end,
            Attempt::Disturbed => {
                // If the process itself is gone there is nothing to ask any more.
                if !matches!(pidfd::is_alive(process), Ok(true)) {
                    return Walk::Unknown;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
    Walk::Unknown
}

fn attempt(pid: u32, process: BorrowedFd<'_>, is_wanted: impl Fn(u32) -> bool) -> Attempt {
    let mut current = pid;
    let mut opened: Option<OwnedFd> = None;
    for _ in 0..MAX_DEPTH {
        if is_wanted(current) {
            return Attempt::Done(Walk::Reached(current));
        }
        let fd = opened.as_ref().map_or(process, AsFd::as_fd);
        let Some(parent) = living_parent(current, fd) else { return Attempt::Disturbed };
        if parent == 0 {
            return Attempt::Done(Walk::Top);
        }
        let Ok(parent_fd) = pidfd::open(parent) else { return Attempt::Disturbed };
        if living_parent(current, fd) != Some(parent) {
            return Attempt::Disturbed;
        }
        current = parent;
        opened = Some(parent_fd);
    }
    Attempt::Done(Walk::Unknown)
}

/// The parent's number, read while the process was certainly alive: the kernel shows 0 for one that is being removed.
fn living_parent(pid: u32, process: BorrowedFd<'_>) -> Option<u32> {
    let stat = procfs::stat(pid).ok()?;
    matches!(pidfd::is_alive(process), Ok(true)).then_some(stat.parent_pid)
}
