//! After every read: what it means for open decisions, the waiting batch and queued prompts.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rules::approval::{AcceptEvidence, accept_evidence};
use rules::branch::Answer;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::json;
use store::AcceptState;

use crate::clock;
use crate::records::OpenReceipt;
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::state::{OpenDecision, Returning};

impl Session {
    /// Draws the consequences of what was read.
    ///
    /// # Errors
    /// `store_failed`; what could not be recorded is tried again after the next read.
    pub(crate) async fn after_change(self: &Arc<Self>, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        {
            // Two readers that drew the same consequence would tell it twice.
            let _one_at_a_time = self.consequences.lock().await;
            // First: what cannot be written holds up no interrupt.
            self.watch_for_unreviewed(server).await?;
            self.journal_owed().await?;
            self.resolve_unanswered(server).await;
            self.resolve_decisions(server).await?;
            self.announce_approval().await?;
        }
        self.state().refresh_generation(self.id().as_str());
        self.announce_change();
        if self.may_deliver() && !self.delivering.load(Ordering::Acquire) {
            tokio::spawn(delivery(Arc::clone(self), Arc::clone(server)));
        }
        Ok(())
    }

    /// Closes the receipt of every accept whose evidence stands, or can no longer come.
    async fn resolve_decisions(&self, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        self.withdraw_not_sent().await?;
        let open = self.state().open_decisions.clone();
        for decision in open {
            let restarted = decision.server_start_id != server.start_id();
            let awaited = accept_evidence(&self.answers(&decision.event_ids)?) == AcceptEvidence::Awaited;
            if awaited && !restarted && !self.turn_is_over(server).await {
                continue;
            }
            // Again: what was read while it was asked whether the turn is over counts.
            let answers = self.answers(&decision.event_ids)?;
            let evidence = accept_evidence(&answers);
            // Answered by a rejection or an error, or not at all, the grant may be unused still.
            if !restarted && evidence != AcceptEvidence::Ran {
                self.take_back(server, &decision.event_ids).await;
            }
            self.close_decision(&decision, &answers, evidence).await?;
        }
        Ok(())
    }

    /// How the active branch answers each of these actions.
    pub(crate) fn answers(&self, event_ids: &[String]) -> Result<Vec<Option<Answer>>, Refusal> {
        let state = self.state();
        let branch = state.branch()?;
        Ok(event_ids.iter().map(|event_id| branch.answer(event_id)).collect())
    }

    /// Writes down which of these accepted actions are answered; the others are in doubt.
    pub(crate) async fn record_answers(&self, event_ids: &[String], answers: &[Option<Answer>]) -> Result<(), Refusal> {
        let state = |answer: &Option<Answer>| match answer {
            Some(_) => AcceptState::Answered,
            None => AcceptState::InDoubt,
        };
        let states = event_ids.iter().cloned().zip(answers.iter().map(state)).collect();
        self.shared().records.set_accept_states(self.id().as_str(), states).await
    }

    /// Whether the turn of the last step-causing call has begun and ended, in the log and in the server.
    async fn turn_is_over(&self, server: &VerifiedServer) -> bool {
        if !self.state().quiet.is_quiet() {
            return false;
        }
        server.owned().control().settled(self.id().as_str()).await.unwrap_or(false)
    }

    /// A grant of an accept that ran nothing must not stay behind; a server that does not answer for it is ended.
    pub(crate) async fn take_back(&self, server: &VerifiedServer, event_ids: &[String]) {
        if let Err(error) = server.owned().control().revoke(event_ids).await {
            tracing::warn!(session = self.id().as_str(), %error, "unused grants could not be revoked; the server is ended");
            server.stop().await;
        }
    }

    pub(crate) async fn close_decision(
        &self,
        decision: &OpenDecision,
        answers: &[Option<Answer>],
        evidence: AcceptEvidence,
    ) -> Result<(), Refusal> {
        self.record_answers(&decision.event_ids, answers).await?;
        if let Some(record) = self.shared().records.receipt(&decision.client_action_id).await?
            && !record.state.is_final()
        {
            let mut receipt = OpenReceipt::resume(&self.shared().records, record);
            let actions: Vec<serde_json::Value> = decision
                .event_ids
                .iter()
                .zip(answers)
                .map(|(event_id, answer)| json!({"event_id": event_id, "answer": answer.map(Answer::as_str)}))
                .collect();
            let result = json!({"approval_id": decision.approval_id, "actions": actions});
            close_accept(&mut receipt, evidence, result).await?;
        }
        self.state().open_decisions.retain(|open| open.client_action_id != decision.client_action_id);
        let outcome = match evidence {
            AcceptEvidence::Ran => "accepted",
            AcceptEvidence::Rejected => "rejected",
            AcceptEvidence::Unclear | AcceptEvidence::Awaited => "in_doubt",
        };
        self.note_event("approval_resolved", json!({"approval_id": decision.approval_id, "outcome": outcome})).await
    }

