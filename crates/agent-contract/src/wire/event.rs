//! Events of the log.

use rules::log::{ActionRecord, ExecutionStatus, ExemptKind, LogEvent, LogEventKind};
use serde_json::Value;

use super::Fields;
use crate::ids::is_event_id;
use crate::{ContractError, RouteName};

/// One event, as it came and as the decisions read it.
#[derive(Debug, Clone, PartialEq)]
pub struct WireEvent {
    /// The event exactly as the server gave it.
    pub raw: Value,
    /// What the decisions need of it.
    pub log: LogEvent,
    /// The server's time stamp: naive local time, not monotone, for showing only.
    pub at: String,
}

/// One page of the log, in append order.
#[derive(Debug, Clone, PartialEq)]
pub struct EventsPage {
    /// The events after the one asked from.
    pub events: Vec<WireEvent>,
    /// The event to ask from for more, when there is more.
    pub next: Option<String>,
}

impl WireEvent {
    /// Reads one event of the log or of the stream.
    ///
    /// # Errors
    /// [`ContractError::Malformed`] when it has no usable id or time, or is of a kind that decides what may run and
    /// lacks a field. Kinds that decide nothing are `Other`.
    pub fn parse(raw: Value) -> Result<Self, ContractError> {
        let event = Fields::of(RouteName::EventsPage, "event", &raw)?;
        let event_id = event.text("id")?;
        if !is_event_id(event_id) {
            return Err(event.fault("id", "an event id"));
        }
        let parent_id = event.optional_text("parent_id")?;
        let at = event.full_text("timestamp")?.to_owned();
        let log =
            LogEvent { event_id: event_id.to_owned(), parent_id: parent_id.map(str::to_owned), kind: kind(event)? };
        Ok(Self { raw, log, at })
    }

    /// The server's name of the event's kind.
    pub fn kind_name(&self) -> &str {
        self.raw.get("kind").and_then(Value::as_str).unwrap_or_default()
    }
}

fn kind(event: Fields<'_>) -> Result<LogEventKind, ContractError> {
    Ok(match event.full_text("kind")? {
        "ActionEvent" => LogEventKind::Action(action(event)?),
        "ObservationEvent" => LogEventKind::Observation { action_id: event.full_text("action_id")?.to_owned() },
        "UserRejectObservation" => LogEventKind::UserReject { action_id: event.full_text("action_id")?.to_owned() },
        "AgentErrorEvent" => LogEventKind::AgentError { tool_call_id: event.text("tool_call_id")?.to_owned() },
        "MessageEvent" => message(event)?,
        "ConversationStateUpdateEvent" if event.text("key")? == "execution_status" => {
            LogEventKind::Status(ExecutionStatus::parse(event.text("value")?))
        }
        "ConversationStateUpdateEvent" => LogEventKind::StateUpdate,
        _ => LogEventKind::Other,
    })
}

fn action(event: Fields<'_>) -> Result<ActionRecord, ContractError> {
    let tool = event.text("tool_name")?;
    let action = event.optional_object("action", "action")?;
    let exempt_kind = match action {
        None => None,
        Some(fields) => match (tool, fields.full_text("kind")?) {
            ("finish", "FinishAction") => Some(ExemptKind::Finish),
            ("think", "ThinkAction") => Some(ExemptKind::Think),
            _ => None,
        },
    };
    Ok(ActionRecord {
        tool: tool.to_owned(),
        tool_call_id: event.text("tool_call_id")?.to_owned(),
        action: event.optional("action").cloned(),
        exempt_kind,
        claimed_risk: event.optional_text("security_risk")?.map(str::to_owned),
        claimed_summary: event.optional_text("summary")?.map(str::to_owned),
    })
}

fn message(event: Fields<'_>) -> Result<LogEventKind, ContractError> {
    let content = event.object("llm_message", "llm_message")?.array("content")?;
    let texts: Vec<&str> = content.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
    let text = texts.join("\n");
    Ok(match event.text("source")? {
        "user" => LogEventKind::UserMessage { text },
        "agent" => LogEventKind::AgentMessage { text },
        _ => LogEventKind::Other,
    })
}

/// Whether a frame exists on the stream only and is never appended to the log: pieces of a reply being written, whole
/// states, and the server's complaints about the connection.
pub fn is_transient(frame: &Value) -> bool {
    match frame.get("kind").and_then(Value::as_str) {
        Some("StreamingDeltaEvent" | "ServerErrorEvent") => true,
        Some("ConversationStateUpdateEvent") => frame.get("key").and_then(Value::as_str) == Some("full_state"),
        Some(_) | None => false,
    }
}

impl EventsPage {
    /// Reads a page asked from `after`. The server answers an id it does not know from the log's beginning, so the
    /// first event must be that one.
    pub(crate) fn parse(after: Option<&str>, reply: &Value) -> Result<Self, ContractError> {
        let route = RouteName::EventsPage;
        let page = Fields::of(route, "page", reply)?;
        let items = page.array("items")?.iter().cloned();
        let mut events = items.map(WireEvent::parse).collect::<Result<Vec<_>, _>>()?;
        let more = page.optional_text("next_page_id")?.is_some();
        let last = events.last().map(|event| event.log.event_id.clone());
        if let Some(after) = after {
            if events.first().is_none_or(|first| first.log.event_id != after) {
                return Err(ContractError::malformed(route, "it does not begin with the event asked from"));
            }
            events.remove(0);
        }
        if more && events.is_empty() {
            return Err(ContractError::malformed(route, "it promises more events and gives none"));
        }
        Ok(Self { events, next: if more { last } else { None } })
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
