//! The bodies' shapes on the wire.

use api_types::{
    ActionRequest, AttachSessionRequest, CreateSessionRequest, EventKind, Problem, Receipt, ReceiptState, Resync,
};
use serde_json::{Value, json};

#[test]
fn requests_refuse_unknown_fields() {
    assert!(serde_json::from_value::<CreateSessionRequest>(json!({"workspace": "/w", "shell": "x"})).is_err());
    let attach = json!({"workspace": "/w", "conversation_id": "c", "x": 1});
    assert!(serde_json::from_value::<AttachSessionRequest>(attach).is_err());
    let action = json!({"operation_id": "session.fork", "input": {}, "route": "/api"});
    assert!(serde_json::from_value::<ActionRequest>(action).is_err());
}

#[test]
fn requests_leave_out_what_is_not_given() {
    let request = CreateSessionRequest { workspace: "/w".into(), title: None, prompt: None, session_id: None };
    assert_eq!(serde_json::to_value(request).unwrap(), json!({"workspace": "/w"}));
}

#[test]
fn a_problem_names_its_generation_only_when_known() {
    let text = r#"{"type":"about:blank","title":"Conflict","status":409,"code":"generation_stale","detail":"d","retryable":false}"#;
    let mut problem: Problem = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&problem).unwrap(), text);
    problem.capability_generation = Some(7);
    assert_eq!(serde_json::to_value(&problem).unwrap()["capability_generation"], 7);
}

#[test]
fn event_kinds_are_spelled_as_documented() {
    for kind in [
        EventKind::UserMessage,
        EventKind::AgentMessage,
        EventKind::ToolCall,
        EventKind::ToolResult,
        EventKind::ApprovalRequested,
        EventKind::ApprovalResolved,
        EventKind::Status,
        EventKind::Usage,
        EventKind::Lifecycle,
        EventKind::Other,
    ] {
        assert_eq!(serde_json::to_value(kind).unwrap(), Value::String(kind.as_str().into()));
    }
}

#[test]
fn receipt_states_are_the_five_words() {
    let words: Vec<Value> = [
        ReceiptState::Queued,
        ReceiptState::InFlight,
        ReceiptState::Applied,
        ReceiptState::Rejected,
        ReceiptState::OutcomeUnknown,
    ]
    .iter()
    .map(|state| serde_json::to_value(state).unwrap())
    .collect();
    assert_eq!(Value::Array(words), json!(["queued", "in_flight", "applied", "rejected", "outcome_unknown"]));
}

#[test]
fn a_client_ignores_reply_fields_it_does_not_know() {
    let resync: Resync = serde_json::from_value(json!({"reason": "epoch", "first_cursor": "c", "more": 1})).unwrap();
    assert_eq!(resync.first_cursor, "c");
    let receipt = json!({"client_action_id": "a", "operation_id": "session.fork", "state": "applied", "steps": [],
        "result": null, "created_at": "t", "updated_at": "t", "replayed": true, "new_in_a_later_version": {}});
    assert!(serde_json::from_value::<Receipt>(receipt).unwrap().replayed);
}
