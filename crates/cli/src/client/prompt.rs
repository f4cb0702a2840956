//! Sends a prompt; with `--wait`, follows the events until the turn it began has ended.

use std::time::{Duration, Instant};

use api_types::{Event, EventKind, ExitCode, ReceiptState, SessionSnapshot};
use serde_json::{Value, json};

use super::app::App;
use super::events;
use super::resolve;
use super::wait::{self, Action, Known};
use crate::args::{MAX_PROMPT_BYTES, PromptArgs};
use crate::failure::Failure;
use crate::output::with_ok;
use crate::render;

/// How long a turn is followed when nothing else was said.
const DEFAULT_WAIT: Duration = Duration::from_secs(600);
/// How long a poll is held while the receipt must be looked at too, and once it is final.
const SHORT_POLL: Duration = Duration::from_secs(1);
const LONG_POLL: Duration = Duration::from_secs(10);
/// Looks in a row that must find the session quiet before that ends a turn whose end the events do not tell.
const QUIET_LOOKS: u32 = 3;

pub(super) async fn prompt(app: &App<'_>, args: &PromptArgs) -> Result<ExitCode, Failure> {
    let text = if args.text == "-" { from_stdin(app)? } else { args.text.clone() };
    let session_id = resolve::session(app, &args.follow.session).await?;
    let (_, snapshot) = resolve::snapshot(app, &session_id).await?;
    let input = json!({"text": text, "on_pending": args.on_pending.as_str()});
    let mut action =
        Action::new(&session_id, "session.prompt.send", input, Some(snapshot.capability_generation), &args.follow);
    if !args.wait {
        return wait::carry_out(app, &action).await;
    }
    if args.follow.timeout_s.is_none() {
        action.deadline = Instant::now() + DEFAULT_WAIT;
    }
    let known = wait::send(app, &action).await?;
    follow_turn(app, &action, known, snapshot.cursor).await
}

fn from_stdin(app: &App<'_>) -> Result<String, Failure> {
    let content = app
        .read_stdin(MAX_PROMPT_BYTES)
        .map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?
        .ok_or_else(|| Failure::usage(format!("standard input holds more than {MAX_PROMPT_BYTES} bytes")))?;
    let text = String::from_utf8(content).map_err(|_| Failure::usage("standard input is not UTF-8 text"))?;
    if text.trim().is_empty() || text.contains('\0') {
        return Err(Failure::usage("standard input holds no prompt: it is empty or has a NUL byte"));
    }
    Ok(text)
}

/// What the events since the prompt say of its turn, and what was seen of the session while they said nothing.
#[derive(Debug, Default)]
struct Turn {
    prompted: bool,
    ran: bool,
    ended: Option<String>,
    quiet_looks: u32,
}

impl Turn {
    fn note(&mut self, event: &Event) {
        match event.kind {
            EventKind::UserMessage => *self = Self { prompted: true, ..Self::default() },
            EventKind::Status => match event.payload.get("status").and_then(Value::as_str) {
                Some("running") if self.prompted => *self = Self { prompted: true, ran: true, ..Self::default() },
                // A status that ends nothing by itself counts only after the turn was seen running.
                Some(status) if self.ran && ends_turn(status) => self.ended = Some(status.to_owned()),
                Some(_) | None => {}
            },
            EventKind::AgentMessage
            | EventKind::ToolCall
            | EventKind::ToolResult
            | EventKind::ApprovalRequested
            | EventKind::ApprovalResolved
            | EventKind::Usage
            | EventKind::Lifecycle
            | EventKind::Other => {}
        }
    }

    /// The events say nothing more: the daemon may have seen an end that they do not tell, as when the server ended in the
    /// middle of the turn. Its word that the last step began and ended counts, never a status alone, which may be of the
    /// turn before; and it counts only when it is the same again and again while nothing new stands in the events.
    fn note_look(&mut self, snapshot: &SessionSnapshot) {
        let quiet = snapshot.values.get("quiet").and_then(Value::as_bool) == Some(true);
        self.quiet_looks = if quiet && ends_turn(&snapshot.status) { self.quiet_looks + 1 } else { 0 };
        if self.quiet_looks >= QUIET_LOOKS {
            self.ended = Some(snapshot.status.clone());
        }
    }
}

