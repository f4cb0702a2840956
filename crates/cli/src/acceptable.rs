//! Which batches a person is asked to accept, and how a decision on one is said.

use api_types::Approval;
use serde_json::{Value, json};

/// Whether it is a whole digest, as the id of an approval is, which becomes part of a path.
pub(crate) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The input of a decision.
pub(crate) fn decision(approval_id: &str, decision: &str, reason: Option<&str>) -> Value {
    match reason {
        Some(reason) => json!({"approval_id": approval_id, "decision": decision, "reason": reason}),
        None => json!({"approval_id": approval_id, "decision": decision}),
    }
}

/// Why no person is asked to accept a batch: the code and the words.
pub(crate) fn refusal(batch: &Approval) -> Option<(&'static str, &'static str)> {
    if batch.holds_secret {
        return Some(("approval_holds_secret", "a live secret stands in it"));
    }
    if batch.actions.iter().any(|action| action.in_doubt) {
        return Some(("approval_in_doubt", "an action of it was approved before and may have run"));
    }
    if !batch.complete || batch.actions.is_empty() || batch.actions.iter().any(|action| action.truncated) {
        return Some(("approval_not_shown_in_full", "the daemon did not send the batch whole"));
    }
    None
}
