//! The redacted events, page by page.

use std::time::Duration;

use api_types::{EventPage, ExitCode};
use http::Method;
use serde_json::{Value, json};

use super::app::{App, READ_TIMEOUT, typed};
use super::resolve;
use crate::args::EventsArgs;
use crate::failure::Failure;
use crate::output::with_ok;
use crate::render;
use crate::transport::{Call, Effect, encoded};

const PAGE_EVENTS: usize = 500;
/// How long the daemon holds a poll open; it takes up to 60 s.
const POLL: Duration = Duration::from_secs(30);

pub(super) async fn events(app: &App<'_>, args: &EventsArgs) -> Result<ExitCode, Failure> {
    let session_id = resolve::session(app, &args.session).await?;
    let mut after = args.after.clone();
    let hold = if args.follow { POLL } else { Duration::ZERO };
    while app.is_heard() {
        let page = page(app, &session_id, after.as_deref(), hold).await?;
        print(app, &page);
        // Without --follow it ends at the first page that brings nothing: one with fewer events than were asked for may have been
        // cut by its size.
        let ended = !args.follow && (page.typed.events.is_empty() || after.as_ref() == Some(&page.typed.next_cursor));
        after = Some(page.typed.next_cursor);
        if ended {
            if app.json() {
                app.print_json(&with_ok(&json!({"next_cursor": after})));
            }
            break;
        }
    }
    Ok(ExitCode::Done)
}

/// A page: as sent, and typed.
pub(super) struct Page {
    sent: Vec<Value>,
    pub(super) typed: EventPage,
}

impl Page {
    /// Leaves out its events: whoever reads on does so from this cursor.
    pub(super) fn pass_over(&mut self, next_cursor: String) {
        self.sent.clear();
        self.typed.events.clear();
        self.typed.next_cursor = next_cursor;
    }
}

/// Reads one page, silently, waiting up to `hold` for the first event.
pub(super) async fn page(
    app: &App<'_>,
    session_id: &str,
    after: Option<&str>,
    hold: Duration,
) -> Result<Page, Failure> {
    let mut target = format!("/v1/sessions/{session_id}/events?limit={PAGE_EVENTS}&wait_ms={}", hold.as_millis());
    if let Some(cursor) = after {
        target.push_str(&format!("&after={}", encoded(cursor)));
    }
    let call = Call { method: Method::GET, target, body: None, effect: Effect::Read, within: hold + READ_TIMEOUT };
    let mut body = app.send_quietly(call).await?;
    let typed = typed(&body, "a page of events")?;
    let sent = match body.get_mut("events").map(Value::take) {
        Some(Value::Array(events)) => events,
        _ => return Err(Failure::malformed("a page of events")),
    };
    Ok(Page { sent, typed })
}

/// Prints a page: each event as the API has it, or for people.
pub(super) fn print(app: &App<'_>, page: &Page) {
    if let Some(resync) = &page.typed.resync {
        if app.json() {
            app.print_json(&json!({"resync": resync}));
        } else {
            app.print(&render::event::resync(resync, &app.style));
        }
    }
    for (sent, event) in page.sent.iter().zip(&page.typed.events) {
        if app.json() {
            app.print_json(sent);
        } else {
            app.print(&render::event::event(event, &app.style));
        }
    }
}
