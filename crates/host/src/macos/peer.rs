//! Who is at the other end of a Unix socket, on macOS. Never run; every connection is refused until it can be told
//! soundly.

use std::io;
use std::os::fd::AsFd;

/// Why the peer cannot be told. A connection without an answer is refused.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// Not a connected Unix socket, or the kernel refused.
    #[error("the peer's user id cannot be read: {0}")]
    Credentials(io::Error),
    /// The peer's process cannot be opened.
    #[error("the peer's process cannot be opened: {0}")]
    Process(io::Error),
    /// The peer has ended.
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

/// What a process without privileges can give up and never get back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenUp {
    /// It gains no privileges by executing a program.
    pub no_new_privileges: bool,
    /// Number of filters of system calls that it is under.
    pub filters: u32,
    /// The hard limit of its core files is zero.
    pub no_core_files: bool,
}

/// One process of a chain of parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relative {
    /// What it has given up for good.
    pub given_up: GivenUp,
    /// The session that it is in; `None` when that is not visible from here.
    pub session: Option<u32>,
}

/// The process that called `connect`.
#[derive(Debug)]
pub struct Peer {
    /// Effective user id when it connected.
    pub uid: u32,
    /// Process id.
    pub pid: u32,
}

impl Peer {
    /// Without process descriptors and a subreaper there is no sound answer.
    #[must_use]
    pub fn descends_from(&self, _ancestors: &[u32]) -> Descent {
        Descent::Unknown
    }

    /// Cannot be told.
    #[must_use]
    pub fn chain_while(&self, _goes_on: impl Fn(&GivenUp) -> bool) -> Option<Vec<Relative>> {
        None
    }
}

/// What the first process has given up.
///
/// # Errors
/// Always.
pub fn given_up_by_all() -> io::Result<GivenUp> {
    Err(super::unsupported("reading what a process has given up"))
}

/// Who connected `socket`.
///
/// # Errors
/// Always.
pub fn peer_of(_socket: impl AsFd) -> Result<Peer, PeerError> {
    Err(PeerError::Process(super::unsupported("opening the peer's process")))
}

/// [`peer_of`] and [`Peer::descends_from`] in one.
///
/// # Errors
/// Always.
pub fn peer_descends_from(socket: impl AsFd, ancestors: &[u32]) -> Result<Descent, PeerError> {
    Ok(peer_of(socket)?.descends_from(ancestors))
}
