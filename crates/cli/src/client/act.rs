//! The operations that need no conversation of their own, and the one way every operation is sent.

use api_types::{ExitCode, SessionSnapshot};
use serde_json::{Map, Value, json};

use super::app::App;
use super::resolve;
use super::wait::{self, Action};
use crate::args::{FollowArgs, ForkArgs, ModelArgs, RewindArgs, TitleArgs};
use crate::failure::Failure;
use crate::sanitize;

pub(super) async fn interrupt(app: &App<'_>, args: &FollowArgs) -> Result<ExitCode, Failure> {
    // Available whatever the state: no snapshot is read, no generation is sent.
    let session_id = resolve::session(app, &args.session).await?;
    let action = Action::new(&session_id, "session.turn.interrupt", json!({}), None, args);
    wait::carry_out(app, &action).await
}

pub(super) async fn resume(app: &App<'_>, args: &FollowArgs) -> Result<ExitCode, Failure> {
    on_snapshot(app, args, "session.resume", |_| Ok(json!({}))).await
}

pub(super) async fn compact(app: &App<'_>, args: &FollowArgs) -> Result<ExitCode, Failure> {
    on_snapshot(app, args, "session.compact", |_| Ok(json!({}))).await
}

pub(super) async fn fork(app: &App<'_>, args: &ForkArgs) -> Result<ExitCode, Failure> {
    let mut input = Map::new();
    if let Some(title) = &args.title {
        input.insert("title".to_owned(), title.as_str().into());
    }
    if let Some(session_id) = &args.session_id {
        input.insert("session_id".to_owned(), session_id.as_str().into());
    }
    on_snapshot(app, &args.follow, "session.fork", |_| Ok(Value::Object(input))).await
}

pub(super) async fn rewind(app: &App<'_>, args: &RewindArgs) -> Result<ExitCode, Failure> {
    let input =
        |snapshot: &SessionSnapshot| match snapshot.choices.rewind.iter().find(|choice| choice.turn == args.turn) {
            Some(choice) => Ok(json!({"event_id": choice.event_id})),
            None => Err(no_such_turn(args.turn, snapshot)),
        };
    on_snapshot(app, &args.follow, "session.rewind", input).await
}

fn no_such_turn(turn: u32, snapshot: &SessionSnapshot) -> Failure {
    let choices = &snapshot.choices.rewind;
    let turns: Vec<u32> = choices.iter().map(|choice| choice.turn).collect();
    let listed: String =
        choices.iter().map(|choice| format!("\n  {}  {}", choice.turn, sanitize::line(&choice.text))).collect();
    let offered = if listed.is_empty() { " none is offered now".to_owned() } else { format!(" offered are:{listed}") };
    Failure::new(ExitCode::Usage, "no_such_turn", format!("turn {turn} is not offered;{offered}"))
        .field("turns", json!(turns))
}

pub(super) async fn model(app: &App<'_>, args: &ModelArgs) -> Result<ExitCode, Failure> {
    on_snapshot(app, &args.follow, "session.model.set", |_| Ok(json!({"model": args.model}))).await
}

pub(super) async fn title(app: &App<'_>, args: &TitleArgs) -> Result<ExitCode, Failure> {
    on_snapshot(app, &args.follow, "session.title.set", |_| Ok(json!({"title": args.title}))).await
}

/// Sends an operation decided on a fresh snapshot, with that snapshot's generation. A stale one is refused and not tried again:
/// what it was decided on has changed.
async fn on_snapshot(
    app: &App<'_>,
    args: &FollowArgs,
    operation: &'static str,
    input: impl FnOnce(&SessionSnapshot) -> Result<Value, Failure>,
) -> Result<ExitCode, Failure> {
    let session_id = resolve::session(app, &args.session).await?;
    let (_, snapshot) = resolve::snapshot(app, &session_id).await?;
    let input = input(&snapshot)?;
    let action = Action::new(&session_id, operation, input, Some(snapshot.capability_generation), args);
    wait::carry_out(app, &action).await
}
