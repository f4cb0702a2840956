//! The session's event log as the server keeps it: append order, each event once.

use std::collections::HashMap;

use agent_contract::WireEvent;
use rules::log::LogEvent;
use serde::{Deserialize, Serialize};

/// Most events of one session that are kept in memory; a longer log is refused, not cut.
pub(crate) const MAX_EVENTS: usize = 200_000;

/// Why the log cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MirrorError {
    /// More events than may be held.
    #[error("the session's log holds more than {MAX_EVENTS} events")]
    TooLong,
}

/// The log, and the time of each of its events as the server gave it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(from = "Written")]
pub(crate) struct Mirror {
    events: Vec<LogEvent>,
    times: Vec<String>,
    #[serde(skip)]
    index: HashMap<String, usize>,
}

/// [`Mirror`] as it is written down.
#[derive(Deserialize)]
struct Written {
    events: Vec<LogEvent>,
    times: Vec<String>,
}

impl From<Written> for Mirror {
    fn from(Written { events, times }: Written) -> Self {
        let index = events.iter().enumerate().map(|(at, event)| (event.event_id.clone(), at)).collect();
        Self { events, times, index }
    }
}

impl Mirror {
    /// Every event, in append order.
    pub(crate) fn events(&self) -> &[LogEvent] {
        &self.events
    }

    /// The event to go on reading from.
    pub(crate) fn last_event_id(&self) -> Option<&str> {
        self.events.last().map(|event| event.event_id.as_str())
    }

    /// Where an event stands in append order.
    pub(crate) fn position(&self, event_id: &str) -> Option<usize> {
        self.index.get(event_id).copied()
    }

    /// The server's time of an event.
    pub(crate) fn time_of(&self, event_id: &str) -> Option<&str> {
        self.position(event_id).and_then(|position| self.times.get(position)).map(String::as_str)
    }

    /// Whether so many further events may be held.
    pub(crate) fn has_room(&self, events: usize) -> Result<(), MirrorError> {
        if self.events.len().saturating_add(events) > MAX_EVENTS { Err(MirrorError::TooLong) } else { Ok(()) }
    }

    /// Appends what a read brought. Returns the events that are new, in order.
    pub(crate) fn merge(&mut self, events: Vec<WireEvent>) -> Result<Vec<WireEvent>, MirrorError> {
        let mut added = Vec::new();
        for event in events {
            if self.index.contains_key(&event.log.event_id) {
                continue;
            }
            if self.events.len() >= MAX_EVENTS {
                return Err(MirrorError::TooLong);
            }
            self.index.insert(event.log.event_id.clone(), self.events.len());
            self.times.push(event.at.clone());
            self.events.push(event.log.clone());
            added.push(event);
        }
        Ok(added)
    }
}

#[cfg(test)]
mod tests {
    use rules::log::LogEventKind;

    use super::*;

    fn event(id: &str) -> WireEvent {
        WireEvent {
            raw: serde_json::json!({"id": id}),
            log: LogEvent { event_id: id.to_owned(), parent_id: None, kind: LogEventKind::Other },
            at: format!("at-{id}"),
        }
    }

    fn ids(events: &[WireEvent]) -> Vec<&str> {
        events.iter().map(|event| event.log.event_id.as_str()).collect()
    }

    #[test]
    fn what_is_written_down_is_read_back_as_it_was() {
        let mut mirror = Mirror::default();
        mirror.merge(vec![event("a"), event("b")]).unwrap();
        let mut read: Mirror = serde_json::from_slice(&serde_json::to_vec(&mirror).unwrap()).unwrap();
        assert_eq!(read.events(), mirror.events());
        assert_eq!((read.position("b"), read.time_of("b")), (Some(1), Some("at-b")));
        assert_eq!(ids(&read.merge(vec![event("b"), event("c")]).unwrap()), ["c"]);
    }

    #[test]
    fn a_read_that_overlaps_adds_only_what_is_new() {
        let mut mirror = Mirror::default();
        mirror.merge(vec![event("a"), event("b")]).unwrap();
        let added = mirror.merge(vec![event("b"), event("c")]).unwrap();
        assert_eq!(ids(&added), ["c"]);
        assert_eq!(mirror.last_event_id(), Some("c"));
        assert_eq!(mirror.time_of("b"), Some("at-b"));
        assert_eq!(mirror.position("c"), Some(2));
    }
}
