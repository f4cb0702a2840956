//! Tokens of clients.

use api_types::Token;

use super::style::Style;
use super::table::table;

/// The tokens, a line each.
pub(crate) fn list(tokens: &[Token], style: &Style) -> String {
    if tokens.is_empty() {
        return format!("{}\n", style.dim("no tokens but the owner's"));
    }
    let state = |token: &Token| token.revoked_at.as_ref().map_or("good".to_owned(), |at| format!("revoked {at}"));
    let row = |token: &Token| vec![token.name.clone(), token.roles.join(","), token.created_at.clone(), state(token)];
    table(&["NAME", "ROLES", "MADE", "STATE"], &tokens.iter().map(row).collect::<Vec<_>>())
}
