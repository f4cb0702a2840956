//! The one place that lets a step-causing call out.

use std::collections::BTreeSet;

use crate::approval::{AcceptRequest, check_accept, in_doubt};
use crate::branch::Branch;
use crate::canary::{CanaryResult, all_passed};
use crate::log::ExecutionStatus;
use crate::quiet::QuietState;
use crate::refusal::{Refusal, RefusalCode};

/// Which call is to be sent.
#[derive(Debug, Clone, Copy)]
pub enum StepRequest<'a> {
    /// A message that starts a turn.
    Message,
    /// Running on, also in a fresh fork.
    Run,
    /// Condensing the context.
    Condense,
    /// Accepting the batch that waits.
    Accept(AcceptRequest<'a>),
}

/// Which call a grant is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepCause {
    /// A message that starts a turn.
    Message,
    /// Running on.
    Run,
    /// Condensing the context.
    Condense,
    /// Accepting the batch whose actions the grant names.
    Accept,
}

/// Everything the gate looks at. All of it comes from one read under the session's lock.
#[derive(Debug, Clone, Copy)]
pub struct GateInput<'a> {
    /// The session, the same as the server's conversation id.
    pub session_id: &'a str,
    /// What is to be sent.
    pub request: StepRequest<'a>,
    /// The active branch.
    pub branch: &'a Branch<'a>,
    /// The execution status.
    pub status: ExecutionStatus,
    /// What is known of the last step.
    pub quiet: QuietState,
    /// Ids of every action whose accept was ever sent, from the ledger.
    pub sent: &'a BTreeSet<String>,
    /// Why the session takes no step, if it takes none.
    pub blocked: Option<&'a Refusal>,
    /// Every canary of installation, server and session, as last read.
    pub canaries: &'a [CanaryResult],
}

/// Permission for one step-causing call, used up by sending it. Only [`gate`] makes one.
///
/// It cannot be made elsewhere:
/// ```compile_fail,E0451
/// let grant = rules::gate::StepGrant {
///     session_id: String::new(),
///     cause: rules::gate::StepCause::Run,
///     event_ids: Vec::new(),
/// };
/// ```
/// nor used twice:
/// ```compile_fail,E0599
/// fn twice(grant: rules::gate::StepGrant) -> (rules::gate::StepGrant, rules::gate::StepGrant) {
///     (rules::gate::StepGrant::clone(&grant), grant)
/// }
/// ```
#[derive(Debug)]
#[must_use = "a grant is good for nothing but the call it was asked for"]
pub struct StepGrant {
    session_id: String,
    cause: StepCause,
    event_ids: Vec<String>,
}

impl StepGrant {
    /// The session it is good for.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// The call it is good for.
    pub fn cause(&self) -> StepCause {
        self.cause
    }

    /// The actions that may run, in order; empty unless the cause is [`StepCause::Accept`].
    pub fn event_ids(&self) -> &[String] {
        &self.event_ids
    }
}

/// Decides whether a step-causing call may be sent now.
///
/// # Errors
/// The first reason against it: blocked, a canary, running, not quiet, in doubt, pending, or what an accept names.
pub fn gate(input: &GateInput<'_>) -> Result<StepGrant, Refusal> {
    if let Some(blocked) = input.blocked {
        return Err(Refusal::new(RefusalCode::SessionBlocked, format!("the session is blocked: {blocked}")));
    }
    // INVARIANT I10: a canary that failed or was not read lets nothing out.
    all_passed(input.canaries)?;
    check_status(input.status)?;
    check_quiet(input.quiet)?;
    if let Some(doubtful) = in_doubt(input.branch, input.sent).first() {
        let detail =
            format!("an accept of action {doubtful} was sent before and its outcome is unknown; reject the batch");
        return Err(Refusal::new(RefusalCode::ApprovalInDoubt, detail));
    }
    // INVARIANT I1: any step runs whatever is pending, so nothing but an accept goes out while something is.
    let (cause, event_ids) = match &input.request {
        StepRequest::Message => (StepCause::Message, nothing_pending(input.branch)?),
        StepRequest::Run => (StepCause::Run, nothing_pending(input.branch)?),
        StepRequest::Condense => (StepCause::Condense, nothing_pending(input.branch)?),
        StepRequest::Accept(request) => {
            (StepCause::Accept, check_accept(input.session_id, request, input.branch, input.sent)?)
        }
    };
    Ok(StepGrant { session_id: input.session_id.to_owned(), cause, event_ids })
}

fn check_status(status: ExecutionStatus) -> Result<(), Refusal> {
    match status {
        ExecutionStatus::Idle
        | ExecutionStatus::Paused
        | ExecutionStatus::WaitingForConfirmation
        | ExecutionStatus::Finished
        | ExecutionStatus::Error
        | ExecutionStatus::Stuck => Ok(()),
        ExecutionStatus::Running => {
            Err(Refusal::new(RefusalCode::SessionRunning, "the agent runs; wait for it or interrupt it"))
        }
        ExecutionStatus::Deleting => {
            Err(Refusal::new(RefusalCode::SessionClosed, "the server is deleting this conversation"))
        }
        ExecutionStatus::Unknown => Err(Refusal::new(
            RefusalCode::UpstreamMalformed,
            "the server reports an execution status outside its contract; interrupt the session or restart its server",
        )),
    }
}

fn check_quiet(quiet: QuietState) -> Result<(), Refusal> {
    let detail = match quiet {
        QuietState::Quiet => return Ok(()),
        QuietState::AwaitingStart => "the last step has not been seen to begin; wait a moment",
        QuietState::AwaitingEnd => "the last step has not been seen to end; wait for it or interrupt it",
    };
    Err(Refusal::new(RefusalCode::SessionNotQuiet, detail))
}

fn nothing_pending(branch: &Branch<'_>) -> Result<Vec<String>, Refusal> {
    match branch.batch().len() {
        0 => Ok(Vec::new()),
        count => {
            let detail = format!("{count} actions wait for a decision and any step would run them; decide them first");
            Err(Refusal::new(RefusalCode::ApprovalPending, detail))
        }
    }
}

#[cfg(test)]
mod tests;