fn ends_turn(status: &str) -> bool {
    matches!(status, "finished" | "waiting_for_confirmation" | "error" | "paused" | "stuck" | "idle")
}

async fn follow_turn(app: &App<'_>, action: &Action, mut known: Known, cursor: String) -> Result<ExitCode, Failure> {
    let mut after = cursor;
    let mut turn = Turn::default();
    while app.is_heard() {
        if let Some(failure) = final_failure(&known) {
            return Err(failure);
        }
        let left = action.remaining();
        if left.is_zero() {
            return Err(not_ended(action, &known));
        }
        // The turn is judged only on a page that was read after its prompt was known to stand in the log: until then, what ends
        // may be the turn before it.
        let settled = known.receipt.state == ReceiptState::Applied;
        let hold = if settled && turn.quiet_looks == 0 { LONG_POLL } else { SHORT_POLL };
        let mut page = events::page(app, &action.session_id, Some(&after), hold.min(left)).await?;
        if page.typed.resync.is_some() {
            // The page shows old turns again: none of them may be taken for this one. What was seen so far counts no more, and
            // the looks decide, unless a turn begins from here on.
            page.pass_over(resolve::snapshot(app, &action.session_id).await?.1.cursor);
            turn = Turn::default();
        }
        events::print(app, &page);
        page.typed.events.iter().for_each(|event| turn.note(event));
        if settled {
            if turn.ended.is_none() && page.typed.events.is_empty() && page.typed.resync.is_none() {
                turn.note_look(&unblocked(app, action, &known).await?);
            } else {
                turn.quiet_looks = 0;
            }
            if let Some(status) = &turn.ended {
                return Ok(conclude(app, &known, status));
            }
        } else {
            known = wait::look_up(app, action).await?;
            if known.receipt.state == ReceiptState::Queued {
                // It had not been delivered yet when the page was read.
                turn = Turn::default();
            }
        }
        after = page.typed.next_cursor;
    }
    Ok(ExitCode::Done)
}

fn final_failure(known: &Known) -> Option<Failure> {
    if known.receipt.state.is_final() { wait::failure_of(known) } else { None }
}

/// The turn is still going on.
fn not_ended(action: &Action, known: &Known) -> Failure {
    if known.receipt.state.is_final() {
        Failure::new(ExitCode::Unknown, "timed_out", "the wait is over and the turn has not ended; it goes on")
            .body(&known.body)
            .hint(format!("`gatepost events {} --follow` goes on watching", action.session_id))
    } else {
        wait::over(action, known)
    }
}

/// When nothing comes any more, the session may have been blocked: then nothing will.
async fn unblocked(app: &App<'_>, action: &Action, known: &Known) -> Result<SessionSnapshot, Failure> {
    let (_, snapshot) = resolve::snapshot(app, &action.session_id).await?;
    match snapshot.blocked_reason {
        Some(reason) => Err(Failure::new(ExitCode::Blocked, &reason.code, reason.detail).body(&known.body)),
        None => Ok(snapshot),
    }
}

fn conclude(app: &App<'_>, known: &Known, status: &str) -> ExitCode {
    let exit = match status {
        "error" | "stuck" => ExitCode::Failed,
        _ => ExitCode::Done,
    };
    if app.json() {
        let mut body = known.body.clone();
        if let Value::Object(fields) = &mut body {
            fields.insert("turn_status".to_owned(), status.into());
        }
        let object = if exit == ExitCode::Done {
            with_ok(&body)
        } else {
            Failure::new(exit, "turn_failed", format!("the turn ended with status {status}")).body(&body).object()
        };
        app.print_json(&object);
    } else {
        app.print(&render::receipt::turn(&known.receipt, status, &app.style));
    }
    exit
}
