//! Putting a session on a started server.

use std::sync::Arc;

use rules::log::ExecutionStatus;
use rules::refusal::Refusal;
use serde_json::json;
use store::{AcceptState, SessionOrigin};

use crate::server::VerifiedServer;
use crate::session::Session;
use crate::{stream, upstream};

impl Session {
    /// Asserts the policy, reads the conversation, and begins to follow it. Does nothing when the session is on this
    /// server already.
    ///
    /// # Errors
    /// An upstream refusal; the session is then on no server.
    pub(crate) async fn bind(self: &Arc<Self>, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        let _binding = self.binding.lock().await;
        if self.follows(server) {
            return Ok(());
        }
        // Policy files may have been changed while no server held them.
        server.client().set_policy(self.id()).await.map_err(|error| upstream::refusal(&error))?;
        let first_read = {
            let mut state = self.state();
            state.server = Some(Arc::clone(server));
            state.unreachable = None;
            state.quiet.note_restart();
            !state.taken_up
        };
        if let Err(refusal) = self.observe_first(server, first_read).await {
            self.state().server = None;
            return Err(refusal);
        }
        stream::follow(self, server);
        let restarted = self.state().returning.take().is_some_and(|returning| returning.restarted);
        let event = if restarted { "server_restarted" } else { "server_ready" };
        let payload = json!({"event": event, "server_start_id": server.start_id()});
        self.note_event("lifecycle", payload).await
    }

    async fn observe_first(self: &Arc<Self>, server: &Arc<VerifiedServer>, first_read: bool) -> Result<(), Refusal> {
        if first_read {
            self.read_first(server).await?;
            self.observe_state(server).await?;
        } else {
            self.observe(server).await?;
        }
        {
            // The statuses that were read are of a life that is over: the last of them may say that a turn runs which nobody
            // ended any more. What runs now, the conversation itself says.
            let mut state = self.state();
            state.quiet.note_restart();
            if state.status == ExecutionStatus::Running {
                state.quiet.note_status(ExecutionStatus::Running);
            }
        }
        self.void_unanswered().await?;
        self.after_change(server).await
    }

    /// Reads the whole log once, and settles what of it was there before gatepost watched.
    async fn read_first(self: &Arc<Self>, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        let id = self.id().as_str().to_owned();
        let accepts = self.shared().records.ledger(move |ledger| ledger.accepts(&id)).await?;
        self.read_whole_log(server).await?;
        let taken_up = {
            let mut state = self.state();
            state.sent.extend(accepts.into_iter().map(|accept| accept.event_id));
            // A conversation that is taken up is trusted up to its end as it is now, off the active branch too.
            let taken_up = state.record.origin == SessionOrigin::Attached && state.record.baseline_event_id.is_none();
            if taken_up {
                state.record.baseline_event_id = state.log.mirror.last_event_id().map(str::to_owned);
            }
            if state.log.baseline.is_empty() {
                let upto = state
                    .record
                    .baseline_event_id
                    .as_deref()
                    .and_then(|event_id| state.log.mirror.position(event_id))
                    .map_or(0, |position| position + 1);
                let known = state.log.mirror.events().iter().take(upto).map(|event| event.event_id.clone()).collect();
                state.log.baseline = known;
            }
            if taken_up {
                state.record.changed_at_ms = crate::clock::now_ms();
            }
            taken_up.then(|| state.record.clone())
        };
        if let Some(record) = taken_up {
            self.shared().records.write("put_session", move |ledger| ledger.put_session(record)).await?;
        }
        self.state().taken_up = true;
        Ok(())
    }

    /// Accepts that were sent to a server that is gone and were not answered: whether they ran is not known.
    async fn void_unanswered(&self) -> Result<(), Refusal> {
        let id = self.id().as_str().to_owned();
        let accepts = self.shared().records.ledger(move |ledger| ledger.accepts(&id)).await?;
        let open: Vec<String> = accepts
            .into_iter()
            .filter(|accept| accept.state == AcceptState::Sent)
            .map(|accept| accept.event_id)
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let answers = self.answers(&open)?;
        self.record_answers(&open, &answers).await
    }
}
