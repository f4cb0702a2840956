//! The panes: sessions, events, the pending batch and the prompt.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr;

use super::{alarm, boxed, header, layout};
use crate::console::model::{BatchRows, Link, Pane, State};
use crate::console::text;
use crate::render;
use crate::sanitize;

/// Characters of the prompt that are looked at around the cursor: more than any screen shows.
const PROMPT_WINDOW_CHARS: usize = 1_000;

fn inner(area: Rect) -> (usize, usize) {
    (usize::from(area.width.saturating_sub(2)), usize::from(area.height.saturating_sub(2)))
}

pub(super) fn sessions(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let listens = state.listening() == Pane::Sessions;
    let (columns, height) = inner(area);
    let open = state.open.as_ref().map(|open| open.session_id.as_str());
    // Two rows each, and the marked one is always on the screen.
    let fitting = (height / 2).max(1);
    let first = (state.marked + 1).saturating_sub(fitting);
    let mut rows = Vec::new();
    for (at, session) in state.sessions.iter().enumerate().skip(first).take(fitting) {
        let mark = if at == state.marked { '>' } else { ' ' };
        let is_open = if open == Some(session.session_id.as_str()) { '*' } else { ' ' };
        let id: String = session.session_id.chars().take(8).collect();
        let title = session.title.as_deref().unwrap_or("(no title)");
        let first = format!("{mark}{is_open}{} {}", sanitize::line(&id), sanitize::line(title));
        let second = match (&session.blocked_reason, session.pending_actions) {
            (Some(reason), _) => format!("   BLOCKED {}", sanitize::line(&reason.code)),
            (None, 0) => format!("   {}", sanitize::line(&session.status)),
            (None, waiting) => format!("   {} to decide", render::approval::count(waiting)),
        };
        let style = if at == state.marked && listens {
            Style::default().add_modifier(Modifier::REVERSED)
        } else {
            Style::default()
        };
        rows.push(Line::styled(text::row(&first, columns), style));
        rows.push(Line::styled(text::row(&second, columns), style));
    }
    if state.sessions.is_empty() {
        let words = "none; in another terminal: `gatepost session start --workspace DIR`";
        rows.extend(text::rows(words, columns).into_iter().map(Line::raw));
    }
    let title = format!("Sessions {}", state.sessions.len());
    frame.render_widget(Paragraph::new(rows).block(boxed(&title, listens, state)), area);
}

pub(super) fn events(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let listens = state.listening() == Pane::Events;
    let (columns, height) = inner(area);
    let (title, rows) = match &state.open {
        None => ("Events".to_owned(), text::rows("Up and Down mark a session, Enter opens it.", columns)),
        Some(open) => {
            let (rows, scroll) = open.events.rows(columns, height);
            let place = if scroll == 0 { String::new() } else { format!(", {scroll} rows below") };
            let why = match &open.following {
                Link::Lost(why) => format!(": {}", sanitize::line(why)),
                Link::Connecting | Link::Live => String::new(),
            };
            let title = format!("Events {} ({}{place}){why}", open.events.len(), header::link(&open.following));
            (text::row(&title, columns.saturating_sub(2)), rows)
        }
    };
    let lines: Vec<Line<'_>> = rows.into_iter().map(Line::raw).collect();
    frame.render_widget(Paragraph::new(lines).block(boxed(&title, listens, state)), area);
}

/// That a batch waits, where it is not shown itself.
pub(super) fn hint(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let Some(batch) = state.batch() else { return };
    let (columns, _) = inner(area);
    let tools: Vec<&str> = batch.approval.actions.iter().map(|action| action.tool.as_str()).collect();
    let words = format!("{} (Tab shows it whole): {}", waiting(state), sanitize::line(&tools.join(", ")));
    let row = Line::styled(text::row(&words, columns), alarm(state));
    frame.render_widget(Paragraph::new(row).block(boxed("Pending", false, state)), area);
}

fn waiting(state: &State) -> String {
    match state.batch() {
        Some(batch) if batch.decided => "decided, not done yet".to_owned(),
        Some(batch) => {
            let count = batch.approval.actions.len();
            let verb = if count == 1 { "waits" } else { "wait" };
            format!("{} {verb} for your decision", render::approval::count(count))
        }
        None => "nothing waits for a decision".to_owned(),
    }
}

pub(super) fn batch(frame: &mut Frame<'_>, area: Rect, state: &State) -> Option<BatchRows> {
    let listens = state.listening() == Pane::Batch;
    let (columns, height) = inner(area);
    let Some(batch) = state.batch() else {
        let row = Line::raw(text::row(&waiting(state), columns));
        frame.render_widget(Paragraph::new(row).block(boxed("Pending", false, state)), area);
        return None;
    };
    let rows = layout::batch_text(state, area);
    let total = rows.len();
    let first = batch.scroll.min(total.saturating_sub(height));
    let end = (first + height).min(total);
    let read = if batch.is_read { "read" } else { "not read to the end" };
    let title = format!("{}: rows {}-{end} of {total}, {read}", waiting(state), first + 1);
    let lines: Vec<Line<'_>> = rows.into_iter().skip(first).take(height).map(Line::raw).collect();
    let title = text::row(&title, columns.saturating_sub(2));
    frame.render_widget(Paragraph::new(lines).block(boxed(&title, listens, state)), area);
    Some(BatchRows { first, end, total })
}

pub(super) fn prompt(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let listens = state.listening() == Pane::Prompt;
    let (columns, _) = inner(area);
    let (before, after) = state.prompt.around();
    // The end of what stands before the cursor, and the beginning of what stands after it.
    let mut shown = String::new();
    let room = columns.saturating_sub(1);
    for c in before.chars().rev().take(PROMPT_WINDOW_CHARS) {
        let piece = visible(c);
        if shown.width() + piece.width() > room {
            break;
        }
        shown.insert_str(0, &piece);
    }
    let column = shown.width();
    for c in after.chars().take(PROMPT_WINDOW_CHARS) {
        let piece = visible(c);
        if shown.width() + piece.width() > columns {
            break;
        }
        shown.push_str(&piece);
    }
    let lines = state.prompt.text().lines().count();
    let title = match state.prompt.text().len() {
        0 => "Prompt".to_owned(),
        bytes if lines > 1 => format!("Prompt: {lines} lines, {bytes} bytes"),
        bytes => format!("Prompt: {bytes} bytes"),
    };
    frame.render_widget(Paragraph::new(Line::raw(shown)).block(boxed(&title, listens, state)), area);
    if listens {
        let x = area.x + 1 + u16::try_from(column).unwrap_or(0).min(area.width.saturating_sub(3));
        frame.set_cursor_position(Position::new(x, area.y + 1));
    }
}

/// A character of the prompt on one line.
fn visible(c: char) -> String {
    text::drawable(&sanitize::line(&c.to_string()))
}
