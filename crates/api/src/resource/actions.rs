//! Operations of the catalog, and their receipts.

use http::{HeaderMap, StatusCode};
use rules::catalog::{validate, validate_client_action_id};
use rules::operation::{OperationId, OperationScope};
use rules::refusal::{Refusal, RefusalCode};
use rules::role::authorize_operation;
use serde_json::Value;
use session::view::ActionRequest;

use super::session_id;
use crate::attempt::Attempt;
use crate::backend::Backend;
use crate::fields::{Fields, missing};
use crate::reply::{Reply, json};
use crate::service::Exchange;
use crate::{body, convert, request, strict_json};

pub(super) async fn on_session<B: Backend>(exchange: Exchange<'_, B>) -> Result<Reply, Refusal> {
    let session_id = session_id(&exchange)?.to_owned();
    act(exchange, Some(session_id)).await
}

pub(super) async fn on_provider<B: Backend>(exchange: Exchange<'_, B>) -> Result<Reply, Refusal> {
    act(exchange, None).await
}

pub(super) async fn receipt<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let id = exchange.parameters.client_action_id.as_deref().unwrap_or_default();
    validate_client_action_id(id)?;
    let receipt = exchange.service.backend.receipt(id).await?;
    Ok(json(StatusCode::OK, &convert::receipt(receipt)))
}

async fn act<B: Backend>(exchange: Exchange<'_, B>, session_id: Option<String>) -> Result<Reply, Refusal> {
    let Exchange { service, caller, parts, body, attempt, .. } = exchange;
    let bytes = body::read(body, service.limits.body_bytes, service.limits.body_timeout).await?;
    let request = parse(strict_json::parse(&bytes)?, &parts.headers, session_id, attempt)?;
    // INVARIANT I9: too small a role is refused before any effect.
    authorize_operation(caller.roles, &request.input)?;
    let receipt = convert::receipt(service.backend.act(&caller, request).await?);
    let status = if receipt.state.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(json(status, &receipt))
}

fn parse(
    value: Value,
    headers: &HeaderMap,
    session_id: Option<String>,
    attempt: &Attempt,
) -> Result<ActionRequest, Refusal> {
    let mut fields = Fields::of(value)?;
    let operation = fields.required_string("operation_id")?;
    let input = fields.required("input")?;
    let capability_generation = fields.optional_u64("capability_generation")?;
    let in_body = fields.optional_string("client_action_id")?;
    fields.finish()?;
    let client_action_id = client_action_id(in_body, request::idempotency_key(headers)?)?;
    attempt.note_key(&client_action_id);
    let operation = OperationId::parse(&operation).ok_or_else(|| {
        Refusal::new(RefusalCode::UnknownOperation, "no such operation: `GET /v1/catalog` lists all there are")
    })?;
    attempt.note_operation(operation);
    check_place(operation.scope(), session_id.is_some())?;
    let input = validate(operation, &input)?;
    Ok(ActionRequest { session_id, input, client_action_id, capability_generation })
}

/// The header and the body name the same key, or one of them does.
fn client_action_id(in_body: Option<String>, in_header: Option<&str>) -> Result<String, Refusal> {
    let id = match (in_body, in_header) {
        (None, None) => return Err(missing("client_action_id")),
        (Some(body), Some(header)) if body != header => {
            return Err(Refusal::new(
                RefusalCode::IdempotencyKeyConflict,
                "`client_action_id` and the header `Idempotency-Key` differ: send one, or both the same",
            ));
        }
        (Some(body), _) => body,
        (None, Some(header)) => header.to_owned(),
    };
    validate_client_action_id(&id)?;
    Ok(id)
}

/// An operation is asked for where it belongs.
fn check_place(scope: OperationScope, on_session: bool) -> Result<(), Refusal> {
    match (scope, on_session) {
        (OperationScope::Session, true) | (OperationScope::Provider, false) => Ok(()),
        (OperationScope::Session, false) => Err(Refusal::new(
            RefusalCode::InvalidValue,
            "this operation needs a session: send it to `/v1/sessions/{session_id}/actions`",
        )),
        (OperationScope::Provider, true) => {
            Err(Refusal::new(RefusalCode::InvalidValue, "this operation has no session: send it to `/v1/actions`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_place_of_the_key_will_do_but_not_two_keys() {
        assert_eq!(client_action_id(Some("a".into()), None).unwrap(), "a");
        assert_eq!(client_action_id(None, Some("a")).unwrap(), "a");
        assert_eq!(client_action_id(Some("a".into()), Some("a")).unwrap(), "a");
        let conflict = client_action_id(Some("a".into()), Some("b")).unwrap_err();
        assert_eq!(conflict.code, RefusalCode::IdempotencyKeyConflict);
        assert_eq!(client_action_id(None, None).unwrap_err().code, RefusalCode::MissingField);
    }

    #[test]
    fn operations_are_asked_for_where_they_belong() {
        assert!(check_place(OperationScope::Session, true).is_ok());
        assert!(check_place(OperationScope::Provider, false).is_ok());
        assert!(check_place(OperationScope::Session, false).is_err());
        assert!(check_place(OperationScope::Provider, true).is_err());
    }
}
