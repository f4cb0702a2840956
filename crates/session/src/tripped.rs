//! The tripwire's consequences: what ran without an accept is interrupted, told, and blocks the session.

use std::sync::Arc;

use rules::log::LogEvent;
use rules::refusal::{Refusal, RefusalCode};
use rules::tripwire::{block_id, unexplained};
use serde_json::json;

use crate::mirror::Mirror;
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::state::{Current, State};

/// What the tripwire found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tripped {
    /// What an owner acknowledges.
    pub(crate) block_id: String,
    /// Observations of actions that nobody accepted, in log order.
    pub(crate) observation_ids: Vec<String>,
    /// Why the session takes no step.
    pub(crate) refusal: Refusal,
    /// Whether readers were told.
    told: bool,
}

impl Current {
    /// Whether something was read that is to be judged before it can be journaled. Not while the session is taken up: what
    /// of its log is trusted is not known yet then.
    pub(crate) fn has_unjournaled(&self) -> bool {
        self.taken_up && !self.unjournaled.events().is_empty()
    }
}

impl State {
    /// What could not be journaled is, and stands in the mirror.
    pub(crate) fn forget_journaled(&mut self) {
        let is_there = |event: &LogEvent| self.log.mirror.position(&event.event_id).is_some();
        if self.unjournaled.events().iter().all(is_there) {
            self.unjournaled = Mirror::default();
        }
    }

    /// Looks for what nobody accepted, in the log as it is at this moment.
    ///
    /// INVARIANT I1: asked for in the same lock that a step or an acknowledgement is decided in, so that nothing that was
    /// read and not judged is overlooked.
    pub(crate) fn judge(&mut self, session_id: &str) {
        let ids = |found: Vec<&LogEvent>| found.into_iter().map(|event| event.event_id.clone()).collect();
        let Self { log, current } = self;
        let known = &mut log.known_exempt;
        let observation_ids: Vec<String> = if current.unjournaled.events().is_empty() {
            ids(unexplained(log.mirror.events(), &log.baseline, &current.sent, known))
        } else {
            let behind =
                current.unjournaled.events().iter().filter(|event| log.mirror.position(&event.event_id).is_none());
            let events: Vec<LogEvent> = log.mirror.events().iter().chain(behind).cloned().collect();
            ids(unexplained(&events, &log.baseline, &current.sent, known))
        };
        let Some(first) = observation_ids.first() else {
            self.tripped = None;
            return;
        };
        let block_id = block_id(session_id, &observation_ids);
        if self.tripped.as_ref().is_some_and(|tripped| tripped.block_id == block_id) {
            return;
        }
        let detail = format!(
            "observation {first} is of an action that nobody accepted; look at the events, then acknowledge the block or \
             close the session"
        );
        let refusal = Refusal::new(RefusalCode::UnreviewedAction, detail);
        self.tripped = Some(Tripped { block_id, observation_ids, refusal, told: false });
    }
}

impl Session {
    /// Something ran that nobody accepted: first it is interrupted, then readers are told.
    ///
    /// # Errors
    /// `store_failed`; that it is told is owed then.
    pub(crate) async fn watch_for_unreviewed(self: &Arc<Self>, server: &VerifiedServer) -> Result<(), Refusal> {
        let tripped = {
            let mut state = self.state();
            state.judge(self.id().as_str());
            match &state.tripped {
                Some(tripped) if !tripped.told => tripped.clone(),
                Some(_) | None => return Ok(()),
            }
        };
        let (id, observations) = (self.id().as_str(), &tripped.observation_ids);
        tracing::error!(session = id, ?observations, "an action ran that nobody accepted");
        if let Err(error) = server.client().interrupt(self.id()).await {
            // What breaks its word and does not stop when it is told to is stopped.
            tracing::error!(session = id, %error, "the session could not be interrupted; its server is ended");
            server.kill().await;
        }
        let payload = json!({
            "event": "session_blocked",
            "code": tripped.refusal.code.as_str(),
            "block_id": tripped.block_id,
            "observations": observations,
        });
        if let Some(now) = self.state().tripped.as_mut().filter(|now| now.block_id == tripped.block_id) {
            now.told = true;
        }
        self.note_event("lifecycle", payload).await
    }
}
