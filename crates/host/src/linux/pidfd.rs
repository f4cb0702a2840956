//! Process descriptors, and the few signals that are sent.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::child::Signal;

impl Signal {
    fn raw(self) -> rustix::process::Signal {
        match self {
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Kill => rustix::process::Signal::KILL,
            Self::Stop => rustix::process::Signal::STOP,
            Self::Continue => rustix::process::Signal::CONT,
        }
    }
}

/// A number that can be a process of ours: above 1, since 0 and 1 mean other things to the kernel.
fn checked(pid: u32) -> io::Result<Pid> {
    let raw = i32::try_from(pid).ok().filter(|raw| *raw > 1);
    raw.and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("no process id: {pid}")))
}

/// Opens the process that has this number now (process 1 too: it can only be looked at).
pub(crate) fn open(pid: u32) -> io::Result<OwnedFd> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = raw.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("no process id: {pid}")))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Whether the process has not ended yet.
pub(crate) fn is_alive(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(!crate::io_util::wait_readable(pidfd, Duration::ZERO)?)
}

pub(crate) fn send_signal(pidfd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    pidfd_send_signal(pidfd, signal.raw()).map_err(gone_is_not_found)
}

/// Signals a group whose leader is an unreaped child of ours. Never our own group.
pub(crate) fn signal_group(leader: u32, signal: Signal) -> io::Result<()> {
    let group = checked(leader)?;
    if leader == own_group() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "refused to signal our own process group"));
    }
    kill_process_group(group, signal.raw()).map_err(gone_is_not_found)
}

/// The group of this process; 0, which is no group's number, where it was begun outside of what is visible from here, as in a
/// container that a command was sent into. `rustix` takes that for impossible.
fn own_group() -> u32 {
    // SAFETY: always succeeds and changes nothing.
    unsafe { libc::getpgrp() }.unsigned_abs()
}

fn gone_is_not_found(error: rustix::io::Errno) -> io::Error {
    if error == rustix::io::Errno::SRCH {
        io::Error::new(io::ErrorKind::NotFound, "the process is gone")
    } else {
        error.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a signal that changes nothing, whomever it reached.
    #[test]
    fn neither_our_own_group_nor_what_is_no_group_of_ours_is_signalled() {
        for group in [own_group(), 0, 1, u32::MAX] {
            let refused = signal_group(group, Signal::Continue).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{group}");
        }
    }
}
