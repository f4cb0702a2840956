//! Who may connect at all, decided before a byte is read.

use std::os::fd::BorrowedFd;

/// What the peer check found.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerVerdict {
    /// The connection may be read.
    Admit,
    /// It is closed unread and unanswered; the reason goes to the log only.
    Refuse(String),
}

/// Decides by the kernel's word about the other end: its user, and whether it descends from a server.
///
/// It is called for each connection on the accepting task, so it must not wait for anything but the kernel.
pub trait PeerPolicy: Send + Sync + 'static {
    /// Looks at a connected socket of which nothing was read yet.
    fn check(&self, connection: BorrowedFd<'_>) -> PeerVerdict;
}

impl<F> PeerPolicy for F
where
    F: Fn(BorrowedFd<'_>) -> PeerVerdict + Send + Sync + 'static,
{
    fn check(&self, connection: BorrowedFd<'_>) -> PeerVerdict {
        self(connection)
    }
}
