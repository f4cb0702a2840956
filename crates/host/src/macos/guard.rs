//! Guards of a server's tree: not built for this system, which has neither domains of signals nor subreapers. Every start of
//! one fails.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::child::ChildProcess;
use crate::spawn::SpawnSpec;

pub use crate::io_util::take_fd;

/// See the Linux side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It would be delivered.
    Open,
    /// It is not permitted.
    Refused,
    /// Anything else.
    Unknown,
}

/// No value of it exists here.
#[derive(Debug)]
pub enum Outsider {}

impl Outsider {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn parent() -> io::Result<Self> {
        Err(super::unsupported("a guard"))
    }

    /// Never called.
    #[must_use]
    pub fn reach(&self) -> Reach {
        match *self {}
    }
}

/// Fails.
///
/// # Errors
/// Always.
pub fn enter_signal_domain(_grants_links: bool) -> io::Result<()> {
    Err(super::unsupported("a domain of signals"))
}

/// Never called.
///
/// # Errors
/// Never.
pub fn kill_domain(outsider: &Outsider) -> io::Result<bool> {
    match *outsider {}
}

/// Fails.
///
/// # Errors
/// Always.
pub fn outlive_parent() -> io::Result<()> {
    Err(super::unsupported("a guard"))
}

/// Does nothing.
pub fn ignore_polite_signals() {}

/// Fails.
///
/// # Errors
/// Always.
pub fn own_pidfd() -> io::Result<OwnedFd> {
    Err(super::unsupported("a descriptor of a process"))
}

/// Fails.
///
/// # Errors
/// Always.
pub fn fork(_body: impl FnOnce() -> u8) -> io::Result<ChildProcess> {
    Err(super::unsupported("a guard"))
}

/// Fails.
///
/// # Errors
/// Always.
pub fn spawn_here(_spec: SpawnSpec, _cgroup: Option<OwnedFd>) -> io::Result<ChildProcess> {
    Err(super::unsupported("a guard"))
}

/// Fails.
///
/// # Errors
/// Always.
pub fn take_output() -> io::Result<(OwnedFd, OwnedFd)> {
    Err(super::unsupported("a guard"))
}

/// Fails.
///
/// # Errors
/// Always.
pub fn ended_children() -> io::Result<OwnedFd> {
    Err(super::unsupported("a guard"))
}

/// Fails.
///
/// # Errors
/// Always.
pub fn wait_any<const N: usize>(_fds: [BorrowedFd<'_>; N], _timeout: Option<Duration>) -> io::Result<[bool; N]> {
    Err(super::unsupported("a guard"))
}

/// Does nothing.
pub fn drain(_fd: BorrowedFd<'_>) {}
