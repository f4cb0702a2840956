//! The held children: none can be made on macOS.

use std::io;
use std::os::fd::BorrowedFd;

use crate::child::ExitStatus;

pub(crate) fn reap(_pid: u32, _pidfd: BorrowedFd<'_>) -> io::Result<Option<ExitStatus>> {
    Err(super::unsupported("reaping a process"))
}

pub(crate) fn give_up(_pid: u32) {}

pub(crate) fn kill_held() -> usize {
    0
}
