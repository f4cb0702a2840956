//! Receipts: what was asked, what was sent, what came of it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::jcs;
use crate::operation::OperationId;

/// Identity of a request's content: SHA-256 over the canonical JSON of session, operation and input, never the generation.
pub fn fingerprint(session_id: Option<&str>, operation: OperationId, input: &Value) -> String {
    jcs::digest(&json!({"session_id": session_id, "operation_id": operation.as_str(), "input": input}))
}

/// Where an action stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptState {
    /// Waits for the session to be quiet; nothing was sent.
    Queued,
    /// Steps are being sent.
    InFlight,
    /// Its effect was seen. Final.
    Applied,
    /// It took no effect beyond the steps that are done. Final.
    Rejected,
    /// Something was sent and its effect cannot be known. Final.
    OutcomeUnknown,
}

impl ReceiptState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Queued, Self::InFlight, Self::Applied, Self::Rejected, Self::OutcomeUnknown];

    /// The word clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InFlight => "in_flight",
            Self::Applied => "applied",
            Self::Rejected => "rejected",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }

    /// The state of that exact word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether it never changes again.
    pub fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::InFlight => false,
            Self::Applied | Self::Rejected | Self::OutcomeUnknown => true,
        }
    }

    /// Moves on.
    ///
    /// # Errors
    /// When the move is not legal: only `queued` → `in_flight` or `rejected`, and `in_flight` → a final state, are.
    pub fn transition(self, to: Self) -> Result<Self, TransitionError> {
        let legal = match self {
            Self::Queued => matches!(to, Self::InFlight | Self::Rejected),
            Self::InFlight => to.is_final(),
            Self::Applied | Self::Rejected | Self::OutcomeUnknown => false,
        };
        if legal { Ok(to) } else { Err(TransitionError { from: self.as_str(), to: to.as_str() }) }
    }
}

/// Where one upstream mutation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Recorded; may have been sent.
    Intent,
    /// Took effect.
    Done,
    /// The server refused it.
    Failed,
    /// Was sent; its effect is not known.
    Unknown,
    /// Certainly never left the daemon.
    NotSent,
}

impl StepState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Intent, Self::Done, Self::Failed, Self::Unknown, Self::NotSent];

    /// The word clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::NotSent => "not_sent",
        }
    }

    /// The state of that exact word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Moves on. A step is sent at most once, so nothing leads back to `intent`.
    ///
    /// # Errors
    /// When the move is not legal: an intent ends in any other state, `unknown` is resolved by evidence only.
    pub fn transition(self, to: Self) -> Result<Self, TransitionError> {
        let legal = match self {
            Self::Intent => to != Self::Intent,
            Self::Unknown => matches!(to, Self::Done | Self::Failed),
            Self::Done | Self::Failed | Self::NotSent => false,
        };
        if legal { Ok(to) } else { Err(TransitionError { from: self.as_str(), to: to.as_str() }) }
    }
}

/// A move that no receipt or step makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no record goes from {from} to {to}")]
pub struct TransitionError {
    /// Where it stood.
    pub from: &'static str,
    /// Where it was to go.
    pub to: &'static str,
}

/// What to do with a receipt whose operation will not go on: after the daemon was stopped without warning, or when
/// something failed after its intent. Nothing is ever sent a second time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfinished {
    /// Final already.
    Nothing,
    /// Was waiting: deliver it under the gate when quiet.
    Deliver,
    /// Nothing is in doubt: reject it; these steps are done.
    Stopped {
        /// Names of the steps that took effect.
        done: Vec<String>,
    },
    /// These steps may have been sent: look for evidence, else it is `outcome_unknown`.
    SeekEvidence {
        /// Names of the steps without an outcome.
        steps: Vec<String>,
    },
}

/// What becomes of a receipt in this state with these steps, by name, in order.
pub fn unfinished(state: ReceiptState, steps: &[(&str, StepState)]) -> Unfinished {
    let named = |wanted: &[StepState]| -> Vec<String> {
        steps.iter().filter(|(_, state)| wanted.contains(state)).map(|(name, _)| (*name).to_owned()).collect()
    };
    match state {
        ReceiptState::Applied | ReceiptState::Rejected | ReceiptState::OutcomeUnknown => Unfinished::Nothing,
        ReceiptState::Queued => Unfinished::Deliver,
        ReceiptState::InFlight => {
            let open = named(&[StepState::Intent, StepState::Unknown]);
            if open.is_empty() {
                Unfinished::Stopped { done: named(&[StepState::Done]) }
            } else {
                Unfinished::SeekEvidence { steps: open }
            }
        }
    }
}

#[cfg(test)]
mod tests;
