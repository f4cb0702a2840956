//! What waits for a decision.

use api_types::ApprovalList;
use http::StatusCode;
use rules::refusal::{Refusal, RefusalCode};
use rules::role::{Role, authorize};

use super::session_id;
use crate::backend::Backend;
use crate::convert;
use crate::reply::{Reply, json};
use crate::service::Exchange;

pub(super) async fn list<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let approvals = exchange.service.backend.approvals(session_id(exchange)?).await?;
    Ok(json(StatusCode::OK, &ApprovalList { approvals: approvals.into_iter().map(convert::approval).collect() }))
}

pub(super) async fn show<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let full = exchange.query.flag("full")?;
    if full {
        // A full read lifts the redaction by key name, and counts as having been shown what is accepted.
        authorize(exchange.caller.roles, Role::Approver)?;
    }
    let session_id = session_id(exchange)?;
    let approval_id = exchange.parameters.approval_id.as_deref().unwrap_or_default();
    check_approval_id(approval_id)?;
    let approval = exchange.service.backend.approval(&exchange.caller, session_id, approval_id, full).await?;
    Ok(json(StatusCode::OK, &convert::approval(approval)))
}

fn check_approval_id(text: &str) -> Result<(), Refusal> {
    let digest = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if digest {
        return Ok(());
    }
    Err(Refusal::new(RefusalCode::InvalidValue, "an approval id is 64 lower-case hexadecimal digits, in full"))
}
