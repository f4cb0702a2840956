//! Tokens of clients.

use host::Secret;
use rules::role::Roles;

/// A client's token, without what it is.
#[derive(Debug, Clone)]
pub struct TokenView {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub roles: Roles,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339; `None` while it is good.
    pub revoked_at: Option<String>,
}

/// A token that was just made.
#[derive(Debug)]
pub struct CreatedToken {
    /// What is kept of it.
    pub view: TokenView,
    /// The token itself.
    pub token: Secret,
}
