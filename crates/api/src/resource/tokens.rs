//! Tokens of clients: list, create, revoke. For the owner alone.

use api_types::{CreatedToken, Token, TokenList};
use http::StatusCode;
use rules::refusal::{Refusal, RefusalCode};
use rules::role::Roles;
use rules::token::{roles_of, validate_name};
use serde_json::Value;
use session::view::TokenView;

use super::sessions::refuse_idempotency_key;
use crate::backend::Backend;
use crate::fields::Fields;
use crate::reply::{Reply, json};
use crate::service::Exchange;
use crate::{body, strict_json};

pub(super) async fn list<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let tokens = exchange.service.backend.tokens().await?.into_iter().map(token).collect();
    Ok(json(StatusCode::OK, &TokenList { tokens }))
}

pub(super) async fn create<B: Backend>(exchange: Exchange<'_, B>) -> Result<Reply, Refusal> {
    refuse_idempotency_key(&exchange, "a token is shown once and its name is never used again: choose a name")?;
    let Exchange { service, body, .. } = exchange;
    let bytes = body::read(body, service.limits.body_bytes, service.limits.body_timeout).await?;
    let (name, roles) = parse_create(strict_json::parse(&bytes)?)?;
    let created = service.backend.create_token(&name, roles).await?;
    let Token { name, roles, created_at, .. } = token(created.view);
    let token = created.token.expose().to_owned();
    Ok(json(StatusCode::CREATED, &CreatedToken { name, roles, created_at, token }))
}

pub(super) async fn revoke<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let name = exchange.parameters.token_name.as_deref().unwrap_or_default();
    validate_name(name)?;
    Ok(json(StatusCode::OK, &token(exchange.service.backend.revoke_token(name).await?)))
}

fn parse_create(value: Value) -> Result<(String, Roles), Refusal> {
    let wrong = || Refusal::new(RefusalCode::WrongType, "`roles` must be a list of strings");
    let mut fields = Fields::of(value)?;
    let name = fields.required_string("name")?;
    let roles = fields.required("roles")?;
    fields.finish()?;
    let roles = roles.as_array().ok_or_else(wrong)?;
    let roles: Vec<&str> = roles.iter().map(|role| role.as_str().ok_or_else(wrong)).collect::<Result<_, _>>()?;
    validate_name(&name)?;
    Ok((name, roles_of(roles)?))
}

fn token(view: TokenView) -> Token {
    Token {
        name: view.name,
        roles: view.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        created_at: view.created_at,
        revoked_at: view.revoked_at,
    }
}
