//! Starting, taking up, listing, showing and closing sessions.

use std::path::Path;

use api_types::{AttachSessionRequest, Closed, CreateSessionRequest, ExitCode, SessionList, SessionSnapshot};
use http::Method;
use serde::Serialize;
use serde_json::Value;

use super::app::{App, READ_TIMEOUT, typed};
use super::resolve;
use crate::args::{AttachArgs, CloseArgs, IdPrefix, StartArgs};
use crate::failure::Failure;
use crate::render;
use crate::transport::Effect;

pub(super) async fn start(app: &App<'_>, args: &StartArgs) -> Result<ExitCode, Failure> {
    // Chosen here, so that a start whose reply was lost can be repeated and is the same session.
    let session_id = args.session_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let request = CreateSessionRequest {
        workspace: absolute(&args.workspace)?,
        title: args.title.clone(),
        prompt: args.prompt.clone(),
        session_id: Some(session_id.clone()),
    };
    let result = post(app, "/v1/sessions", &request).await;
    let body = result.map_err(|failure| {
        let failure = failure.field("session_id", session_id.as_str());
        if failure.exit == ExitCode::Unknown {
            failure.hint(format!(
                "it may stand: `gatepost session show {session_id}`, or start it again with --session-id {session_id}"
            ))
        } else {
            failure
        }
    })?;
    shown(app, &body)
}

pub(super) async fn attach(app: &App<'_>, args: &AttachArgs) -> Result<ExitCode, Failure> {
    let request =
        AttachSessionRequest { workspace: absolute(&args.workspace)?, conversation_id: args.conversation_id.clone() };
    let body = post(app, "/v1/sessions/attach", &request).await?;
    shown(app, &body)
}

async fn post(app: &App<'_>, target: &str, request: &impl Serialize) -> Result<Value, Failure> {
    let body = serde_json::to_value(request).map_err(|error| {
        Failure::new(ExitCode::Failed, "internal", format!("the request cannot be written: {error}"))
    })?;
    app.start(target, &body).await
}

fn shown(app: &App<'_>, body: &Value) -> Result<ExitCode, Failure> {
    let snapshot: SessionSnapshot = typed(body, "a session")?;
    app.reply(body, || render::session::snapshot(&snapshot, &app.style));
    Ok(ExitCode::Done)
}

/// The daemon has another current directory, so it is told absolute paths; resolving them is its own task.
fn absolute(path: &Path) -> Result<String, Failure> {
    let absolute = std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    match absolute.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Failure::usage(format!("{} is not UTF-8", path.display()))),
    }
}

pub(super) async fn list(app: &App<'_>) -> Result<ExitCode, Failure> {
    let body = app.get("/v1/sessions".to_owned()).await?;
    let list: SessionList = typed(&body, "a session list")?;
    app.reply(&body, || render::session::list(&list.sessions, &app.style));
    Ok(ExitCode::Done)
}

pub(super) async fn show(app: &App<'_>, session: &IdPrefix) -> Result<ExitCode, Failure> {
    let session_id = resolve::session(app, session).await?;
    let (body, snapshot) = resolve::snapshot(app, &session_id).await?;
    app.reply(&body, || render::session::snapshot(&snapshot, &app.style));
    Ok(ExitCode::Done)
}

pub(super) async fn close(app: &App<'_>, args: &CloseArgs) -> Result<ExitCode, Failure> {
    let session_id = resolve::session(app, &args.session).await?;
    let query = if args.delete { "?delete=true" } else { "" };
    // Stopping waits for a grace period on the daemon's side.
    let within = READ_TIMEOUT * 4;
    let body =
        app.call(Method::DELETE, format!("/v1/sessions/{session_id}{query}"), None, Effect::Change, within).await?;
    let closed: Closed = typed(&body, "a closed session")?;
    app.reply(&body, || render::session::closed(&closed));
    Ok(ExitCode::Done)
}
