//! Questions, their answers, and what became of what was sent.

use api_types::Receipt;
use serde_json::{Value, json};

use super::standing;
use crate::acceptable::decision;
use crate::console::model::{Answer, Asked, Effect, Question, State, Subject, Trouble};
use crate::sanitize;

const DECIDE: &str = "session.approval.decide";
const INTERRUPT: &str = "session.turn.interrupt";
const RESUME: &str = "session.resume";
const PROMPT: &str = "session.prompt.send";

/// What stands on the screen is another thing from now on, as far as decisions go: no key pressed before it is drawn decides.
pub(super) fn next_stage(state: &mut State) {
    // INVARIANT I1: a decision is one on what the person had before them.
    state.stage += 1;
}

/// Takes any question away.
pub(super) fn withdraw(state: &mut State) {
    if state.question.take().is_some() {
        next_stage(state);
    }
}

/// Takes a question about the batch away; whether there was one.
pub(super) fn withdraw_decision(state: &mut State) -> bool {
    let about_batch = state.question.as_ref().is_some_and(|question| match question.subject {
        Subject::Approve { .. } | Subject::Reject { .. } => true,
        Subject::Interrupt | Subject::Resume => false,
    });
    if about_batch {
        withdraw(state);
    }
    about_batch
}

fn ask(state: &mut State, subject: Subject) {
    state.notice = None;
    state.help = false;
    state.question = Some(Question::new(subject));
    next_stage(state);
}

/// Asks whether the batch is to run, when all of it was on the screen.
pub(super) fn ask_approve(state: &mut State) {
    let Some(batch) = state.batch() else { return };
    match batch.refuses_accept() {
        Some(words) => state.warn(words),
        None => {
            let subject = Subject::Approve {
                approval_id: batch.approval.approval_id.clone(),
                actions: batch.approval.actions.len(),
            };
            ask(state, subject);
        }
    }
}

pub(super) fn ask_reject(state: &mut State) {
    let Some(batch) = state.batch() else { return };
    if batch.decided {
        return state.warn("a decision on this batch was sent");
    }
    let subject =
        Subject::Reject { approval_id: batch.approval.approval_id.clone(), actions: batch.approval.actions.len() };
    ask(state, subject);
}

pub(super) fn ask_interrupt(state: &mut State) {
    if state.open.is_some() {
        ask(state, Subject::Interrupt);
    }
}

pub(super) fn ask_resume(state: &mut State) {
    if state.open.is_some() {
        ask(state, Subject::Resume);
    }
}

/// The answer was given.
pub(super) fn answered(state: &mut State) -> Vec<Effect> {
    let Some(question) = state.question.clone() else { return Vec::new() };
    match question.answer() {
        Answer::NotTheWord => {
            withdraw(state);
            state.say(format!("nothing was sent: the word is `{}`", question.subject.word()));
            Vec::new()
        }
        Answer::ReasonTooLong => {
            state.warn("the reason is longer than 2,000 bytes");
            Vec::new()
        }
        Answer::Agreed { reason } => {
            withdraw(state);
            agreed(state, &question.subject, reason)
        }
    }
}

fn agreed(state: &mut State, subject: &Subject, reason: Option<String>) -> Vec<Effect> {
    match subject {
        Subject::Approve { approval_id, .. } => {
            // Asked again at the moment of sending: the batch, and that it was read.
            let Some(batch) = state
                .batch_mut()
                .filter(|batch| batch.approval.approval_id == *approval_id && batch.refuses_accept().is_none())
            else {
                return Vec::new();
            };
            batch.decided = true;
            let generation = batch.generation;
            act(state, DECIDE, decision(approval_id, "accept", None), Some(generation))
        }
        Subject::Reject { approval_id, .. } => {
            let Some(batch) = state.batch_mut().filter(|batch| batch.approval.approval_id == *approval_id) else {
                return Vec::new();
            };
            batch.decided = true;
            act(state, DECIDE, decision(approval_id, "reject", reason.as_deref()), None)
        }
        Subject::Interrupt => act(state, INTERRUPT, json!({}), None),
        Subject::Resume => with_generation(state, RESUME, json!({})),
    }
}

/// Sends the prompt, which then is gone from the line, whatever becomes of it.
pub(super) fn send_prompt(state: &mut State) -> Vec<Effect> {
    let text = state.prompt.text().to_owned();
    if text.trim().is_empty() {
        return Vec::new();
    }
    let effects = with_generation(state, PROMPT, json!({"text": text, "on_pending": "refuse"}));
    if !effects.is_empty() {
        state.prompt.clear();
    }
    effects
}

fn with_generation(state: &mut State, operation: &'static str, input: Value) -> Vec<Effect> {
    let snapshot = state.open.as_ref().and_then(|open| open.snapshot.as_ref());
    match snapshot.map(|snapshot| snapshot.capability_generation) {
        Some(generation) => act(state, operation, input, Some(generation)),
        None => {
            state.warn("no session is open yet: nothing was sent");
            Vec::new()
        }
    }
}

fn act(state: &mut State, operation: &'static str, input: Value, generation: Option<u64>) -> Vec<Effect> {
    let Some(open) = &state.open else { return Vec::new() };
    let asked = Asked { opening: open.opening, session_id: open.session_id.clone(), operation, input, generation };
    state.say(format!("{operation}: sent"));
    vec![Effect::Act(asked)]
}

/// Says what became of an operation. Whether it was a decision, and its batch still waits.
pub(super) fn told(state: &mut State, operation: &'static str, receipt: Result<Box<Receipt>, Trouble>) -> bool {
    match receipt {
        Ok(receipt) => {
            let code = receipt.code.as_deref().map(|code| format!(" ({})", sanitize::line(code))).unwrap_or_default();
            let detail = receipt.detail.as_deref().map(|detail| format!(": {}", sanitize::line(detail)));
            let words = format!("{operation} {}{code}{}", standing(receipt.state), detail.unwrap_or_default());
            let well = matches!(
                receipt.state,
                api_types::ReceiptState::Applied | api_types::ReceiptState::Queued | api_types::ReceiptState::InFlight
            );
            if well {
                state.say(words)
            } else {
                state.warn(words)
            }
            operation == DECIDE && receipt.state == api_types::ReceiptState::Rejected
        }
        Err(trouble) => {
            state.warn(format!("{operation}: {}", trouble.words));
            // A refusal left nothing behind; where the outcome is unknown, the batch stays as decided on.
            operation == DECIDE && trouble.exit != api_types::ExitCode::Unknown
        }
    }
}

/// The batch still waits: it may be decided on again.
pub(super) fn undecided(state: &mut State) {
    if let Some(batch) = state.batch_mut() {
        batch.decided = false;
    }
}
