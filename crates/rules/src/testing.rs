//! Small logs for the tests of this crate.

use serde_json::json;

use crate::log::{ActionRecord, ExemptKind, LogEvent, LogEventKind};

pub(crate) struct Log {
    events: Vec<LogEvent>,
}

impl Log {
    /// A log without branches: each event hangs off the one before it, state updates aside.
    pub(crate) fn line(events: &[(&str, LogEventKind)]) -> Self {
        let mut log = Self { events: Vec::new() };
        let mut parent: Option<String> = None;
        for (id, kind) in events {
            log.push(id, parent.as_deref(), kind.clone());
            if log.events.last().is_some_and(|event| !event.is_state_update()) {
                parent = Some((*id).to_owned());
            }
        }
        log
    }

    pub(crate) fn push(&mut self, id: &str, parent: Option<&str>, kind: LogEventKind) {
        self.events.push(LogEvent { event_id: id.to_owned(), parent_id: parent.map(str::to_owned), kind });
    }

    pub(crate) fn events(&self) -> &[LogEvent] {
        &self.events
    }
}

pub(crate) fn user(text: &str) -> LogEventKind {
    LogEventKind::UserMessage { text: text.to_owned() }
}

pub(crate) fn action(call: &str) -> LogEventKind {
    LogEventKind::Action(record(call))
}

pub(crate) fn record(call: &str) -> ActionRecord {
    ActionRecord {
        tool: "terminal".to_owned(),
        tool_call_id: call.to_owned(),
        action: Some(json!({"kind": "TerminalAction", "command": format!("echo {call}")})),
        exempt_kind: None,
        claimed_risk: Some("LOW".to_owned()),
        claimed_summary: Some("list files".to_owned()),
    }
}

pub(crate) fn command(call: &str, command: &str) -> LogEventKind {
    let action = Some(json!({"kind": "TerminalAction", "command": command}));
    LogEventKind::Action(ActionRecord { action, ..record(call) })
}

pub(crate) fn exempt(call: &str, kind: ExemptKind) -> LogEventKind {
    LogEventKind::Action(ActionRecord { exempt_kind: Some(kind), ..record(call) })
}

pub(crate) fn malformed(call: &str) -> LogEventKind {
    LogEventKind::Action(ActionRecord { action: None, ..record(call) })
}

pub(crate) fn observation(action_id: &str) -> LogEventKind {
    LogEventKind::Observation { action_id: action_id.to_owned() }
}

pub(crate) fn reject(action_id: &str) -> LogEventKind {
    LogEventKind::UserReject { action_id: action_id.to_owned() }
}

pub(crate) fn error(call: &str) -> LogEventKind {
    LogEventKind::AgentError { tool_call_id: call.to_owned() }
}
