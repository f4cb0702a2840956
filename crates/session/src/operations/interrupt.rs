//! `session.turn.interrupt`: always available, waits for nothing, cancels what has not begun.

use std::collections::VecDeque;
use std::sync::Arc;

use rules::evidence::Evidence;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};
use store::ReceiptState;

use super::Ask;
use crate::records::OpenReceipt;
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::state::QueuedPrompt;

impl Session {
    pub(crate) async fn interrupt(self: &Arc<Self>, server: &Arc<VerifiedServer>, ask: &Ask) -> Result<(), Refusal> {
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let mut receipt = OpenReceipt::create(&self.shared().records, record).await?;
        // What was decided before and has not gone out must not go out after it.
        self.state().interrupts += 1;
        let cancelled = self.cancel_queue().await?;
        // A grant that was not used yet must not be used after the interrupt.
        self.revoke_unused(server).await;
        receipt.step_intent("interrupt", &Evidence::Nothing).await?;
        let outcome = server.client().interrupt(self.id()).await;
        let interrupted = outcome.is_ok();
        self.settle_call(server, receipt, outcome, json!({"cancelled_prompts": cancelled})).await?;
        if interrupted {
            self.note_interrupted(server).await;
        }
        Ok(())
    }

    /// Under the session's lock, so that it is not another operation's call that is declared over; but whoever interrupts
    /// does not wait for that lock.
    async fn note_interrupted(self: &Arc<Self>, server: &Arc<VerifiedServer>) {
        if let Ok(_lock) = self.lock.try_lock() {
            self.note_nothing_begins(server).await;
            return;
        }
        let (session, server) = (Arc::clone(self), Arc::clone(server));
        crate::request::spawn(async move {
            let _lock = session.lock.lock().await;
            session.note_nothing_begins(&server).await;
        });
    }

    /// Takes back what this session was granted and did not use; a server that does not answer is ended.
    pub(crate) async fn revoke_unused(&self, server: &VerifiedServer) {
        let granted: Vec<String> =
            self.state().open_decisions.iter().flat_map(|decision| decision.event_ids.clone()).collect();
        if !granted.is_empty() {
            self.take_back(server, &granted).await;
        }
    }

    /// No server is up, so nothing runs: only what waits is cancelled.
    pub(crate) async fn interrupt_stopped(&self, ask: &Ask) -> Result<(), Refusal> {
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let mut receipt = OpenReceipt::create(&self.shared().records, record).await?;
        self.state().interrupts += 1;
        let cancelled = self.cancel_queue().await?;
        receipt.finish(ReceiptState::Applied, None, json!({"cancelled_prompts": cancelled})).await
    }

    /// Closes every queued prompt's receipt; says how many there were. Those whose end cannot be recorded wait on.
    pub(crate) async fn cancel_queue(&self) -> Result<usize, Refusal> {
        let mut queued: VecDeque<QueuedPrompt> = std::mem::take(&mut self.state().queue);
        let count = queued.len();
        while let Some(prompt) = queued.pop_front() {
            if let Err(refusal) = self.cancel(&prompt).await {
                queued.push_front(prompt);
                let mut state = self.state();
                queued.append(&mut state.queue);
                state.queue = queued;
                return Err(refusal);
            }
        }
        if count > 0 {
            self.announce_change();
        }
        Ok(count)
    }

    async fn cancel(&self, prompt: &QueuedPrompt) -> Result<(), Refusal> {
        let Some(record) = self.shared().records.receipt(&prompt.client_action_id).await? else { return Ok(()) };
        if record.state != ReceiptState::Queued {
            return Ok(());
        }
        let reason = Refusal::new(RefusalCode::Interrupted, "an interrupt came before the prompt was sent");
        let mut receipt = OpenReceipt::resume(&self.shared().records, record);
        receipt.finish(ReceiptState::Rejected, Some(&reason), Value::Null).await
    }
}
