//! `session.prompt.send`: at once when the session is quiet, else in its turn.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rules::catalog::OnPending;
use rules::evidence::Evidence;
use rules::log::ExecutionStatus;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::Value;
use store::{ReceiptState, StepState};

use super::Ask;
use super::step::Step;
use crate::records::OpenReceipt;
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::state::{MAX_QUEUED_PROMPTS, QueuedPrompt};
use crate::upstream::{self, Failure};

/// How long the rejection that a prompt asked for may take to show in the log.
const REJECT_WAIT: Duration = Duration::from_secs(10);

impl Session {
    pub(crate) async fn prompt(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        text: &str,
        on_pending: OnPending,
        interrupts: u64,
    ) -> Result<(), Refusal> {
        let (running, waits, behind) = {
            let mut state = self.state();
            let running = state.status == ExecutionStatus::Running || !state.quiet.is_quiet();
            (running, state.waiting(self.id().as_str()).is_some(), !state.queue.is_empty())
        };
        // Under a pending batch the prompt is refused, or takes the batch's place; queued ones wait for it to be decided.
        if waits && !running && on_pending == OnPending::Reject {
            return self.reject_then_prompt(server, ask, text, interrupts).await;
        }
        if running || (behind && !waits) {
            return self.queue_prompt(ask, text, interrupts).await;
        }
        self.wait_settled(server).await?;
        // Asked before anything is recorded: a refusal here does not use the key up.
        let grant = self.ask_gate(server, Step::Message)?;
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let receipt = OpenReceipt::begin(&self.shared().records, record);
        self.send_prompt(server, receipt, grant, text, interrupts).await
    }

    async fn queue_prompt(&self, ask: &Ask, text: &str, interrupts: u64) -> Result<(), Refusal> {
        if self.state().queue.len() >= MAX_QUEUED_PROMPTS {
            let detail = format!("{MAX_QUEUED_PROMPTS} prompts wait already; interrupt the session or wait");
            return Err(Refusal::new(RefusalCode::QueueFull, detail));
        }
        let record = ask.record(Some(self.id().as_str()), ReceiptState::Queued);
        let mut receipt = OpenReceipt::create(&self.shared().records, record).await?;
        let queued = QueuedPrompt { client_action_id: ask.client_action_id.clone(), text: text.to_owned() };
        let stopped = {
            let mut state = self.state();
            let stopped = state.stopped_since(interrupts);
            if stopped.is_none() {
                state.queue.push_back(queued);
            }
            stopped
        };
        if let Some(refusal) = stopped {
            // What cancels the queue has been by, and did not see it.
            return receipt.finish(ReceiptState::Rejected, Some(&refusal), Value::Null).await;
        }
        self.announce_change();
        // The turn may have ended while the prompt was being recorded.
        self.mark_stale();
        Ok(())
    }

    async fn reject_then_prompt(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        text: &str,
        interrupts: u64,
    ) -> Result<(), Refusal> {
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let mut receipt = OpenReceipt::begin(&self.shared().records, record);
        // The rejection alone is not what was asked for, and shows nothing of the message.
        receipt.step_intent("reject", &Evidence::Nothing).await?;
        if let Err(error) = server.client().reject(self.id(), Some("superseded by a new prompt")).await {
            return self.settle_failure(server, receipt, &error).await;
        }
        if !self.wait_nothing_waits(server).await? {
            let reason = Refusal::new(RefusalCode::NoEvidence, "the rejection was sent and not seen in time");
            return receipt.close_unknown(&reason, Value::Null).await;
        }
        receipt.step_outcome(StepState::Done, None).await?;
        let granted = match self.wait_settled(server).await {
            Ok(()) => self.ask_gate(server, Step::Message),
            Err(refusal) => Err(refusal),
        };
        match granted {
            Ok(grant) => self.send_prompt(server, receipt, grant, text, interrupts).await,
            Err(refusal) => receipt.finish(ReceiptState::Rejected, Some(&refusal), Value::Null).await,
        }
    }

