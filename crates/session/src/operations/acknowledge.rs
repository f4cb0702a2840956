//! `session.block.acknowledge`: the owner has looked at what ran without an accept, and lets the session go on.

use std::sync::Arc;

use rules::evidence::Evidence;
use rules::refusal::{Refusal, RefusalCode};
use rules::tripwire::check_acknowledge;
use serde_json::json;
use store::ReceiptState;

use super::Ask;
use crate::clock;
use crate::records::OpenReceipt;
use crate::session::Session;

impl Session {
    /// Lifts the block of that id. From here on the tripwire compares with the log as it stands now: what was observed up
    /// to here is acknowledged, and nothing that comes later.
    pub(crate) async fn acknowledge(self: &Arc<Self>, ask: &Ask, block_id: &str) -> Result<(), Refusal> {
        let (record, baseline) = {
            let mut state = self.state();
            if state.closed {
                return Err(Refusal::new(RefusalCode::SessionClosed, "the session was closed"));
            }
            // In the same lock as the baseline is taken: nothing that was read since the owner looked is acknowledged along.
            state.judge(self.id().as_str());
            check_acknowledge(block_id, state.tripped.as_ref().map(|tripped| tripped.block_id.as_str()))?;
            let mut record = state.record.clone();
            record.baseline_event_id = state.log.mirror.last_event_id().map(str::to_owned);
            record.changed_by.clone_from(&ask.caller.name);
            record.changed_at_ms = clock::now_ms();
            let baseline = state.log.mirror.events().iter().map(|event| event.event_id.clone()).collect();
            (record, baseline)
        };
        let open = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let mut receipt = OpenReceipt::begin(&self.shared().records, open);
        // A step of its own: when the daemon ends in between, the receipt does not say that nothing was done.
        receipt.step_intent("acknowledge", &Evidence::Nothing).await?;
        let stored = record.clone();
        self.shared().records.write("put_session", move |ledger| ledger.put_session(stored)).await?;
        {
            let mut state = self.state();
            state.record = record;
            state.log.baseline = baseline;
            state.judge(self.id().as_str());
        }
        self.close_again_if_closed(&ask.caller.name).await?;
        self.note_event("lifecycle", json!({"event": "session_unblocked", "block_id": block_id})).await?;
        receipt.done(json!({"block_id": block_id})).await?;
        self.mark_stale();
        Ok(())
    }
}
