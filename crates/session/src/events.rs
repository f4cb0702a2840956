//! What readers see of the server's events: a small, stable, redacted shape for each kind.

use rules::redact::Redactor;
use serde_json::{Value, json};

/// Longest serialised payload of a kind we do not know, in bytes; a longer one is left out and marked.
const MAX_OTHER_PAYLOAD_BYTES: usize = 64 * 1024;

/// The kinds of gatepost's own events; those of the server have none of these.
pub(crate) const OWN_KINDS: [&str; 3] = ["lifecycle", "approval_requested", "approval_resolved"];

/// One event before it has a place in the journal.
#[derive(Debug, Clone)]
pub(crate) struct NewEvent {
    pub(crate) event_id: String,
    pub(crate) at: String,
    pub(crate) kind: &'static str,
    pub(crate) payload: Value,
}

impl NewEvent {
    /// As the journal takes it.
    pub(crate) fn into_record(self) -> store::NewEvent {
        store::NewEvent {
            event_id: self.event_id,
            at: self.at,
            kind: self.kind.to_owned(),
            payload_json: self.payload.to_string(),
            is_late: false,
        }
    }
}

/// Turns a raw server event into the redacted event that readers get.
pub(crate) fn describe(event_id: &str, at: &str, raw: &Value, redactor: &Redactor) -> NewEvent {
    let (kind, payload) = shape(raw);
    let (mut payload, redacted) = redactor.redact_value(&payload);
    if redacted && let Some(object) = payload.as_object_mut() {
        object.insert("redacted".to_owned(), Value::Bool(true));
    }
    NewEvent { event_id: event_id.to_owned(), at: at.to_owned(), kind, payload }
}

/// Whether an event holds usage figures.
pub(crate) fn is_usage(raw: &Value) -> bool {
    text_of(raw, "kind") == "ConversationStateUpdateEvent" && text_of(raw, "key") == "stats"
}

fn shape(raw: &Value) -> (&'static str, Value) {
    match text_of(raw, "kind") {
        "MessageEvent" if text_of(raw, "source") == "user" => ("user_message", json!({"text": message_text(raw)})),
        "MessageEvent" if text_of(raw, "source") == "agent" => ("agent_message", json!({"text": message_text(raw)})),
        "ActionEvent" => (
            "tool_call",
            json!({
                "tool": raw.get("tool_name"),
                "arguments": arguments(raw),
                "executable": !raw.get("action").unwrap_or(&Value::Null).is_null(),
                "agent_risk": raw.get("security_risk"),
                "agent_summary": raw.get("summary"),
            }),
        ),
        "ObservationEvent" => {
            let observation = raw.get("observation").unwrap_or(&Value::Null);
            (
                "tool_result",
                json!({
                    "outcome": "observed",
                    "tool": raw.get("tool_name"),
                    "action_event_id": raw.get("action_id"),
                    "text": content_text(observation.get("content")),
                    "exit_code": observation.get("exit_code"),
                    "is_error": observation.get("is_error"),
                }),
            )
        }
        "UserRejectObservation" => (
            "tool_result",
            json!({
                "outcome": "rejected",
                "tool": raw.get("tool_name"),
                "action_event_id": raw.get("action_id"),
                "text": raw.get("rejection_reason"),
                "exit_code": null,
                "is_error": false,
            }),
        ),
        "AgentErrorEvent" => (
            "tool_result",
            json!({
                "outcome": "error",
                "tool": raw.get("tool_name"),
                "tool_call_id": raw.get("tool_call_id"),
                "text": raw.get("error"),
                "exit_code": null,
                "is_error": true,
            }),
        ),
        "ConversationStateUpdateEvent" => match text_of(raw, "key") {
            "execution_status" => ("status", json!({"status": raw.get("value")})),
            "stats" => ("usage", json!({"usage": raw.get("value")})),
            key => ("other", json!({"source_kind": "ConversationStateUpdateEvent", "key": key})),
        },
        kind => ("other", other(kind, raw)),
    }
}

fn other(kind: &str, raw: &Value) -> Value {
    let too_long = raw.to_string().len() > MAX_OTHER_PAYLOAD_BYTES;
    let content = if too_long { Value::Null } else { raw.clone() };
    json!({"source_kind": kind, "content": content, "truncated": too_long})
}

/// What would run: the parsed action, or the model's own text when it could not be parsed.
fn arguments(raw: &Value) -> Value {
    match raw.get("action") {
        Some(action) if !action.is_null() => action.clone(),
        _ => raw.pointer("/tool_call/arguments").cloned().unwrap_or(Value::Null),
    }
}

fn message_text(raw: &Value) -> String {
    content_text(raw.pointer("/llm_message/content"))
}

fn content_text(content: Option<&Value>) -> String {
    let parts = content.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("")
}

fn text_of<'a>(raw: &'a Value, key: &str) -> &'a str {
    raw.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(raw: Value) -> NewEvent {
        let redactor = Redactor::new(vec![("model_key".to_owned(), "sk-very-secret-value".to_owned())]);
        describe("e1", "2026-01-01T00:00:00", &raw, &redactor)
    }

    #[test]
    fn a_text_reply_is_an_agent_message() {
        let event = described(json!({"kind": "MessageEvent", "source": "agent",
            "llm_message": {"content": [{"type": "text", "text": "hello "}, {"type": "text", "text": "you"}]}}));
        assert_eq!((event.kind, &event.payload["text"]), ("agent_message", &json!("hello you")));
    }

    #[test]
    fn a_tool_call_shows_what_would_run_not_what_the_model_said_of_it() {
        let event = described(json!({"kind": "ActionEvent", "tool_name": "terminal", "summary": "list files",
            "action": {"command": "rm -rf /"}, "tool_call": {"arguments": "{\"command\":\"ls\"}"}}));
        assert_eq!(event.payload["arguments"]["command"], "rm -rf /");
        assert_eq!(event.payload["agent_summary"], "list files");
    }

    #[test]
    fn a_known_secret_in_a_result_is_marked() {
        let event = described(json!({"kind": "ObservationEvent", "tool_name": "terminal", "action_id": "a",
            "observation": {"content": [{"text": "key is sk-very-secret-value"}], "exit_code": 0}}));
        assert_eq!(event.kind, "tool_result");
        assert!(!event.payload.to_string().contains("sk-very-secret-value"));
        assert_eq!(event.payload["redacted"], true);
    }

    #[test]
    fn an_unknown_kind_is_kept_as_other() {
        let event = described(json!({"kind": "NewThing", "detail": 3}));
        assert_eq!((event.kind, &event.payload["content"]["detail"]), ("other", &json!(3)));
    }
}
