//! The question that stands over everything.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph};
use unicode_width::UnicodeWidthStr;

use super::boxed;
use crate::console::model::{Question, State, Subject};
use crate::console::text;
use crate::render;
use crate::sanitize;

const COLUMNS: u16 = 66;
const ROWS: u16 = 9;
/// Digits by which a batch is named to a person.
const DIGITS: usize = 12;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, question: &Question) {
    let x = area.x + (area.width.saturating_sub(COLUMNS)) / 2;
    let y = area.y + (area.height.saturating_sub(ROWS)) / 2;
    let place = Rect::new(x, y, COLUMNS.min(area.width), ROWS.min(area.height));
    let columns = usize::from(place.width.saturating_sub(2));
    let (title, asked) = words(question);
    let mut rows: Vec<String> = asked.iter().flat_map(|line| text::rows(line, columns)).collect();
    rows.push(String::new());
    let typed = sanitize::line(&question.typed).into_owned();
    // The end of a long answer.
    let room = columns.saturating_sub(3);
    let mut shown: String = typed.clone();
    while shown.width() > room && !shown.is_empty() {
        shown.remove(0);
    }
    let (row, column) = (rows.len(), 2 + shown.width());
    rows.push(format!("> {shown}"));
    let lines: Vec<Line<'_>> = rows.into_iter().map(Line::raw).collect();
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(boxed(title, true, state)), place);
    let at = |start: u16, offset: usize| start + 1 + u16::try_from(offset).unwrap_or(0);
    frame.set_cursor_position(Position::new(at(place.x, column), at(place.y, row)));
}

fn words(question: &Question) -> (&'static str, Vec<String>) {
    let batch = |approval_id: &str, actions: usize| {
        let digits: String = approval_id.chars().take(DIGITS).collect();
        format!("{}, digest {}…", render::approval::count(actions), sanitize::line(&digits))
    };
    let send = |word: &str, rest: &str| format!("Type `{word}`{rest} and Enter. Esc withdraws; nothing is sent.");
    match &question.subject {
        Subject::Approve { approval_id, actions } => (
            "Approve?",
            vec![
                batch(approval_id, *actions),
                "They run as they were shown, in this order.".to_owned(),
                send("approve", ""),
            ],
        ),
        Subject::Reject { approval_id, actions } => (
            "Reject?",
            vec![
                batch(approval_id, *actions),
                "None of them runs; the agent is told, with your reason.".to_owned(),
                send("reject", ", or `reject` and a reason,"),
            ],
        ),
        Subject::Interrupt => (
            "Interrupt?",
            vec!["The running turn is stopped; queued prompts are cancelled.".to_owned(), send("interrupt", "")],
        ),
        Subject::Resume => (
            "Go on?",
            vec!["The agent goes on; what it wants to run is asked for as ever.".to_owned(), send("resume", "")],
        ),
    }
}
