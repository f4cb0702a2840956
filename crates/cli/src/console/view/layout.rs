//! Where everything stands.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::console::model::{Pane, State};
use crate::console::text;
use crate::render;
use crate::render::style::Style;

/// From this width on the pending batch stands beside the events.
const WIDE_COLUMNS: u16 = 150;
const SESSION_COLUMNS: u16 = 24;
const WIDE_BATCH_COLUMNS: u16 = 84;
const PROMPT_ROWS: u16 = 3;
const HINT_ROWS: u16 = 3;
/// Rows and columns of a border, both sides.
const BORDER: u16 = 2;

/// Where everything stands; what has no place now is `None`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Areas {
    pub(super) header: Rect,
    pub(super) sessions: Option<Rect>,
    pub(super) events: Option<Rect>,
    pub(super) batch: Option<Rect>,
    /// One line that a batch waits, where there is no place for it.
    pub(super) hint: Option<Rect>,
    pub(super) notice: Rect,
    pub(super) prompt: Rect,
    pub(super) help: Rect,
}

pub(super) fn areas(state: &State, area: Rect) -> Areas {
    let [header, main, notice, prompt, help] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
        Constraint::Length(PROMPT_ROWS),
        Constraint::Length(1),
    ])
    .areas(area);
    let none = Areas { header, sessions: None, events: None, batch: None, hint: None, notice, prompt, help };
    let waits = state.batch().is_some();
    if area.width >= WIDE_COLUMNS {
        let [sessions, events, batch] = Layout::horizontal([
            Constraint::Length(SESSION_COLUMNS),
            Constraint::Min(0),
            Constraint::Length(WIDE_BATCH_COLUMNS),
        ])
        .areas(main);
        return Areas { sessions: Some(sessions), events: Some(events), batch: Some(batch), ..none };
    }
    if waits && state.pane == Pane::Batch {
        return Areas { batch: Some(main), ..none };
    }
    let [panes, hint] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(if waits { HINT_ROWS } else { 0 })]).areas(main);
    let [sessions, events] = Layout::horizontal([Constraint::Length(SESSION_COLUMNS), Constraint::Min(0)]).areas(panes);
    Areas { sessions: Some(sessions), events: Some(events), hint: waits.then_some(hint), ..none }
}

fn all(state: &State) -> Areas {
    areas(state, Rect::new(0, 0, state.size.columns, state.size.rows))
}

/// Columns of the events' text.
pub(in crate::console) fn events_columns(state: &State) -> usize {
    let wide = state.size.columns >= WIDE_COLUMNS;
    let others = SESSION_COLUMNS + if wide { WIDE_BATCH_COLUMNS } else { 0 };
    usize::from(state.size.columns.saturating_sub(others + BORDER))
}

/// Rows of text in a pane.
pub(in crate::console) fn inner_rows(state: &State, pane: Pane) -> usize {
    let areas = all(state);
    let area = match pane {
        Pane::Sessions => areas.sessions,
        Pane::Events => areas.events,
        Pane::Batch => areas.batch,
        Pane::Prompt | Pane::Question => None,
    };
    usize::from(area.map_or(1, |area| area.height.saturating_sub(BORDER))).max(1)
}

/// The pending batch as rows of its pane.
pub(super) fn batch_text(state: &State, area: Rect) -> Vec<String> {
    let columns = usize::from(area.width.saturating_sub(BORDER));
    let Some(batch) = state.batch() else { return Vec::new() };
    let mut rows = text::rows(&render::approval::approval(&batch.approval, &Style::plain(columns)), columns);
    let end = if batch.in_full { "end of the batch" } else { "end of what this token may read of the batch" };
    rows.push(String::new());
    rows.push(format!("── {end} ──"));
    rows
}

/// How many rows the pending batch has where it is shown.
pub(in crate::console) fn batch_rows(state: &State) -> usize {
    all(state).batch.map_or(0, |area| batch_text(state, area).len())
}
