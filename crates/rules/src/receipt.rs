//! Receipts: what was asked, what was sent, what came of it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::jcs;
use crate::operation::OperationId;
use crate::refusal::{Refusal, RefusalCode};

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

/// One upstream mutation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the upstream call.
    pub name: String,
    /// Where it stands.
    pub state: StepState,
    /// Why it failed or is in doubt.
    pub code: Option<RefusalCode>,
}

/// The record of one client action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The caller's idempotency key.
    pub client_action_id: String,
    /// The session, if the operation has one.
    pub session_id: Option<String>,
    /// The operation.
    pub operation_id: OperationId,
    /// See [`fingerprint`].
    pub fingerprint: String,
    /// Where it stands.
    pub state: ReceiptState,
    /// Why it was rejected or is in doubt.
    pub code: Option<RefusalCode>,
    /// The same for people.
    pub detail: Option<String>,
    /// Upstream mutations in order.
    pub steps: Vec<Step>,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
    /// What the operation returned; `null` until it did.
    pub result: Value,
}

/// What a new receipt is about.
#[derive(Debug, Clone, Copy)]
pub struct NewReceipt<'a> {
    /// The caller's idempotency key.
    pub client_action_id: &'a str,
    /// The session, if the operation has one.
    pub session_id: Option<&'a str>,
    /// The operation.
    pub operation_id: OperationId,
    /// Its canonical input.
    pub input: &'a Value,
    /// RFC 3339.
    pub now: &'a str,
}

/// What to do with a receipt after the daemon was stopped without warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterCrash {
    /// Final already.
    Nothing,
    /// Was waiting: deliver it under the gate when quiet.
    Deliver,
    /// Nothing is in doubt: reject it with `stopped_before_step`; these steps are done.
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

impl Receipt {
    /// A receipt in its first state, `queued` or `in_flight`.
    pub fn new(about: NewReceipt<'_>, state: ReceiptState) -> Self {
        Self {
            client_action_id: about.client_action_id.to_owned(),
            session_id: about.session_id.map(str::to_owned),
            operation_id: about.operation_id,
            fingerprint: fingerprint(about.session_id, about.operation_id, about.input),
            state,
            code: None,
            detail: None,
            steps: Vec::new(),
            created_at: about.now.to_owned(),
            updated_at: about.now.to_owned(),
            result: Value::Null,
        }
    }

    /// Whether a request with this receipt's client action id asks for the same thing.
    ///
    /// # Errors
    /// `client_action_id_reused` when it does not.
    pub fn check_same(&self, fingerprint: &str) -> Result<(), Refusal> {
        if self.fingerprint == fingerprint {
            return Ok(());
        }
        let detail = format!("{} was used for another request; choose a new client_action_id", self.client_action_id);
        Err(Refusal::new(RefusalCode::ClientActionIdReused, detail))
    }

    /// Moves to another state, with the reason where there is one.
    ///
    /// # Errors
    /// When the move is not legal.
    pub fn advance(&mut self, to: ReceiptState, reason: Option<Refusal>, now: &str) -> Result<(), TransitionError> {
        self.state = self.state.transition(to)?;
        if let Some(Refusal { code, detail }) = reason {
            self.code = Some(code);
            self.detail = Some(detail);
        }
        now.clone_into(&mut self.updated_at);
        Ok(())
    }

    /// Records the intent of the next upstream mutation; returns its index. Only while `in_flight`, and only when no
    /// earlier step is still open: steps are sent one after another.
    ///
    /// # Errors
    /// When the receipt is not in flight or a step is open.
    pub fn begin_step(&mut self, name: &str, now: &str) -> Result<usize, TransitionError> {
        let open = self.steps.iter().any(|step| step.state == StepState::Intent);
        if self.state != ReceiptState::InFlight || open {
            return Err(TransitionError { from: self.state.as_str(), to: StepState::Intent.as_str() });
        }
        self.steps.push(Step { name: name.to_owned(), state: StepState::Intent, code: None });
        now.clone_into(&mut self.updated_at);
        Ok(self.steps.len() - 1)
    }

    /// Records the outcome of a step.
    ///
    /// # Errors
    /// When there is no such step or the move is not legal.
    pub fn end_step(
        &mut self,
        index: usize,
        to: StepState,
        code: Option<RefusalCode>,
        now: &str,
    ) -> Result<(), TransitionError> {
        let step = self.steps.get_mut(index).ok_or(TransitionError { from: "no step", to: to.as_str() })?;
        step.state = step.state.transition(to)?;
        step.code = code;
        now.clone_into(&mut self.updated_at);
        Ok(())
    }

    /// What becomes of it when the daemon starts again. Nothing is ever sent a second time.
    pub fn after_crash(&self) -> AfterCrash {
        let named = |wanted: &[StepState]| -> Vec<String> {
            self.steps.iter().filter(|step| wanted.contains(&step.state)).map(|step| step.name.clone()).collect()
        };
        match self.state {
            ReceiptState::Applied | ReceiptState::Rejected | ReceiptState::OutcomeUnknown => AfterCrash::Nothing,
            ReceiptState::Queued => AfterCrash::Deliver,
            ReceiptState::InFlight => {
                let steps = named(&[StepState::Intent, StepState::Unknown]);
                if steps.is_empty() {
                    AfterCrash::Stopped { done: named(&[StepState::Done]) }
                } else {
                    AfterCrash::SeekEvidence { steps }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
