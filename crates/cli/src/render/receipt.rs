//! What was asked and what came of it.

use api_types::{Receipt, ReceiptState};
use serde_json::Value;

use super::block;
use super::style::Style;
use crate::sanitize;

/// The API's word for a state.
pub(crate) fn state_word(state: ReceiptState) -> &'static str {
    match state {
        ReceiptState::Queued => "queued",
        ReceiptState::InFlight => "in_flight",
        ReceiptState::Applied => "applied",
        ReceiptState::Rejected => "rejected",
        ReceiptState::OutcomeUnknown => "outcome_unknown",
    }
}

/// A receipt with its steps and its result.
pub(crate) fn receipt(receipt: &Receipt, style: &Style) -> String {
    let mut out = head(receipt, style);
    if let Some(code) = &receipt.code {
        let detail = receipt.detail.as_deref().unwrap_or_default();
        out.push_str(&format!("  {}: {}\n", sanitize::line(code), sanitize::line(detail)));
    }
    for step in &receipt.steps {
        let code = step.code.as_deref().map(|code| format!(" ({code})")).unwrap_or_default();
        out.push_str(&format!(
            "  step {}: {}\n",
            sanitize::line(&step.name),
            sanitize::line(&format!("{}{code}", step.state))
        ));
    }
    if has_content(&receipt.result) {
        out.push_str("  result\n");
        out.push_str(&block::value(&receipt.result, style.columns()));
    }
    out
}

/// A prompt whose turn was followed to its end.
pub(crate) fn turn(receipt: &Receipt, status: &str, style: &Style) -> String {
    let mut out = head(receipt, style);
    out.push_str(&format!("  the turn ended: {}\n", sanitize::line(status)));
    if status == "waiting_for_confirmation" {
        let session = receipt.session_id.as_deref().unwrap_or("ID");
        out.push_str(&format!("  next: `gatepost approve {}`\n", sanitize::line(session)));
    }
    out
}

fn head(receipt: &Receipt, style: &Style) -> String {
    let word = state_word(receipt.state);
    let shown = match receipt.state {
        ReceiptState::Applied => style.good(word),
        ReceiptState::Queued | ReceiptState::InFlight => style.warn(word),
        ReceiptState::Rejected | ReceiptState::OutcomeUnknown => style.bad(word),
    };
    let replayed = if receipt.replayed { " (known from before)" } else { "" };
    let id = sanitize::line(&receipt.client_action_id);
    format!("{shown} {}{replayed}\n  action {id}\n", sanitize::line(&receipt.operation_id))
}

fn has_content(result: &Value) -> bool {
    match result {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
