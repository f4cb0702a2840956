//! The socket that clients come in through, and who may.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use api::{PeerPolicy, PeerVerdict};
use host::peer::{Descent, GivenUp};
use host::socket::{PrivateSocket, SocketError};
use rules::peer::{Marks, PeerRefusal, Relative, may_be_a_leftover};

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

/// INVARIANT I9: admits processes of this user that do not descend from this one (everything below it is a server, or was
/// started by one) and cannot be what an earlier daemon left.
pub(super) struct OwnUserOnly {
    uid: u32,
    pid: u32,
    /// Filters of system calls that every process here is under.
    filters_of_all: u32,
}

impl OwnUserOnly {
    pub(super) fn of_this_process() -> Self {
        Self {
            uid: host::hygiene::effective_user(),
            pid: std::process::id(),
            // Unknown: as if there were none, so that no more pass.
            filters_of_all: host::peer::given_up_by_all().map_or(0, |by_all| by_all.filters),
        }
    }

    /// Why this peer may not speak.
    fn refusal(&self, peer: &impl Looked) -> Option<PeerRefusal> {
        if peer.uid() != self.uid {
            return Some(PeerRefusal::OtherUser);
        }
        match peer.descent(self.pid) {
            Descent::Descendant(_) => return Some(PeerRefusal::Descendant),
            Descent::Unknown => return Some(PeerRefusal::DescentUnknown),
            Descent::NotDescendant => {}
        }
        match peer.marked_chain(self.filters_of_all) {
            None => Some(PeerRefusal::DescentUnknown),
            Some(chain) => may_be_a_leftover(&chain, self.filters_of_all).then_some(PeerRefusal::AncestryLost),
        }
    }
}

impl PeerPolicy for OwnUserOnly {
    fn check(&self, connection: BorrowedFd<'_>) -> PeerVerdict {
        match host::peer::peer_of(connection) {
            Err(error) => PeerVerdict::Refuse { reason: PeerRefusal::NotIdentified, detail: error.to_string() },
            Ok(peer) => match self.refusal(&peer) {
                None => PeerVerdict::Admit,
                Some(reason) => PeerVerdict::Refuse { reason, detail: words(reason, peer.pid, peer.uid) },
            },
        }
    }
}

fn words(reason: PeerRefusal, pid: u32, uid: u32) -> String {
    match reason {
        PeerRefusal::OtherUser => format!("process {pid} belongs to user {uid}"),
        PeerRefusal::Descendant => format!("process {pid} descends from an Agent Server"),
        PeerRefusal::DescentUnknown => format!("whether process {pid} descends from a server is not known"),
        PeerRefusal::AncestryLost => {
            format!("process {pid} is confined and may be one that an earlier daemon left: who started it is not known")
        }
        PeerRefusal::NotIdentified | PeerRefusal::CheckFailed => format!("process {pid} cannot be judged"),
    }
}

/// What is looked up about a peer.
trait Looked {
    fn uid(&self) -> u32;
    fn descent(&self, from: u32) -> Descent;
    /// The peer and those above it, at least to the first without the wrapper's marks.
    fn marked_chain(&self, filters_of_all: u32) -> Option<Vec<Relative>>;
}

impl Looked for host::peer::Peer {
    fn uid(&self) -> u32 {
        self.uid
    }

    fn descent(&self, from: u32) -> Descent {
        self.descends_from(&[from])
    }

    fn marked_chain(&self, filters_of_all: u32) -> Option<Vec<Relative>> {
        let chain = self.chain_while(|given_up| marks(given_up).are_the_wrappers(filters_of_all))?;
        Some(chain.iter().map(|one| Relative { marks: marks(&one.given_up), session: one.session }).collect())
    }
}

fn marks(given_up: &GivenUp) -> Marks {
    let GivenUp { no_new_privileges, filters, no_core_files } = *given_up;
    Marks { no_new_privileges, filters, no_core_files }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    struct Fake(u32, Descent, Option<Vec<Relative>>);

    impl Looked for Fake {
        fn uid(&self) -> u32 {
            self.0
        }

        fn descent(&self, _: u32) -> Descent {
            self.1
        }

        fn marked_chain(&self, _: u32) -> Option<Vec<Relative>> {
            self.2.clone()
        }
    }

    #[test]
    fn only_a_proved_stranger_of_the_same_user_is_admitted() {
        let door = OwnUserOnly { uid: 7, pid: 1, filters_of_all: 0 };
        let free = Some(vec![Relative { marks: Marks::default(), session: None }]);
        let confined = Marks { no_new_privileges: true, filters: 1, no_core_files: true };
        let lost = Some(vec![Relative { marks: confined, session: Some(9) }]);
        let stranger = Descent::NotDescendant;
        for (uid, descent, chain, expected) in [
            (7, stranger, &free, None),
            (8, stranger, &free, Some(PeerRefusal::OtherUser)),
            (0, stranger, &free, Some(PeerRefusal::OtherUser)),
            (7, Descent::Descendant(1), &free, Some(PeerRefusal::Descendant)),
            (7, Descent::Unknown, &free, Some(PeerRefusal::DescentUnknown)),
            (7, stranger, &None, Some(PeerRefusal::DescentUnknown)),
            (7, stranger, &lost, Some(PeerRefusal::AncestryLost)),
        ] {
            assert_eq!(door.refusal(&Fake(uid, descent, chain.clone())), expected, "{uid} {descent:?} {chain:?}");
        }
    }

    #[test]
    fn the_kernel_is_asked_about_everything() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let _own = UnixStream::connect(&path).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(OwnUserOnly::of_this_process().check(accepted.as_fd()), PeerVerdict::Admit);
        let refused = |door: OwnUserOnly, socket: BorrowedFd<'_>| match door.check(socket) {
            PeerVerdict::Admit => None,
            PeerVerdict::Refuse { reason, .. } => Some(reason),
        };
        let not_ours = OwnUserOnly { uid: u32::MAX, ..OwnUserOnly::of_this_process() };
        assert_eq!(refused(not_ours, accepted.as_fd()), Some(PeerRefusal::OtherUser));
        let (pair, _other) = std::io::pipe().unwrap();
        assert_eq!(refused(OwnUserOnly::of_this_process(), pair.as_fd()), Some(PeerRefusal::NotIdentified));
    }
}
