//! Making, listing and revoking tokens of clients.

use api_types::{CreateTokenRequest, CreatedToken, ExitCode, Token, TokenList};
use http::Method;
use serde_json::json;

use super::app::{App, READ_TIMEOUT, typed};
use crate::args::TokenArgs;
use crate::failure::Failure;
use crate::render;
use crate::transport::Effect;

pub(super) async fn create(app: &App<'_>, args: &TokenArgs) -> Result<ExitCode, Failure> {
    let roles = args.roles.iter().map(|role| role.as_str().to_owned()).collect();
    let request = CreateTokenRequest { name: args.name.clone(), roles };
    let body = json!(request);
    let result = app.call(Method::POST, "/v1/tokens".to_owned(), Some(&body), Effect::Change, READ_TIMEOUT).await;
    let body = result.map_err(|failure| {
        if failure.exit == ExitCode::Unknown {
            failure.hint(format!("it may stand: `gatepost token revoke --name {}`, then use another name", args.name))
        } else {
            failure
        }
    })?;
    let created: CreatedToken = typed(&body, "a token")?;
    // The token alone, so that it can go into a file.
    app.reply(&body, || format!("{}\n", crate::sanitize::line(&created.token)));
    if !app.json() {
        app.note(
            "It is shown this once. Keep it in a file that only its user can read; clients name it with --token-file.",
        );
    }
    Ok(ExitCode::Done)
}

pub(super) async fn list(app: &App<'_>) -> Result<ExitCode, Failure> {
    let body = app.get("/v1/tokens".to_owned()).await?;
    let list: TokenList = typed(&body, "a list of tokens")?;
    app.reply(&body, || render::token::list(&list.tokens, &app.style));
    Ok(ExitCode::Done)
}

pub(super) async fn revoke(app: &App<'_>, name: &str) -> Result<ExitCode, Failure> {
    let body = app.call(Method::DELETE, format!("/v1/tokens/{name}"), None, Effect::Change, READ_TIMEOUT).await?;
    let revoked: Token = typed(&body, "a token")?;
    app.reply(&body, || format!("revoked {}\n", crate::sanitize::line(&revoked.name)));
    Ok(ExitCode::Done)
}
