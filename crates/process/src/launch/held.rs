//! A started server as it is held here: below its guards, or bare.

use std::time::Duration;

use host::{ChildProcess, Signal};
use rules::guard::Armament;

use super::guarded::{Guarded, GuardsEnd};
use super::watch::ignore_gone;
use crate::guard::{Named, Order};

/// One wait of the watching thread; it waits again.
const WAIT: Duration = Duration::from_secs(3600);
/// For a process that has ended to be reaped.
const REAP_WAIT: Duration = Duration::from_secs(5);

/// Whoever ends it, [`Self::wait_end`] comes back, in a thread that does nothing else.
pub(crate) enum Held {
    /// A child of ours, ended by walking its tree.
    Bare(ChildProcess),
    /// Below its guards.
    Guarded(Box<Guarded>),
}

impl Held {
    /// The server's process, which leads its group and session.
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Bare(child) => child.pid(),
            Self::Guarded(guarded) => guarded.server().pid,
        }
    }

    /// The process that whatever the server starts stays below, as long as it lives.
    pub(crate) fn tree_pid(&self) -> u32 {
        match self {
            Self::Bare(child) => child.pid(),
            Self::Guarded(guarded) => guarded.guards()[1].pid,
        }
    }

    /// The guards, the outer one first.
    pub(crate) fn guards(&self) -> Vec<Named> {
        match self {
            Self::Bare(_) => Vec::new(),
            Self::Guarded(guarded) => guarded.guards().to_vec(),
        }
    }

    /// How the guards end the tree.
    pub(crate) fn armament(&self) -> Option<Armament> {
        match self {
            Self::Bare(_) => None,
            Self::Guarded(guarded) => Some(guarded.armament()),
        }
    }

    /// SIGTERM to the server's group.
    pub(crate) fn terminate(&self) {
        match self {
            Self::Bare(child) => ignore_gone(child.signal_group(Signal::Terminate)),
            Self::Guarded(guarded) => guarded.order(Order::Terminate),
        }
    }

    /// Ends the server, and by the guards its tree.
    pub(crate) fn kill(&self) {
        match self {
            Self::Bare(child) => ignore_gone(child.signal_group(Signal::Kill)),
            Self::Guarded(guarded) => guarded.order(Order::End),
        }
    }

    /// The same for guards that do not obey.
    pub(crate) fn give_up(&self) {
        match self {
            Self::Bare(child) => ignore_gone(child.signal_group(Signal::Kill)),
            Self::Guarded(guarded) => guarded.give_up(),
        }
    }

    /// Waits for the end. What is left then has fallen to this process.
    pub(crate) fn wait_end(&self) -> GuardsEnd {
        match self {
            Self::Bare(child) => GuardsEnd { status: wait_bare(child), killed: 0, took: None },
            Self::Guarded(guarded) => guarded.wait_end(),
        }
    }

    /// Once nothing is left.
    pub(crate) fn clear(&self) {
        match self {
            Self::Bare(_) => {}
            Self::Guarded(guarded) => guarded.remove_cgroup(),
        }
    }
}

fn wait_bare(child: &ChildProcess) -> Option<host::ExitStatus> {
    let waited = loop {
        match child.has_ended(WAIT) {
            Ok(true) => break Ok(()),
            Ok(false) => {}
            Err(error) => break Err(error),
        }
    };
    // Not reaped yet, so the group is still its own: what is left in it goes first.
    ignore_gone(child.signal_group(Signal::Kill));
    waited.and_then(|()| child.wait_exit(REAP_WAIT)).unwrap_or_else(|error| {
        tracing::warn!(%error, "the server's exit status was lost");
        None
    })
}
