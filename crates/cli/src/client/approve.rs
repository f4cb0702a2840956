//! Deciding on the pending batch: shown whole, named by its digest.

use api_types::{Approval, ExitCode};

use super::app::App;
use super::resolve;
use super::wait::{self, Action};
use crate::acceptable::{self, decision};
use crate::args::{ApproveArgs, RejectArgs};
use crate::failure::Failure;
use crate::render;

const OPERATION: &str = "session.approval.decide";

pub(super) async fn approve(app: &App<'_>, args: &ApproveArgs) -> Result<ExitCode, Failure> {
    if args.approval.is_none() && !app.can_ask() {
        return Err(must_be_named("approve"));
    }
    let session_id = resolve::session(app, &args.follow.session).await?;
    // Read before the batch is: whatever changes while a person reads it makes the decision stale.
    let (_, snapshot) = resolve::snapshot(app, &session_id).await?;
    let approval_id = match &args.approval {
        Some(digits) => resolve::approval(app, &session_id, digits).await?,
        None => the_only_one(app, &session_id).await?.approval_id,
    };
    let (_, batch) = resolve::in_full(app, &session_id, &approval_id).await?;
    show(app, &batch);
    if args.approval.is_none() {
        approvable(&batch)?;
        let question = match batch.actions.len() {
            1 => "Approve this 1 action? [y/N] ".to_owned(),
            n => format!("Approve these {n} actions? [y/N] "),
        };
        if !app.ask(&question) {
            return Err(declined());
        }
    }
    let input = decision(&approval_id, "accept", None);
    // The wait begins when the person has decided.
    let action = Action::new(&session_id, OPERATION, input, Some(snapshot.capability_generation), &args.follow);
    wait::carry_out(app, &action).await
}

pub(super) async fn reject(app: &App<'_>, args: &RejectArgs) -> Result<ExitCode, Failure> {
    if args.approval.is_none() && !app.can_ask() {
        return Err(must_be_named("reject"));
    }
    let session_id = resolve::session(app, &args.follow.session).await?;
    let approval_id = match &args.approval {
        Some(digits) => resolve::approval(app, &session_id, digits).await?,
        None => {
            let listed = the_only_one(app, &session_id).await?;
            let approval_id = listed.approval_id.clone();
            // An operator may reject and may not read in full: the list's view, with its flags, must do then.
            let batch = match resolve::in_full(app, &session_id, &approval_id).await {
                Ok((_, batch)) => batch,
                Err(failure) if failure.exit == ExitCode::NotPermitted => listed,
                Err(failure) => return Err(failure),
            };
            show(app, &batch);
            if !app.ask(&format!("Reject {}? [y/N] ", render::approval::count(batch.actions.len()))) {
                return Err(declined());
            }
            approval_id
        }
    };
    let input = decision(&approval_id, "reject", args.reason.as_deref());
    let action = Action::new(&session_id, OPERATION, input, None, &args.follow);
    wait::carry_out(app, &action).await
}

fn show(app: &App<'_>, batch: &Approval) {
    if !app.json() {
        app.print(&render::approval::approval(batch, &app.style));
    }
}

/// The batch to be asked about. There is one at most; more would be a daemon we do not understand.
async fn the_only_one(app: &App<'_>, session_id: &str) -> Result<Approval, Failure> {
    let (_, mut pending) = resolve::pending(app, session_id).await?;
    match (pending.pop(), pending.is_empty()) {
        (Some(approval), true) => Ok(approval),
        (Some(_), false) => Err(Failure::usage("several batches wait: name the one that is meant")),
        (None, _) => {
            let exit = ExitCode::of_refusal("nothing_pending", 409);
            Err(Failure::new(exit, "nothing_pending", "nothing waits for a decision"))
        }
    }
}

/// What cannot be accepted is not asked about.
fn approvable(batch: &Approval) -> Result<(), Failure> {
    match acceptable::refusal(batch) {
        Some((code, detail)) => Err(Failure::new(ExitCode::Conflict, code, detail)),
        None => Ok(()),
    }
}

fn must_be_named(command: &str) -> Failure {
    let detail = format!(
        "{command} needs the approval's digest: only at a terminal, and without --json, can the batch be shown and asked about"
    );
    Failure::new(ExitCode::Usage, "approval_needed", detail)
        .hint(format!("`gatepost approvals ID --full`, then `gatepost {command} ID APPROVAL` with at least 12 digits"))
}

fn declined() -> Failure {
    Failure::new(ExitCode::Failed, "declined", "nothing was sent; the batch still waits")
        .hint("`gatepost reject ID` rejects it")
}
