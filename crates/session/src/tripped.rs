//! The tripwire's consequences: what ran without an accept is interrupted, told, and blocks the session.

use std::sync::Arc;

use rules::refusal::{Refusal, RefusalCode};
use rules::tripwire::{block_id, unexplained};
use serde_json::json;

use crate::server::VerifiedServer;
use crate::session::{Session, State};

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

impl State {
    /// Looks for what nobody accepted, in the log as it is at this moment.
    ///
    /// INVARIANT I1: asked for in the same lock that a step or an acknowledgement is decided in, so that nothing that was
    /// read and not judged is overlooked.
    pub(crate) fn judge(&mut self, session_id: &str) {
        let found = unexplained(self.mirror.events(), &self.baseline, &self.sent, &mut self.known_exempt);
        let observation_ids: Vec<String> = found.into_iter().map(|event| event.event_id.clone()).collect();
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
    /// `store_failed`; it is told after the next read then.
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
        self.note_event("lifecycle", payload).await?;
        let mut state = self.state();
        if let Some(now) = state.tripped.as_mut().filter(|now| now.block_id == tripped.block_id) {
            now.told = true;
        }
        Ok(())
    }
}
