//! What the console needs before it takes the terminal over.

use api_types::{ExitCode, SessionList};

use super::app::{App, typed};
use super::resolve;
use crate::args::ConsoleArgs;
use crate::console;
use crate::failure::Failure;

pub(super) async fn console(app: &App<'_>, args: &ConsoleArgs) -> Result<ExitCode, Failure> {
    let next = "`gatepost events ID --follow` and `gatepost approvals ID` need no screen, and take --json";
    if app.json() {
        return Err(Failure::usage("the console is for a person: it has no --json").hint(next));
    }
    if !app.can_ask() {
        return Err(Failure::usage("the console needs a terminal, as standard input and as standard output").hint(next));
    }
    let terminal = std::env::var_os("TERM").unwrap_or_default();
    if terminal.is_empty() || terminal == "dumb" {
        let detail =
            "the console needs a terminal that can draw on its whole screen, and TERM says that this one cannot";
        return Err(Failure::usage(detail).hint(next));
    }
    // Asked before the terminal is taken over: a daemon that does not run is told of as everywhere.
    let list: SessionList = typed(&app.get("/v1/sessions".to_owned()).await?, "a session list")?;
    let session_id = match &args.session {
        Some(prefix) => Some(resolve::session(app, prefix).await?),
        None => None,
    };
    console::run(app.context, list, session_id).await
}
