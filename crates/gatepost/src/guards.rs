//! What stands between the agent and the daemon, outside the start-up module.

use host::confine::Parts;

/// Which guards there are: all of them in everything that ships. A daemon of the tests goes without some, to show what they
/// are needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guards {
    /// What a process that a server starts gives up.
    pub confinement: Parts,
    /// Others of the daemon's user cannot read the memory of the daemon, nor that of the guards of a server's tree.
    pub unreadable: bool,
    /// A server's tree has guards, which end it also when the daemon is killed.
    pub tree: bool,
    /// Who descends from a server is not answered at the daemon's socket.
    pub peers: bool,
}

impl Guards {
    /// Everything.
    pub const ALL: Self = Self { confinement: Parts::ALL, unreadable: true, tree: true, peers: true };
}
