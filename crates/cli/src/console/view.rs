//! The screen: a pure function of what the console knows.

mod header;
pub(super) mod layout;
mod panes;
mod question;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Clear, Paragraph};

use super::keys::{self, BINDINGS};
use super::model::{Pane, Shown, Size, State};
use super::text;

/// Draws everything; says what stands on the screen now.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State) -> Shown {
    let area = frame.area();
    if !state.size.is_enough() || area.width < Size::LEAST.columns || area.height < Size::LEAST.rows {
        too_small(frame, area);
        return Shown::default();
    }
    let areas = layout::areas(state, area);
    if state.help {
        // Over everything but the help line.
        draw_help(frame, Rect { height: area.height - 1, ..area }, state);
        header::help_line(frame, areas.help, state);
        return Shown::default();
    }
    header::draw(frame, areas.header, state);
    let mut shown = Shown::default();
    if let Some(area) = areas.sessions {
        panes::sessions(frame, area, state);
    }
    if let Some(area) = areas.events {
        panes::events(frame, area, state);
    }
    if let Some(area) = areas.hint {
        panes::hint(frame, area, state);
    }
    if let Some(area) = areas.batch {
        shown.batch = panes::batch(frame, area, state);
    }
    header::notice(frame, areas.notice, state);
    panes::prompt(frame, areas.prompt, state);
    header::help_line(frame, areas.help, state);
    if let Some(asked) = &state.question {
        question::draw(frame, area, state, asked);
        // What stands under a question is not read.
        shown.batch = None;
    }
    shown
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let words = [
        format!("gatepost console needs {} columns and {} rows,", Size::LEAST.columns, Size::LEAST.rows),
        format!("and this terminal has {} and {}.", area.width, area.height),
        "Make it larger, or leave with Ctrl-C.".to_owned(),
        "`gatepost events ID --follow` and `gatepost approve ID` need no screen.".to_owned(),
    ];
    let rows: Vec<Line<'_>> =
        words.iter().flat_map(|line| text::rows(line, usize::from(area.width))).map(Line::raw).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(rows), area);
}

fn draw_help(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let block = boxed("Keys (? hides them)", true, state);
    let columns = usize::from(area.width.saturating_sub(2));
    let mut rows = Vec::new();
    for binding in &BINDINGS {
        let line = format!("{:<17} {:<9} {}", text::row(binding.name, 17), binding.place(), binding.words);
        rows.push(Line::raw(text::row(&line, columns)));
    }
    frame.render_widget(Paragraph::new(rows).block(block), area);
}

/// A border with a title; a thick one around the pane that takes the keys.
fn boxed<'a>(title: &str, listens: bool, state: &State) -> Block<'a> {
    let kind = if listens { BorderType::Thick } else { BorderType::Plain };
    let style = if listens { accent(state) } else { Style::default() };
    Block::bordered().border_type(kind).border_style(style).title(format!(" {title} "))
}

fn accent(state: &State) -> Style {
    colored(state, Color::Cyan).add_modifier(Modifier::BOLD)
}

fn alarm(state: &State) -> Style {
    colored(state, Color::Yellow).add_modifier(Modifier::BOLD)
}

/// Colour where it is wanted. What a colour says stands in words too.
fn colored(state: &State, color: Color) -> Style {
    if state.color { Style::default().fg(color) } else { Style::default() }
}

/// Whether the batch could be decided on by a key now: approved, rejected.
fn decides(state: &State) -> (bool, bool) {
    let batch = state.batch().filter(|_| state.listening() == Pane::Batch);
    (batch.is_some_and(|batch| batch.refuses_accept().is_none()), batch.is_some_and(|batch| !batch.decided))
}

fn help_of(state: &State) -> String {
    keys::help_line(state.listening(), decides(state))
}