    /// Tells readers that a batch waits, or that the one that waited is gone. An accepted one is told of when its
    /// evidence stands.
    async fn announce_approval(&self) -> Result<(), Refusal> {
        let (before, now, rejected, accepted) = {
            let mut state = self.state();
            let now = state.waiting(self.id().as_str());
            if state.announced == now {
                return Ok(());
            }
            let before = std::mem::replace(&mut state.announced, now.clone());
            let ids = before.as_ref().map(|waiting| waiting.event_ids.clone()).unwrap_or_default();
            let branch = state.branch()?;
            let rejected = ids.iter().all(|id| branch.answer(id) == Some(Answer::Rejected));
            let accepted = ids.iter().any(|id| state.sent.contains(id));
            (before, now, rejected, accepted)
        };
        // What the journal does not take is owed: the next is told all the same.
        let mut told = Ok(());
        if let Some(before) = before
            && (rejected || !accepted)
        {
            let outcome = if rejected { "rejected" } else { "withdrawn" };
            let payload = json!({"approval_id": before.approval_id, "outcome": outcome});
            told = self.note_event("approval_resolved", payload).await;
        }
        if let Some(waiting) = now {
            let files = self.named_files().await;
            self.state().pinned_files.pin(&waiting.approval_id, &files);
            let payload = json!({
                "approval_id": waiting.approval_id,
                "actions": waiting.event_ids,
                "expires_at": clock::rfc3339(i64::try_from(waiting.expires_at_ms).unwrap_or(i64::MAX)),
            });
            told = told.and(self.note_event("approval_requested", payload).await);
        }
        told
    }

    /// The server of this session ended: what it held is void. Unless that was wanted, the session comes back by itself.
    pub(crate) async fn note_server_gone(&self, server: &Arc<VerifiedServer>) {
        let report = server.exit_report();
        {
            let state = self.current();
            if !state.server.as_ref().is_some_and(|current| Arc::ptr_eq(current, server)) {
                return;
            }
            // In the same lock: a server that the session was put on meanwhile is another.
            let mut state = state.take_up(self.shared(), self.id().as_str());
            state.server = None;
            state.info = None;
            state.quiet.note_restart();
            if !server.was_asked_to_end() && !state.closed {
                state.returning = Some(Returning::new(true));
                let detail = "the server ended by itself; it is being started again";
                state.unreachable = Some(Refusal::new(RefusalCode::ServerUnavailable, detail));
            }
            state.refresh_generation(self.id().as_str());
        }
        let status = report.and_then(|report| report.status).map(|status| status.to_string());
        let payload = json!({"event": "server_ended", "status": status, "server_start_id": server.start_id()});
        if let Err(refusal) = self.note_event("lifecycle", payload).await {
            tracing::warn!(session = self.id().as_str(), %refusal, "the server's end could not be journaled");
        }
    }
}

/// Closes an accept's receipt by what is known of it.
async fn close_accept(
    receipt: &mut OpenReceipt,
    evidence: AcceptEvidence,
    result: serde_json::Value,
) -> Result<(), Refusal> {
    let refusal = |code, detail: &str| Refusal::new(code, detail);
    match evidence {
        AcceptEvidence::Ran => receipt.done(result).await,
        AcceptEvidence::Rejected => {
            let reason = refusal(RefusalCode::ApprovalSuperseded, "a rejection came first; nothing of it ran");
            receipt.close_failed(&reason, result).await
        }
        AcceptEvidence::Unclear => {
            let detail = "an error or a rejection stands for an action; whether or how far it ran is not known, look at the \
                          events";
            receipt.close_unknown(&refusal(RefusalCode::NoEvidence, detail), result).await
        }
        AcceptEvidence::Awaited => {
            let detail = "the accept was sent and no answer was seen; whether the action ran is not known";
            receipt.close_unknown(&refusal(RefusalCode::ApprovalInDoubt, detail), result).await
        }
    }
}

/// On a task of its own, and boxed: a delivery reads, and a read may begin a delivery.
fn delivery(session: Arc<Session>, server: Arc<VerifiedServer>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move { session.deliver_queued(&server).await })
}
