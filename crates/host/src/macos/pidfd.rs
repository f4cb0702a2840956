//! Signals to a child: macOS has no process descriptors. No child can be made there, so nothing calls these.

use std::io;
use std::os::fd::BorrowedFd;

use crate::child::Signal;

pub(crate) fn send_signal(_pidfd: BorrowedFd<'_>, _signal: Signal) -> io::Result<()> {
    Err(super::unsupported("signalling a process"))
}

pub(crate) fn signal_group(_leader: u32, _signal: Signal) -> io::Result<()> {
    Err(super::unsupported("signalling a process group"))
}
