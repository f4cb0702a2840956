//! Commands that only look: status, what is pending, a receipt.

use api_types::{ApprovalList, ExitCode, Status};
use serde_json::json;

use super::app::{App, typed};
use super::resolve;
use super::wait::{self, Known};
use crate::args::IdPrefix;
use crate::failure::Failure;
use crate::render;

pub(super) async fn status(app: &App<'_>) -> Result<ExitCode, Failure> {
    let body = app.get("/v1/status".to_owned()).await?;
    let status: Status = typed(&body, "a status")?;
    let exit = ExitCode::of_status(&status);
    if app.json() && exit != ExitCode::Done {
        // The whole status, and beside it what a failed command has.
        let words: Vec<String> =
            status.findings.iter().map(|finding| format!("{}: {}", finding.code, finding.detail)).collect();
        let state = render::status::state_word(status.state);
        let detail = if words.is_empty() { format!("the daemon is {state}") } else { words.join("; ") };
        app.print_json(&Failure::new(exit, state, detail).body(&body).object());
    } else {
        app.reply(&body, || render::status::status(&status, &app.style));
    }
    Ok(exit)
}

pub(super) async fn approvals(app: &App<'_>, session: &IdPrefix, full: bool) -> Result<ExitCode, Failure> {
    let session_id = resolve::session(app, session).await?;
    let (mut body, listed) = resolve::pending(app, &session_id).await?;
    if full {
        let mut whole = Vec::with_capacity(listed.len());
        for approval in &listed {
            whole.push(resolve::in_full(app, &session_id, &approval.approval_id).await?.0);
        }
        body = json!({"approvals": whole});
    }
    let list: ApprovalList = typed(&body, "a list of approvals")?;
    app.reply(&body, || render::approval::list(&list.approvals, &app.style));
    Ok(ExitCode::Done)
}

pub(super) async fn receipt(app: &App<'_>, action_id: &str) -> Result<ExitCode, Failure> {
    let known = Known::read(app.get(format!("/v1/actions/{action_id}")).await?)?;
    if !app.json() {
        app.print(&render::receipt::receipt(&known.receipt, &app.style));
        return Ok(ExitCode::of_receipt(&known.receipt));
    }
    wait::conclude(app, known)
}
