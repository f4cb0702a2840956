//! Lifting the tripwire's block: what was observed is named first, by its digest.

use api_types::{BlockChoice, ExitCode};
use serde_json::json;

use super::app::App;
use super::resolve;
use super::wait::{self, Action};
use crate::args::AcknowledgeArgs;
use crate::failure::Failure;
use crate::render;

pub(super) async fn acknowledge(app: &App<'_>, args: &AcknowledgeArgs) -> Result<ExitCode, Failure> {
    if args.block.is_none() && !app.can_ask() {
        let detail =
            "acknowledge needs the block's digest: only at a terminal, and without --json, can it be asked about";
        return Err(Failure::new(ExitCode::Usage, "block_needed", detail)
            .hint("`gatepost session show ID`, then `gatepost acknowledge ID BLOCK` with at least 12 digits"));
    }
    let session_id = resolve::session(app, &args.follow.session).await?;
    let (_, snapshot) = resolve::snapshot(app, &session_id).await?;
    let Some(block) = snapshot.choices.acknowledge.first() else {
        let detail = "no action that nobody accepted blocks the session";
        return Err(Failure::new(ExitCode::of_refusal("not_advertised", 409), "not_advertised", detail));
    };
    match &args.block {
        Some(digits) if !block.block_id.starts_with(digits.digits()) => return Err(another(block)),
        Some(_) => {}
        None => {
            app.print(&render::session::block(block, &app.style));
            if !app.ask("Have you looked at what ran, and may the session go on? [y/N] ") {
                return Err(Failure::new(ExitCode::Failed, "declined", "nothing was sent; the session stays blocked"));
            }
        }
    }
    let input = json!({"block_id": block.block_id});
    let action = Action::new(&session_id, "session.block.acknowledge", input, None, &args.follow);
    wait::carry_out(app, &action).await
}

fn another(block: &BlockChoice) -> Failure {
    let detail = format!("the session is blocked by {}: look at it again, then acknowledge that one", block.block_id);
    Failure::new(ExitCode::of_refusal("approval_superseded", 409), "approval_superseded", detail)
}
