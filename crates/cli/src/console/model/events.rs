//! The newest events of a session, within bounds.

use std::collections::VecDeque;

use api_types::{Event, EventPage};
use serde_json::Value;

use crate::console::text;
use crate::render;
use crate::render::style::Style;

/// Most events that are kept.
const MAX_EVENTS: usize = 500;
/// Most bytes kept of one text of an event, and of all that is no text.
const MAX_TEXT_BYTES: usize = 8 * 1024;
const MAX_PAYLOAD_BYTES: usize = 32 * 1024;

/// The events, oldest first.
#[derive(Debug, Default)]
pub(in crate::console) struct EventLog {
    events: VecDeque<Event>,
    /// Earlier ones that are not kept.
    pub(in crate::console) dropped: u64,
    /// Why they start over, when they did.
    pub(in crate::console) resync: Option<String>,
    /// Rows between the newest one and the bottom of the screen.
    pub(in crate::console) scroll: usize,
}

impl EventLog {
    /// Takes a page that is shown in this many columns.
    pub(in crate::console) fn take(&mut self, page: EventPage, columns: usize) {
        if let Some(resync) = page.resync {
            *self = Self { resync: Some(resync.reason), ..Self::default() };
        }
        for mut event in page.events {
            bound(&mut event.payload);
            if self.scroll > 0 {
                // What is being read stays where it is.
                self.scroll += rows_of(&event, columns).len();
            }
            self.events.push_back(event);
        }
        while self.events.len() > MAX_EVENTS {
            self.events.pop_front();
            self.dropped += 1;
        }
    }

    pub(in crate::console) fn len(&self) -> usize {
        self.events.len()
    }

    /// The rows that fill the place from the bottom up, and the scroll as far as it is possible.
    pub(in crate::console) fn rows(&self, columns: usize, height: usize) -> (Vec<String>, usize) {
        let wanted = self.scroll.saturating_add(height);
        let mut found: VecDeque<String> = VecDeque::new();
        for event in self.events.iter().rev() {
            if found.len() >= wanted {
                break;
            }
            for row in rows_of(event, columns).into_iter().rev() {
                found.push_front(row);
            }
        }
        if found.len() < wanted {
            for line in self.heading().iter().rev().flat_map(|line| text::rows(line, columns).into_iter().rev()) {
                found.push_front(line);
            }
        }
        let scroll = self.scroll.min(found.len().saturating_sub(height));
        let end = found.len() - scroll;
        let first = end.saturating_sub(height);
        (found.range(first..end).cloned().collect(), scroll)
    }

    fn heading(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(reason) = &self.resync {
            lines.push(format!("resync ({}): the events start over", crate::sanitize::line(reason)));
        }
        if self.dropped > 0 {
            lines.push(format!("{} earlier events: `gatepost events ID`", self.dropped));
        }
        lines
    }
}

fn rows_of(event: &Event, columns: usize) -> Vec<String> {
    text::rows(&render::event::event(event, &Style::plain(columns)), columns)
}

/// Cuts what is too long for a line of a list: the whole stands in `gatepost events` and, where it is to be decided on, in the batch.
fn bound(payload: &mut Value) {
    cut_texts(payload);
    let serialised = payload.to_string();
    if serialised.len() > MAX_PAYLOAD_BYTES {
        *payload = Value::Object([("cut".to_owned(), Value::String(cut(&serialised)))].into_iter().collect());
    }
}

fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_TEXT_BYTES => *text = cut(text),
        Value::Array(values) => values.iter_mut().for_each(cut_texts),
        Value::Object(fields) => fields.values_mut().for_each(cut_texts),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn cut(text: &str) -> String {
    let end = (0..=MAX_TEXT_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n… {} bytes more: `gatepost events ID`", &text[..end], text.len() - end)
}