    async fn wait_nothing_waits(self: &Arc<Self>, server: &Arc<VerifiedServer>) -> Result<bool, Refusal> {
        let mut changes = self.watch_changes();
        let deadline = tokio::time::Instant::now() + REJECT_WAIT;
        self.observe(server).await?;
        loop {
            if self.state().branch()?.batch().is_empty() {
                return Ok(true);
            }
            match tokio::time::timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Ok(false),
            }
        }
    }

    async fn send_prompt(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        mut receipt: OpenReceipt,
        grant: rules::gate::StepGrant,
        text: &str,
        interrupts: u64,
    ) -> Result<(), Refusal> {
        let evidence = Evidence::of_message(self.state().log.mirror.last_event_id(), text);
        receipt.step_intent("send_message", &evidence).await?;
        if let Err(refusal) = self.check_not_stopped(interrupts) {
            return receipt.close_not_sent(&refusal).await;
        }
        self.state().quiet.note_step_call();
        let outcome = server.client().send_message(grant, self.id(), text).await;
        let mut answered_badly = false;
        match &outcome {
            Ok(()) => self.mark_stale(),
            Err(error) => match upstream::failure(error) {
                Failure::NotSent | Failure::Refused => self.state().quiet.note_step_over(),
                Failure::Unknown => {
                    answered_badly = error.was_answered();
                    self.end_unless_begun(server, error).await;
                }
            },
        }
        self.settle_call(server, receipt, outcome, Value::Null).await?;
        if answered_badly {
            self.note_nothing_begins(server).await;
        }
        Ok(())
    }

    /// Whether a queued prompt could go out now.
    pub(crate) fn may_deliver(&self) -> bool {
        let mut state = self.state();
        !state.queue.is_empty()
            && !state.closed
            && state.quiet.is_quiet()
            && state.status.is_terminal()
            && state.waiting(self.id().as_str()).is_none()
            && state.open_decisions.is_empty()
            && state.block().is_none()
    }

    /// Sends the first queued prompt, under the lock and through the gate like any other.
    pub(crate) async fn deliver_queued(self: &Arc<Self>, server: &Arc<VerifiedServer>) {
        // A delivery reads, which begins no other one.
        if self.delivering.swap(true, Ordering::AcqRel) {
            return;
        }
        {
            let _lock = self.lock.lock().await;
            if self.may_deliver()
                && self.follows(server)
                && let Err(refusal) = self.try_deliver(server).await
            {
                tracing::debug!(session = self.id().as_str(), %refusal, "a queued prompt waits on");
            }
        }
        self.delivering.store(false, Ordering::Release);
    }

    async fn try_deliver(self: &Arc<Self>, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        let interrupts = self.interrupts();
        self.wait_settled(server).await?;
        self.observe(server).await?;
        if !self.may_deliver() {
            return Ok(());
        }
        let grant = self.ask_gate(server, Step::Message)?;
        let Some(queued) = self.state().queue.pop_front() else { return Ok(()) };
        let record = match self.shared().records.receipt(&queued.client_action_id).await {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(()),
            Err(refusal) => {
                self.state().queue.push_front(queued);
                return Err(refusal);
            }
        };
        if record.state != ReceiptState::Queued {
            return Ok(());
        }
        let receipt = OpenReceipt::resume(&self.shared().records, record);
        if let Err(refusal) = self.send_prompt(server, receipt, grant, &queued.text, interrupts).await {
            self.queue_again_or_resolve(queued).await;
            return Err(refusal);
        }
        self.announce_change();
        Ok(())
    }

    /// A delivery failed on the records: what was not recorded as begun waits on, what was is looked for.
    async fn queue_again_or_resolve(&self, queued: QueuedPrompt) {
        match self.shared().records.receipt(&queued.client_action_id).await {
            Ok(Some(record)) if record.state == ReceiptState::InFlight => self.leave_unresolved(record),
            Ok(Some(record)) if record.state.is_final() => {}
            // Whether it was begun is asked again at the next delivery.
            Ok(_) | Err(_) => self.state().queue.push_front(queued),
        }
    }
}
