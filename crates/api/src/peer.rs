//! Who may connect at all, decided before a byte is read.

use std::os::fd::BorrowedFd;

use rules::peer::PeerRefusal;

/// What the peer check found.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerVerdict {
    /// The connection may be read.
    Admit,
    /// It is closed unread and unanswered. The reason goes to log and status, the detail (which holds nothing that the peer
    /// chose) to the log only.
    Refuse {
        /// Why.
        reason: PeerRefusal,
        /// The same for people, with numbers.
        detail: String,
    },
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
