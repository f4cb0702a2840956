//! The server's append-only log, small enough to be compared, and its translation into what `rules` reads.

use std::collections::BTreeSet;

use rules::log::{ActionRecord, ExecutionStatus, ExemptKind, LogEvent, LogEventKind};
use serde_json::json;

/// Id of an event of the branch: numbered in the order of appending, from [`FORK_BASE`] on in the fork.
pub(crate) type EventId = u8;
/// The first id that the fork itself appends; below it stands what was copied.
pub(crate) const FORK_BASE: EventId = 64;
/// Most events that either conversation appends by itself.
pub(crate) const MAX_OWN_EVENTS: u8 = 60;
/// The call id that the model uses again and again.
pub(crate) const REUSED_CALL: u8 = 200;

/// A set of event ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ids(pub(crate) u128);

impl Ids {
    pub(crate) fn of(ids: &[EventId]) -> Self {
        Self(ids.iter().fold(0, |set, id| set | 1 << id))
    }
    pub(crate) fn has(self, id: EventId) -> bool {
        self.0 >> id & 1 == 1
    }
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
    pub(crate) fn len(self) -> u8 {
        self.0.count_ones() as u8
    }
    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    pub(crate) fn holds(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
    pub(crate) fn each(self) -> impl Iterator<Item = EventId> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let id = left.trailing_zeros() as EventId;
            left &= left.wrapping_sub(1);
            (id < 128).then_some(id)
        })
    }
    pub(crate) fn names(self) -> BTreeSet<String> {
        self.each().map(name).collect()
    }
}

/// What a proposed action would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Acts on the world.
    Command,
    Finish,
    Think,
    /// Bad arguments: cannot execute.
    Malformed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    User,
    Agent,
    Action {
        call: u8,
        what: What,
    },
    Observation(EventId),
    Reject(EventId),
    Error(u8),
    Status(ExecutionStatus),
    /// System prompt, interrupt, pause, condensation.
    Note,
}

/// One line of the log. A status hangs beside the branch and has no id that anything names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: EventId,
    pub(crate) parent: Option<EventId>,
    pub(crate) kind: Kind,
}

/// Id of every status; `rules` sees them numbered by their place.
pub(crate) const STATUS_ID: EventId = u8::MAX;

impl Entry {
    pub(crate) fn is_status(&self) -> bool {
        matches!(self.kind, Kind::Status(_))
    }

    /// Appends what tells this entry from others.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        let (tag, value) = match self.kind {
            Kind::User => (0, 0),
            Kind::Agent => (1, 0),
            Kind::Action { call, what } => (2 + what as u8, call),
            Kind::Observation(id) => (6, id),
            Kind::Reject(id) => (7, id),
            Kind::Error(call) => (8, call),
            Kind::Status(status) => (9, status as u8),
            Kind::Note => (10, 0),
        };
        into.extend_from_slice(&[tag, value, self.id, self.parent.unwrap_or(u8::MAX)]);
    }
}

/// The server's word for an event id.
pub(crate) fn name(id: EventId) -> String {
    format!("e{id}")
}

/// The id of that word.
pub(crate) fn id_of(name: &str) -> Option<EventId> {
    name.strip_prefix('e').and_then(|digits| digits.parse().ok())
}

/// The log as `rules` sees it.
pub(crate) fn for_rules(entries: &[Entry]) -> Vec<LogEvent> {
    entries
        .iter()
        .enumerate()
        .map(|(place, entry)| LogEvent {
            event_id: if entry.is_status() { format!("s{place}") } else { name(entry.id) },
            parent_id: entry.parent.map(name),
            kind: kind_for_rules(entry),
        })
        .collect()
}

fn kind_for_rules(entry: &Entry) -> LogEventKind {
    match entry.kind {
        Kind::User => LogEventKind::UserMessage { text: String::new() },
        Kind::Agent => LogEventKind::AgentMessage { text: String::new() },
        Kind::Action { call, what } => LogEventKind::Action(record(entry.id, call, what)),
        Kind::Observation(id) => LogEventKind::Observation { action_id: name(id) },
        Kind::Reject(id) => LogEventKind::UserReject { action_id: name(id) },
        Kind::Error(call) => LogEventKind::AgentError { tool_call_id: format!("c{call}") },
        Kind::Status(status) => LogEventKind::Status(status),
        Kind::Note => LogEventKind::Other,
    }
}

fn record(id: EventId, call: u8, what: What) -> ActionRecord {
    let (tool, exempt_kind) = match what {
        What::Command | What::Malformed => ("terminal", None),
        What::Finish => ("finish", Some(ExemptKind::Finish)),
        What::Think => ("think", Some(ExemptKind::Think)),
    };
    ActionRecord {
        tool: tool.to_owned(),
        tool_call_id: format!("c{call}"),
        action: (what != What::Malformed).then(|| json!({"command": id})),
        exempt_kind,
        claimed_risk: None,
        claimed_summary: None,
    }
}
