//! `session.turn.interrupt`: always available, waits for nothing, cancels what has not begun.

use std::sync::Arc;

use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};
use store::ReceiptState;

use super::Ask;
use crate::records::OpenReceipt;
use crate::server::VerifiedServer;
use crate::session::Session;

impl Session {
    pub(crate) async fn interrupt(self: &Arc<Self>, server: &Arc<VerifiedServer>, ask: &Ask) -> Result<(), Refusal> {
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let mut receipt = OpenReceipt::create(&self.shared().records, record).await?;
        let cancelled = self.cancel_queue().await?;
        // A grant that was not used yet must not be used after the interrupt.
        self.revoke_unused(server).await;
        receipt.step_intent("interrupt").await?;
        let outcome = server.client().interrupt(self.id()).await;
        if outcome.is_ok() {
            self.note_nothing_begins(server).await;
        }
        self.settle_call(&mut receipt, outcome, json!({"cancelled_prompts": cancelled})).await
    }

    /// Takes back what this session was granted and did not use; a server that does not answer is ended.
    pub(crate) async fn revoke_unused(&self, server: &VerifiedServer) {
        let granted: Vec<String> =
            self.state().open_decisions.iter().flat_map(|decision| decision.event_ids.clone()).collect();
        if granted.is_empty() {
            return;
        }
        if let Err(error) = server.owned().control().revoke(&granted).await {
            tracing::warn!(session = self.id().as_str(), %error, "unused grants could not be revoked; the server is ended");
            server.stop().await;
        }
    }

    /// No server is up, so nothing runs: only what waits is cancelled.
    pub(crate) async fn interrupt_stopped(&self, ask: &Ask) -> Result<(), Refusal> {
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let mut receipt = OpenReceipt::create(&self.shared().records, record).await?;
        let cancelled = self.cancel_queue().await?;
        receipt.finish(ReceiptState::Applied, None, json!({"cancelled_prompts": cancelled})).await
    }

    /// Closes every queued prompt's receipt; says how many there were.
    pub(crate) async fn cancel_queue(&self) -> Result<usize, Refusal> {
        let queued: Vec<_> = self.state().queue.drain(..).collect();
        let reason = Refusal::new(RefusalCode::Interrupted, "an interrupt came before the prompt was sent");
        for prompt in &queued {
            if let Some(record) = self.shared().records.receipt(&prompt.client_action_id).await?
                && record.state == ReceiptState::Queued
            {
                let mut receipt = OpenReceipt::resume(&self.shared().records, record);
                receipt.finish(ReceiptState::Rejected, Some(&reason), Value::Null).await?;
            }
        }
        if !queued.is_empty() {
            self.announce_change();
        }
        Ok(queued.len())
    }
}
