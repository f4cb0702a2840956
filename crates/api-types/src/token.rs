//! Tokens of clients.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Asks for a new token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTokenRequest {
    /// Its name, which no other token had or will have, and not `owner`.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    pub name: String,
    /// What it may do: any of `observer`, `operator` and `approver`, at least one.
    #[schema(min_items = 1, pattern = "^(observer|operator|approver)$")]
    pub roles: Vec<String>,
}

/// A token, without what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// What it may do: any of `observer`, `operator` and `approver`.
    pub roles: Vec<String>,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339; null while it is good.
    pub revoked_at: Option<String>,
}

/// Every token, oldest first, revoked ones too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// The tokens.
    pub tokens: Vec<Token>,
}

/// A token that was just made. What it is, is said here and never again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub roles: Vec<String>,
    /// RFC 3339.
    pub created_at: String,
    /// The token itself: the bearer of requests.
    pub token: String,
}
