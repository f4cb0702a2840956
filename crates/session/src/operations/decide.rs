//! `session.approval.decide`: the one operation that lets an action run, and the one that never does.

use std::sync::Arc;
use std::time::Duration;

use rules::approval::{AcceptEvidence, accept_evidence, check_reject};
use rules::evidence::Evidence;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};
use store::{AcceptState, ReceiptState, StepState};

use super::Ask;
use super::step::Step;
use crate::clock;
use crate::records::OpenReceipt;
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::state::OpenDecision;
use crate::upstream::{self, Failure};

/// How long a rejection may take to show in the log.
const REJECT_EVIDENCE_WAIT: Duration = Duration::from_secs(20);

impl Session {
    /// Accepts the batch that was looked at.
    ///
    /// INVARIANT I1: the batch is derived again from the read just before, under the session's lock; its accept is
    /// durable before anything is granted or sent; the latch inside the server gets exactly the ids the gate named.
    pub(crate) async fn accept(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        approval_id: &str,
        interrupts: u64,
    ) -> Result<(), Refusal> {
        self.wait_settled(server).await?;
        let grant = self.ask_gate(server, Step::Accept { approval_id, token_name: &ask.caller.name })?;
        let named = self.named_files().await;
        self.state().pinned_files.check(approval_id, named)?;
        let event_ids = grant.event_ids().to_vec();
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let mut receipt = OpenReceipt::create(&self.shared().records, record).await?;
        if let Err(refusal) = self.record_accept(approval_id, &event_ids).await {
            return receipt.finish(ReceiptState::Rejected, Some(&refusal), Value::Null).await;
        }
        let decision = OpenDecision {
            client_action_id: ask.client_action_id.clone(),
            approval_id: approval_id.to_owned(),
            event_ids: event_ids.clone(),
            server_start_id: server.start_id().to_owned(),
            not_sent: None,
        };
        let evidence = Evidence::Observations { event_ids: event_ids.clone() };
        if let Err(refusal) = receipt.step_intent("accept", &evidence).await {
            self.take_back_unsent(decision, &refusal).await?;
            return Err(refusal);
        }
        {
            let mut state = self.state();
            state.sent.extend(event_ids.iter().cloned());
            state.open_decisions.push(decision.clone());
            state.quiet.note_step_call();
        }
        if let Err(error) = server.owned().control().grant(&event_ids).await {
            // Whether the grant is in force is not known, and a grant that nobody waits for must not stay.
            tracing::error!(session = self.id().as_str(), %error, "the grant was not acknowledged; the server is ended");
            server.stop().await;
            let reason = Refusal::new(RefusalCode::ServerUnavailable, error.to_string());
            return self.take_back_unsent(decision, &reason).await;
        }
        // After the grant: an interrupt or a close that came before it found nothing to take back.
        if let Err(stopped) = self.check_not_stopped(interrupts) {
            self.take_back(server, &event_ids).await;
            return self.take_back_unsent(decision, &stopped).await;
        }
        match server.client().accept(grant, self.id()).await {
            Ok(()) => {
                self.mark_stale();
                Ok(())
            }
            Err(error) => {
                let reason = upstream::refusal(&error);
                if server.owned().control().revoke(&event_ids).await.is_err() {
                    server.stop().await;
                }
                self.end_unless_begun(server, &error).await;
                let answered = error.was_answered();
                match upstream::failure(&error) {
                    Failure::NotSent => self.take_back_unsent(decision, &reason).await,
                    // The evidence, or its absence once the turn is over, closes the receipt.
                    Failure::Refused | Failure::Unknown => {
                        receipt.step_outcome(StepState::Unknown, Some(&reason)).await?;
                        if answered {
                            self.note_nothing_begins(server).await;
                        }
                        self.mark_stale();
                        Ok(())
                    }
                }
            }
        }
    }

    async fn record_accept(&self, approval_id: &str, event_ids: &[String]) -> Result<(), Refusal> {
        let (session_id, approval_id, event_ids) =
            (self.id().as_str().to_owned(), approval_id.to_owned(), event_ids.to_vec());
        self.shared()
            .records
            .write("record_accept", move |ledger| {
                ledger.record_accept(&session_id, &approval_id, &event_ids, clock::now_ms())
            })
            .await
    }

    /// The accept certainly never left: the actions may be decided again, once that is recorded. Where it cannot be now, it is
    /// tried again after each read.
    async fn take_back_unsent(&self, mut decision: OpenDecision, reason: &Refusal) -> Result<(), Refusal> {
        decision.not_sent = Some(reason.clone());
        {
            let mut state = self.state();
            state.open_decisions.retain(|open| open.approval_id != decision.approval_id);
            state.open_decisions.push(decision.clone());
            state.sent.extend(decision.event_ids.iter().cloned());
            state.quiet.note_step_over();
        }
        self.withdraw_accept(&decision, reason).await
    }

