//! The socket that clients come in through, and who may.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use api::{PeerPolicy, PeerVerdict};
use host::peer::Descent;
use host::socket::{PrivateSocket, SocketError};

/// The bound socket.
pub(super) enum Door {
    /// Bound here: its name goes when this is dropped.
    Bound(PrivateSocket),
    /// Handed over by a service manager, which keeps it for the next start.
    Activated(UnixListener),
}

impl Door {
    /// The socket that a service manager handed over, if it handed over any. To be asked before anything else opens
    /// descriptors: the number of one that was promised and is not there could be taken by then.
    pub(super) fn handed_over() -> Result<Option<Self>, SocketError> {
        let handed =
            sd_notify::listen_fds().map_err(|error| SocketError::NotFit(format!("cannot be used ({error})")))?;
        match handed.len() {
            0 => Ok(None),
            1 => Ok(Some(Self::Activated(host::socket::adopt_activated()?))),
            several => Err(SocketError::NotFit(format!("is one of {several}, and one is wanted"))),
        }
    }

    /// Bound at this path.
    pub(super) fn bind(socket: &Path) -> Result<Self, SocketError> {
        let (Some(directory), Some(name)) = (socket.parent(), socket.file_name().and_then(|name| name.to_str())) else {
            return Err(SocketError::NotASocket { path: socket.to_path_buf() });
        };
        host::socket::bind_private_unix(directory, name).map(Self::Bound)
    }

    /// A listener for the running event loop.
    pub(super) fn listener(&self) -> io::Result<tokio::net::UnixListener> {
        let listener = match self {
            Self::Bound(socket) => socket.listener().try_clone()?,
            Self::Activated(listener) => listener.try_clone()?,
        };
        listener.set_nonblocking(true)?;
        tokio::net::UnixListener::from_std(listener)
    }

    /// Where clients connect to.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Bound(socket) => socket.path().to_path_buf(),
            Self::Activated(listener) => {
                listener.local_addr().ok().and_then(|own| own.as_pathname().map(Path::to_path_buf)).unwrap_or_default()
            }
        }
    }
}

/// INVARIANT I9: admits processes of this user that do not descend from this one. Everything below it is a server, or was
/// started by one.
pub(super) struct OwnUserOnly {
    uid: u32,
    pid: u32,
}

impl OwnUserOnly {
    pub(super) fn of_this_process() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), pid: std::process::id() }
    }

    fn judge(&self, uid: u32, pid: u32, descent: impl FnOnce() -> Descent) -> PeerVerdict {
        if uid != self.uid {
            return PeerVerdict::Refuse(format!("process {pid} belongs to user {uid}"));
        }
        match descent() {
            Descent::NotDescendant => PeerVerdict::Admit,
            Descent::Descendant(_) => PeerVerdict::Refuse(format!("process {pid} descends from an Agent Server")),
            Descent::Unknown => {
                PeerVerdict::Refuse(format!("whether process {pid} descends from a server is not known"))
            }
        }
    }
}

impl PeerPolicy for OwnUserOnly {
    fn check(&self, connection: BorrowedFd<'_>) -> PeerVerdict {
        match host::peer::peer_of(connection) {
            Ok(peer) => self.judge(peer.uid, peer.pid, || peer.descends_from(&[self.pid])),
            Err(error) => PeerVerdict::Refuse(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_a_proved_stranger_of_the_same_user_is_admitted() {
        let door = OwnUserOnly { uid: 7, pid: 1 };
        assert_eq!(door.judge(7, 9, || Descent::NotDescendant), PeerVerdict::Admit);
        for (uid, descent) in [
            (8, Descent::NotDescendant),
            (0, Descent::NotDescendant),
            (7, Descent::Descendant(1)),
            (7, Descent::Unknown),
        ] {
            let verdict = door.judge(uid, 9, || descent);
            assert!(matches!(&verdict, PeerVerdict::Refuse(why) if why.contains('9')), "{verdict:?}");
        }
    }

    #[test]
    fn the_kernel_is_asked_about_both() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let _own = UnixStream::connect(&path).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(OwnUserOnly::of_this_process().check(accepted.as_fd()), PeerVerdict::Admit);
        let not_ours = OwnUserOnly { uid: u32::MAX, pid: std::process::id() };
        assert!(matches!(not_ours.check(accepted.as_fd()), PeerVerdict::Refuse(_)));
        let (pair, _other) = std::io::pipe().unwrap();
        assert!(matches!(OwnUserOnly::of_this_process().check(pair.as_fd()), PeerVerdict::Refuse(_)));
    }
}
