//! From what was typed to what is meant.

use api_types::{Approval, ApprovalList, ExitCode, SessionList, SessionSnapshot};
use serde_json::{Value, json};

use super::app::{App, typed};
use crate::acceptable::is_digest;
use crate::args::{ApprovalDigits, IdPrefix};
use crate::failure::Failure;
use crate::sanitize;

/// The session that a prefix names; a whole UUID costs no request.
pub(super) async fn session(app: &App<'_>, prefix: &IdPrefix) -> Result<String, Failure> {
    if let Some(whole) = prefix.whole() {
        return Ok(whole);
    }
    let list: SessionList = typed(&app.get("/v1/sessions".to_owned()).await?, "a session list")?;
    let fitting: Vec<_> = list.sessions.iter().filter(|session| prefix.begins(&session.session_id)).collect();
    match fitting.as_slice() {
        [one] => checked_id(&one.session_id),
        [] => {
            let detail = format!("no session begins with {}", prefix.digits());
            Err(Failure::new(ExitCode::of_refusal("session_not_found", 404), "session_not_found", detail))
        }
        several => {
            let lines: String = several
                .iter()
                .map(|session| {
                    format!(
                        "\n  {}  {}",
                        session.session_id,
                        sanitize::line(session.title.as_deref().unwrap_or_default())
                    )
                })
                .collect();
            let ids: Vec<&str> = several.iter().map(|session| session.session_id.as_str()).collect();
            Err(Failure::new(
                ExitCode::Usage,
                "id_ambiguous",
                format!("{} begins several sessions:{lines}", prefix.digits()),
            )
            .field("candidates", json!(ids))
            .hint("type more of the id"))
        }
    }
}

/// An id of the list goes into the next request's path: it must be one.
fn checked_id(session_id: &str) -> Result<String, Failure> {
    match uuid::Uuid::try_parse(session_id) {
        Ok(id) => Ok(id.hyphenated().to_string()),
        Err(_) => Err(Failure::malformed("a session list")),
    }
}

/// The snapshot of a session: as sent, and typed.
pub(super) async fn snapshot(app: &App<'_>, session_id: &str) -> Result<(Value, SessionSnapshot), Failure> {
    let body = app.get(format!("/v1/sessions/{session_id}")).await?;
    let snapshot = typed(&body, "a session")?;
    Ok((body, snapshot))
}

/// What waits for a decision, as the list shows it.
pub(super) async fn pending(app: &App<'_>, session_id: &str) -> Result<(Value, Vec<Approval>), Failure> {
    let body = app.get(format!("/v1/sessions/{session_id}/approvals")).await?;
    let list: ApprovalList = typed(&body, "a list of approvals")?;
    if list.approvals.iter().any(|approval| !is_digest(&approval.approval_id)) {
        return Err(Failure::malformed("a list of approvals"));
    }
    Ok((body, list.approvals))
}

/// One approval in full; it must be the one that was asked for.
pub(super) async fn in_full(app: &App<'_>, session_id: &str, approval_id: &str) -> Result<(Value, Approval), Failure> {
    let body = app.get(format!("/v1/sessions/{session_id}/approvals/{approval_id}?full=true")).await?;
    let approval: Approval = typed(&body, "an approval")?;
    if approval.approval_id != approval_id || approval.session_id != session_id {
        return Err(Failure::malformed("the approval that was asked for"));
    }
    Ok((body, approval))
}

/// The approval that the typed digits name.
pub(super) async fn approval(app: &App<'_>, session_id: &str, digits: &ApprovalDigits) -> Result<String, Failure> {
    if digits.is_whole() {
        return Ok(digits.digits().to_owned());
    }
    let (_, pending) = pending(app, session_id).await?;
    let fitting: Vec<_> = pending.iter().filter(|approval| approval.approval_id.starts_with(digits.digits())).collect();
    match fitting.as_slice() {
        [one] => Ok(one.approval_id.clone()),
        [] => {
            let detail = format!("nothing that waits for a decision begins with {}", digits.digits());
            Err(Failure::new(ExitCode::of_refusal("approval_not_found", 404), "approval_not_found", detail))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|approval| approval.approval_id.as_str()).collect();
            let detail = format!("{} begins several approvals: {}", digits.digits(), ids.join(", "));
            Err(Failure::new(ExitCode::Usage, "id_ambiguous", detail)
                .field("candidates", json!(ids))
                .hint("type more of it"))
        }
    }
}
