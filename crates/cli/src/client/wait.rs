//! Sends an operation once, and follows its receipt for a bounded time.

use std::time::{Duration, Instant};

use api_types::{ActionRequest, ExitCode, Receipt, ReceiptState};
use http::Method;
use serde_json::Value;

use super::app::{App, READ_TIMEOUT, typed};
use crate::args::FollowArgs;
use crate::failure::Failure;
use crate::render;
use crate::transport::{Call, Effect};

/// How long an outcome is waited for when nothing else was said.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// An operation about to be asked for.
pub(super) struct Action {
    pub(super) session_id: String,
    operation: &'static str,
    input: Value,
    generation: Option<u64>,
    /// Key of the receipt.
    pub(super) action_id: String,
    /// When waiting ends.
    pub(super) deadline: Instant,
}

impl Action {
    pub(super) fn new(
        session_id: &str,
        operation: &'static str,
        input: Value,
        generation: Option<u64>,
        args: &FollowArgs,
    ) -> Self {
        let wait = args.timeout_s.map_or(DEFAULT_WAIT, |seconds| Duration::from_secs(u64::from(seconds)));
        Self {
            session_id: session_id.to_owned(),
            operation,
            input,
            generation,
            action_id: args.action_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
            deadline: Instant::now() + wait,
        }
    }

    pub(super) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// A receipt: as sent, and typed.
pub(super) struct Known {
    pub(super) body: Value,
    pub(super) receipt: Receipt,
}

impl Known {
    pub(super) fn read(body: Value) -> Result<Self, Failure> {
        let receipt = typed(&body, "a receipt")?;
        Ok(Self { body, receipt })
    }
}

/// Sends the operation, follows it, and prints what came of it.
pub(super) async fn carry_out(app: &App<'_>, action: &Action) -> Result<ExitCode, Failure> {
    let known = follow(app, action, send(app, action).await?).await?;
    conclude(app, known)
}

/// Sends the operation, once. Whatever the answer, the receipt can be looked up.
pub(super) async fn send(app: &App<'_>, action: &Action) -> Result<Known, Failure> {
    let request = ActionRequest {
        operation_id: action.operation.to_owned(),
        input: action.input.clone(),
        capability_generation: action.generation,
        client_action_id: Some(action.action_id.clone()),
    };
    let body = serde_json::to_value(&request).map_err(|error| {
        Failure::new(ExitCode::Failed, "internal", format!("the request cannot be written: {error}"))
    })?;
    let target = format!("/v1/sessions/{}/actions", action.session_id);
    match app.call(Method::POST, target, Some(&body), Effect::Change, action.remaining()).await {
        Ok(reply) => Known::read(reply).map_err(|failure| unknown(failure, action)),
        Err(failure) if failure.exit == ExitCode::Unknown => Err(unknown(failure, action)),
        Err(failure) => Err(failure.field("client_action_id", action.action_id.as_str())),
    }
}

fn unknown(mut failure: Failure, action: &Action) -> Failure {
    failure.exit = ExitCode::Unknown;
    failure
        .field("client_action_id", action.action_id.as_str())
        .hint(format!("nothing is sent twice: `gatepost receipt {}` tells what became of it", action.action_id))
}

/// Follows a receipt until it is final or the time is over.
async fn follow(app: &App<'_>, action: &Action, first: Known) -> Result<Known, Failure> {
    if first.receipt.state.is_final() {
        return Ok(first);
    }
    app.with_progress(&format!("action {} is not done yet", action.action_id), poll(app, action, first)).await
}

async fn poll(app: &App<'_>, action: &Action, mut known: Known) -> Result<Known, Failure> {
    let mut pause = FIRST_PAUSE;
    while !known.receipt.state.is_final() {
        let left = action.remaining();
        if left.is_zero() {
            return Err(over(action, &known));
        }
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        known = look_up(app, action).await?;
    }
    Ok(known)
}

/// Reads the receipt again, silently.
pub(super) async fn look_up(app: &App<'_>, action: &Action) -> Result<Known, Failure> {
    let target = format!("/v1/actions/{}", action.action_id);
    let call = Call { method: Method::GET, target, body: None, effect: Effect::Read, within: READ_TIMEOUT };
    // It was taken on, so whatever keeps us from reading of it leaves it unknown.
    match app.send_quietly(call).await {
        Ok(body) => Known::read(body).map_err(|failure| unknown(failure, action)),
        Err(failure) => Err(unknown(failure, action)),
    }
}

/// The time is over and the receipt is not final.
pub(super) fn over(action: &Action, known: &Known) -> Failure {
    let state = render::receipt::state_word(known.receipt.state);
    let detail = format!("the wait is over and the action is still {state}; it goes on");
    let failure = Failure::new(ExitCode::Unknown, "timed_out", detail).body(&known.body);
    unknown(failure, action)
}

/// Prints a final receipt; anything but `applied` is a failure that carries it.
pub(super) fn conclude(app: &App<'_>, known: Known) -> Result<ExitCode, Failure> {
    match failure_of(&known) {
        Some(failure) => Err(failure),
        None => {
            app.reply(&known.body, || render::receipt::receipt(&known.receipt, &app.style));
            Ok(ExitCode::of_receipt(&known.receipt))
        }
    }
}

/// What a receipt that was not applied says.
pub(super) fn failure_of(known: &Known) -> Option<Failure> {
    let receipt = &known.receipt;
    let exit = ExitCode::of_receipt(receipt);
    let fallback = match receipt.state {
        ReceiptState::Applied | ReceiptState::Queued => return None,
        ReceiptState::InFlight => "in_flight",
        ReceiptState::Rejected => "rejected",
        ReceiptState::OutcomeUnknown => "outcome_unknown",
    };
    let code = receipt.code.as_deref().unwrap_or(fallback);
    let state = render::receipt::state_word(receipt.state);
    let detail = receipt.detail.clone().unwrap_or_else(|| format!("the daemon says {state} and no more"));
    let mut failure = Failure::new(exit, code, detail).body(&known.body);
    if failure.hint.is_none() {
        let id = &receipt.client_action_id;
        let again = format!("`gatepost receipt {id}` shows its steps");
        failure = failure.hint(if receipt.state == ReceiptState::OutcomeUnknown {
            format!("it may have been done, and is never sent again; look at `gatepost events ID`; {again}")
        } else {
            again
        });
    }
    Some(failure)
}
