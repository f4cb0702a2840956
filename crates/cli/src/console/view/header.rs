//! The lines at the edges: where things stand, what came of the last thing asked for, and the keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::{alarm, help_of};
use crate::console::model::{Link, State};
use crate::console::text;
use crate::sanitize;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let mut line = format!("gatepost console │ daemon {}", link(&state.daemon));
    if let Some(open) = &state.open {
        let id: String = open.session_id.chars().take(8).collect();
        match &open.snapshot {
            Some(snapshot) => {
                let status = sanitize::line(&snapshot.status);
                let since = if matches!(open.looked, Link::Lost(_)) { ", not read since" } else { "" };
                line.push_str(&format!(" │ session {} {status}{since}", sanitize::line(&id)));
                if let Some(level) = snapshot.values.get("confinement_level").and_then(|level| level.as_str()) {
                    line.push_str(&format!(" │ confinement {}", sanitize::line(level)));
                }
                if let Some(reason) = &snapshot.blocked_reason {
                    line.push_str(&format!(" │ BLOCKED {}", sanitize::line(&reason.code)));
                }
            }
            None => {
                let read = match open.looked {
                    Link::Connecting | Link::Live => "is being read …",
                    Link::Lost(_) => "CANNOT BE READ",
                };
                line.push_str(&format!(" │ session {} {read}", sanitize::line(&id)));
            }
        }
    }
    let lost = matches!(state.daemon, Link::Lost(_));
    let style = if lost { alarm(state) } else { Style::default().add_modifier(Modifier::BOLD) };
    one_line(frame, area, &line, style);
}

/// A link in a few words.
pub(super) fn link(link: &Link) -> String {
    match link {
        Link::Connecting => "connecting …".to_owned(),
        Link::Live => "live".to_owned(),
        Link::Lost(_) => "LOST, trying again".to_owned(),
    }
}

pub(super) fn notice(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let blocked =
        state.open.as_ref().and_then(|open| open.snapshot.as_ref()).and_then(|now| now.blocked_reason.as_ref());
    let (words, grave) = match (&state.daemon, &state.notice, blocked) {
        (Link::Lost(why), _, _) => (format!("daemon: {why}"), true),
        (Link::Connecting | Link::Live, Some(notice), _) => (notice.words.clone(), notice.grave),
        (Link::Connecting | Link::Live, None, Some(reason)) => (format!("blocked: {}", reason.detail), true),
        (Link::Connecting | Link::Live, None, None) => (String::new(), false),
    };
    let mark = if grave { "! " } else { "" };
    let style = if grave { alarm(state) } else { Style::default() };
    one_line(frame, area, &format!("{mark}{}", sanitize::line(&words)), style);
}

pub(super) fn help_line(frame: &mut Frame<'_>, area: Rect, state: &State) {
    one_line(frame, area, &help_of(state), Style::default().add_modifier(Modifier::DIM));
}

fn one_line(frame: &mut Frame<'_>, area: Rect, line: &str, style: Style) {
    let line = text::row(line, usize::from(area.width));
    frame.render_widget(Paragraph::new(Line::styled(line, style)), area);
}
