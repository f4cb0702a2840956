//! Sessions: list, create, attach, show, close.

use api_types::{Closed, SessionList};
use http::StatusCode;
use rules::catalog::{validate_prompt, validate_session_id, validate_title};
use rules::refusal::{Refusal, RefusalCode};
use serde_json::Value;
use session::view::{AttachSession, CreateSession};

use super::session_id;
use crate::backend::Backend;
use crate::fields::Fields;
use crate::limits::WORKSPACE_MAX_BYTES;
use crate::reply::{Reply, json};
use crate::service::Exchange;
use crate::{body, convert, request, strict_json};

pub(super) async fn list<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let sessions = exchange.service.backend.sessions().await?;
    let sessions = sessions.into_iter().map(convert::session_summary).collect();
    Ok(json(StatusCode::OK, &SessionList { sessions }))
}

pub(super) async fn create<B: Backend>(exchange: Exchange<'_, B>) -> Result<Reply, Refusal> {
    refuse_idempotency_key(&exchange, "a session's idempotency key is its `session_id`: choose one and send it")?;
    let Exchange { service, caller, body, .. } = exchange;
    let bytes = body::read(body, service.limits.body_bytes, service.limits.body_timeout).await?;
    let request = parse_create(strict_json::parse(&bytes)?)?;
    let (snapshot, created) = service.backend.create_session(&caller, request).await?;
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &convert::session_snapshot(snapshot)))
}

pub(super) async fn attach<B: Backend>(exchange: Exchange<'_, B>) -> Result<Reply, Refusal> {
    refuse_idempotency_key(
        &exchange,
        "attaching needs no idempotency key: the same request again is the same session",
    )?;
    let Exchange { service, caller, body, .. } = exchange;
    let bytes = body::read(body, service.limits.body_bytes, service.limits.body_timeout).await?;
    let request = parse_attach(strict_json::parse(&bytes)?)?;
    let snapshot = service.backend.attach_session(&caller, request).await?;
    Ok(json(StatusCode::OK, &convert::session_snapshot(snapshot)))
}

pub(super) async fn show<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let snapshot = exchange.service.backend.snapshot(session_id(exchange)?).await?;
    Ok(json(StatusCode::OK, &convert::session_snapshot(snapshot)))
}

pub(super) async fn close<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let delete = exchange.query.flag("delete")?;
    let session_id = session_id(exchange)?;
    exchange.service.backend.close_session(&exchange.caller, session_id, delete).await?;
    Ok(json(StatusCode::OK, &Closed { session_id: session_id.to_owned(), deleted: delete }))
}

fn parse_create(value: Value) -> Result<CreateSession, Refusal> {
    let mut fields = Fields::of(value)?;
    let workspace = workspace(&mut fields)?;
    let title = fields.optional_string("title")?;
    let prompt = fields.optional_string("prompt")?;
    let session_id = fields.optional_string("session_id")?;
    fields.finish()?;
    title.as_deref().map_or(Ok(()), validate_title)?;
    prompt.as_deref().map_or(Ok(()), validate_prompt)?;
    session_id.as_deref().map_or(Ok(()), validate_session_id)?;
    Ok(CreateSession { workspace, title, prompt, session_id })
}

fn parse_attach(value: Value) -> Result<AttachSession, Refusal> {
    let mut fields = Fields::of(value)?;
    let workspace = workspace(&mut fields)?;
    let conversation_id = fields.required_string("conversation_id")?;
    fields.finish()?;
    validate_session_id(&conversation_id)?;
    Ok(AttachSession { workspace, conversation_id })
}

/// Form only: whether it exists and lies in a root is the controller's to find out.
fn workspace(fields: &mut Fields) -> Result<String, Refusal> {
    let path = fields.required_string("workspace")?;
    if path.is_empty() {
        return Err(Refusal::new(RefusalCode::Empty, "`workspace` must name a directory"));
    }
    if path.len() > WORKSPACE_MAX_BYTES {
        let detail = format!("`workspace` is longer than {WORKSPACE_MAX_BYTES} bytes");
        return Err(Refusal::new(RefusalCode::TooLong, detail));
    }
    if !path.starts_with('/') || path.chars().any(char::is_control) {
        let detail = "`workspace` must be an absolute path without control characters";
        return Err(Refusal::new(RefusalCode::InvalidValue, detail));
    }
    Ok(path)
}

/// A key that is not honoured must not be taken in silence.
pub(super) fn refuse_idempotency_key<B>(exchange: &Exchange<'_, B>, detail: &str) -> Result<(), Refusal> {
    match request::idempotency_key(&exchange.parts.headers)? {
        None => Ok(()),
        Some(_) => Err(Refusal::new(RefusalCode::InvalidValue, detail)),
    }
}
