//! Who is at the other end of a Unix socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::ancestry::{self, Walk};
use super::procfs;

pub use super::procfs::GivenUp;

/// `SO_PEERPIDFD` of Linux 6.5 and later, from the kernel's `include/uapi/asm-generic/socket.h`; x86_64 and aarch64 use
/// that file as it is.
const SO_PEERPIDFD: libc::c_int = 77;

/// Why the peer cannot be told. A connection without an answer is refused.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// Not a connected Unix socket, or the kernel refused.
    #[error("the peer's user id cannot be read: {0}")]
    Credentials(io::Error),
    /// Linux before 6.5, or the peer has ended.
    #[error("the peer's process cannot be opened (Linux 6.5 or later is needed): {0}")]
    Process(io::Error),
    /// The peer has ended, or lives in a process namespace that we cannot see into.
    #[error("the peer's process has ended or cannot be seen from here")]
    NotVisible,
}

/// Whether a process descends from one of the given ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// It does not.
    NotDescendant,
    /// It is, or descends from, this one of them.
    Descendant(u32),
    /// It ended meanwhile, or its ancestors kept changing. Treat it as a descendant.
    Unknown,
}

/// One process of a chain of parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relative {
    /// What it has given up for good.
    pub given_up: GivenUp,
    /// The session that it is in; `None` when that is not visible from here.
    pub session: Option<u32>,
}

/// The process that called `connect`. Whether it still holds the socket is not known to the kernel.
#[derive(Debug)]
pub struct Peer {
    /// Effective user id when it connected.
    pub uid: u32,
    /// Process id, valid as long as [`Self::descends_from`] does not answer [`Descent::Unknown`].
    pub pid: u32,
    pidfd: OwnedFd,
}

impl Peer {
    /// Whether the peer is or descends from one of `ancestors`, which must be alive. With a subreaper among them (the
    /// daemon itself, every child of [`crate::spawn::Spawner`]) orphans of its tree are found too.
    ///
    /// The calling process itself is never a descendant, also not when it names itself: a daemon asks with its own
    /// number to refuse whatever it started, and may still connect to itself.
    #[must_use]
    pub fn descends_from(&self, ancestors: &[u32]) -> Descent {
        if self.pid == std::process::id() {
            return Descent::NotDescendant;
        }
        match ancestry::walk(self.pid, self.pidfd.as_fd(), |_, pid| Ok(ancestors.contains(&pid))) {
            Walk::Reached(pid) => Descent::Descendant(pid),
            Walk::Top => Descent::NotDescendant,
            Walk::Unknown => Descent::Unknown,
        }
    }

    /// The peer and those above it, parent by parent, up to the first for which `goes_on` is false, or the top. `None`
    /// when that cannot be told.
    #[must_use]
    pub fn chain_while(&self, goes_on: impl Fn(&GivenUp) -> bool) -> Option<Vec<Relative>> {
        let mut chain = Vec::new();
        let end = ancestry::walk(self.pid, self.pidfd.as_fd(), |generation, pid| {
            chain.truncate(generation);
            let session = Some(procfs::stat(pid)?.session).filter(|session| *session != 0);
            let relative = Relative { given_up: procfs::given_up(pid)?, session };
            chain.push(relative);
            Ok(!goes_on(&relative.given_up))
        });
        match end {
            Walk::Reached(_) | Walk::Top => Some(chain),
            Walk::Unknown => None,
        }
    }
}

/// What the first process of this view has given up, and so whatever it started: that of a container, for one.
///
/// # Errors
/// When it cannot be read.
pub fn given_up_by_all() -> io::Result<GivenUp> {
    procfs::given_up(1)
}

/// Who connected `socket`.
///
/// # Errors
/// When it cannot be told; there is no weaker way that would be safe against reused process ids.
pub fn peer_of(socket: impl AsFd) -> Result<Peer, PeerError> {
    let socket = socket.as_fd();
    let credentials =
        rustix::net::sockopt::socket_peercred(socket).map_err(|error| PeerError::Credentials(error.into()))?;
    let pidfd = peer_pidfd(socket).map_err(PeerError::Process)?;
    let pid = procfs::pid_of(pidfd.as_fd()).map_err(PeerError::Process)?.ok_or(PeerError::NotVisible)?;
    Ok(Peer { uid: credentials.uid.as_raw(), pid, pidfd })
}

/// [`peer_of`] and [`Peer::descends_from`] in one.
///
/// # Errors
/// As [`peer_of`].
pub fn peer_descends_from(socket: impl AsFd, ancestors: &[u32]) -> Result<Descent, PeerError> {
    Ok(peer_of(socket)?.descends_from(ancestors))
}

fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut fd: RawFd = -1;
    let mut length = size_of::<RawFd>() as libc::socklen_t;
    // SAFETY: `fd` and `length` are valid for writing, and `length` is the size of `fd`.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            std::ptr::from_mut(&mut fd).cast(),
            &mut length,
        )
    };
    if answer == -1 {
        return Err(io::Error::last_os_error());
    }
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
