//! What is known of one workspace's server.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rules::canary::{CanaryResult, CanaryScope};
use rules::lifecycle::{Failures, ServerState};
use rules::refusal::Refusal;
use rules::standing::{self, ServerStanding};

use super::RESTART;
use crate::server::VerifiedServer;
use crate::view::ServerView;

/// The canaries that are read of a server.
const SCOPES: [CanaryScope; 2] = [CanaryScope::Installation, CanaryScope::Server];

pub(super) struct Slot {
    pub(super) state: ServerState,
    /// Published while the state is `Ready`.
    pub(super) server: Option<Arc<VerifiedServer>>,
    /// Canaries of the last start that failed.
    pub(super) failed_canaries: Vec<CanaryResult>,
    /// What the newest read of a server's canaries got no answer for; what was read before is in force.
    pub(super) unanswered: Vec<CanaryResult>,
    /// Servers whose end has not been noted yet: the one that is up, and those before it that have hardly ended.
    pub(super) watched: u32,
    pub(super) failures: Failures,
    /// When the last server was proved.
    pub(super) ready_at_ms: u64,
    pub(super) last_used: Option<Instant>,
    /// The keeper is bringing its sessions back.
    pub(super) being_kept: bool,
    /// The keeper found no place for it, and does not look again before.
    pub(super) no_place_until_ms: u64,
    /// One start at a time.
    pub(super) start_lock: Arc<tokio::sync::Mutex<()>>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            state: ServerState::Stopped,
            server: None,
            failed_canaries: Vec::new(),
            unanswered: Vec::new(),
            watched: 0,
            failures: Failures::default(),
            ready_at_ms: 0,
            last_used: None,
            being_kept: false,
            no_place_until_ms: 0,
            start_lock: Arc::default(),
        }
    }
}

impl Slot {
    /// The server, while its process runs and nobody is ending it.
    pub(super) fn up(&self) -> Option<Arc<VerifiedServer>> {
        self.server.clone().filter(|server| !server.is_gone() && !server.is_ending())
    }

    pub(super) fn holds_process(&self) -> bool {
        match self.state {
            ServerState::Starting { .. } | ServerState::Ready | ServerState::Stopping { .. } => true,
            ServerState::Stopped | ServerState::Failed { .. } => false,
        }
    }

    /// Its process has ended, or is about to.
    pub(super) fn is_ending(&self) -> bool {
        match self.state {
            ServerState::Stopping { .. } => true,
            ServerState::Ready => self.up().is_none(),
            ServerState::Starting { .. } | ServerState::Stopped | ServerState::Failed { .. } => false,
        }
    }

    pub(super) fn failure(&self) -> Option<Refusal> {
        match &self.state {
            ServerState::Failed { reason } => Some(reason.clone()),
            ServerState::Stopped | ServerState::Starting { .. } | ServerState::Ready | ServerState::Stopping { .. } => {
                None
            }
        }
    }

    /// It fails again and again, whether or not it is still tried by itself.
    pub(super) fn is_down_for_good(&self) -> bool {
        self.failure().is_some() && self.failures.in_a_row() >= RESTART.loop_after
    }

    pub(super) fn standing(&self) -> ServerStanding {
        standing::server(&self.state, self.is_ending(), self.failures.is_crash_looping(RESTART))
    }

    /// `at` turns a moment into the wall clock's words.
    pub(super) fn view(&self, workspace: &Path, at: impl Fn(u64) -> String) -> ServerView {
        let (up, reason, state) = (self.up(), self.failure(), self.standing());
        let results = up.as_ref().map_or_else(|| self.failed_canaries.clone(), |server| server.canaries().results);
        let next_try_at_ms = self.failures.next_by_itself(RESTART).filter(|_| reason.is_some());
        ServerView {
            workspace: workspace.to_string_lossy().into_owned(),
            state,
            version: up.as_ref().map(|server| server.client().contract().version().to_owned()),
            server_start_id: up.as_ref().map(|server| server.start_id().to_owned()),
            launch_config_digest: up.as_ref().map(|server| server.owned().launch_config_digest().to_owned()),
            pid: up.as_ref().map(|server| server.owned().pid()),
            canaries: standing::canaries(&SCOPES, &results, &self.unanswered, state.into()),
            reason,
            failures_in_a_row: self.failures.in_a_row(),
            next_try_at: next_try_at_ms.map(at),
        }
    }
}