    /// Records of every accept that never left that it did not: for that the session need be on no server.
    ///
    /// # Errors
    /// As [`Self::withdraw_accept`].
    pub(crate) async fn withdraw_not_sent(&self) -> Result<(), Refusal> {
        let open = self.state().open_decisions.clone();
        for decision in open {
            if let Some(reason) = &decision.not_sent {
                self.withdraw_accept(&decision, reason).await?;
            }
        }
        Ok(())
    }

    /// Records that an accept never left, and closes its receipt.
    ///
    /// # Errors
    /// `store_failed`; the decision stays open then.
    pub(crate) async fn withdraw_accept(&self, decision: &OpenDecision, reason: &Refusal) -> Result<(), Refusal> {
        let records = &self.shared().records;
        let (session_id, id) = (self.id().as_str().to_owned(), decision.approval_id.clone());
        let withdrawn = records
            .write("withdraw_unsent_accept", move |ledger| ledger.withdraw_unsent_accept(&session_id, &id))
            .await?;
        // Another server may have been found meanwhile, and the accept called doubtful: then it stays so.
        if withdrawn == decision.event_ids.len() {
            self.state().sent.retain(|event_id| !decision.event_ids.contains(event_id));
        }
        if let Some(record) = records.receipt(&decision.client_action_id).await?
            && !record.state.is_final()
        {
            OpenReceipt::resume(records, record).close_not_sent(reason).await?;
        }
        self.state().open_decisions.retain(|open| open.client_action_id != decision.client_action_id);
        Ok(())
    }

    /// Rejects the batch that was looked at. Needs no lock, generation or session canary: it can only prevent.
    pub(crate) async fn reject(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        approval_id: &str,
        reason: Option<&str>,
    ) -> Result<(), Refusal> {
        self.observe(server).await?;
        let event_ids = {
            let mut state = self.state();
            let waiting = state.waiting(self.id().as_str());
            check_reject(approval_id, waiting.as_ref().map(|waiting| waiting.approval_id.as_str()), &state.book)?;
            waiting.map(|waiting| waiting.event_ids).unwrap_or_default()
        };
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let mut receipt = OpenReceipt::begin(&self.shared().records, record);
        receipt.step_intent("reject", &Evidence::Rejections { event_ids: event_ids.clone() }).await?;
        if let Err(error) = server.client().reject(self.id(), reason).await {
            return self.settle_failure(server, receipt, &error).await;
        }
        let result = json!({"approval_id": approval_id});
        if !self.wait_answered(&event_ids).await? {
            let unseen = Refusal::new(RefusalCode::NoEvidence, "the rejection was sent and not seen in time");
            return receipt.close_unknown(&unseen, result).await;
        }
        self.mark_answered(&event_ids).await?;
        match accept_evidence(&self.answers(&event_ids)?) {
            AcceptEvidence::Rejected => receipt.done(result).await,
            AcceptEvidence::Ran => {
                let late = Refusal::new(RefusalCode::ApprovalSuperseded, "an accept came first; all of it ran");
                receipt.close_failed(&late, result).await
            }
            AcceptEvidence::Unclear | AcceptEvidence::Awaited => {
                let detail = "an error or an observation stands for an action; it may have run, look at the events";
                let unclear = Refusal::new(RefusalCode::NoEvidence, detail);
                receipt.close_unknown(&unclear, result).await
            }
        }
    }

    async fn wait_answered(&self, event_ids: &[String]) -> Result<bool, Refusal> {
        let mut changes = self.watch_changes();
        let deadline = tokio::time::Instant::now() + REJECT_EVIDENCE_WAIT;
        loop {
            if self.answers(event_ids)?.iter().all(Option::is_some) {
                return Ok(true);
            }
            // Read by what follows the session anyway, so that it is read once.
            self.mark_stale();
            match tokio::time::timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Ok(false),
            }
        }
    }

    /// A doubtful action that was rejected is doubtful no more.
    async fn mark_answered(&self, event_ids: &[String]) -> Result<(), Refusal> {
        let sent: Vec<(String, AcceptState)> = {
            let state = self.state();
            let sent = event_ids.iter().filter(|id| state.sent.contains(*id));
            sent.map(|id| (id.clone(), AcceptState::Answered)).collect()
        };
        if sent.is_empty() {
            return Ok(());
        }
        self.shared().records.set_accept_states(self.id().as_str(), sent).await
    }
}
