use serde_json::json;

use super::*;

/// Events as a real server gave them, long texts shortened.
fn samples() -> Vec<(&'static str, Value)> {
    let tool = |kind: &str| {
        json!({"id": "b7a2-1", "timestamp": "2026-11-30T02:14:05.1", "source": "environment",
        "parent_id": "b7a2-0", "tool_name": "terminal", "tool_call_id": "call_1", "kind": kind})
    };
    let with = |mut event: Value, more: Value| {
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    vec![
        (
            "action",
            with(
                tool("ActionEvent"),
                json!({"thought": [], "security_risk": "LOW", "summary": "list files",
            "llm_response_id": "c1", "action": {"command": "echo hi", "is_input": false, "kind": "TerminalAction"},
            "tool_call": {"id": "call_1", "name": "terminal", "arguments": "{\"command\":\"echo hi\"}"}}),
            ),
        ),
        (
            "observation",
            with(
                tool("ObservationEvent"),
                json!({"action_id": "b7a2-0", "observation": {"is_error": false,
            "content": [{"type": "text", "text": "hi"}], "exit_code": 0, "kind": "TerminalObservation"}}),
            ),
        ),
        ("reject", with(tool("UserRejectObservation"), json!({"action_id": "b7a2-0", "rejection_reason": "no"}))),
        ("error", with(tool("AgentErrorEvent"), json!({"error": "bad arguments"}))),
        (
            "message",
            json!({"id": "b7a2-2", "timestamp": "t", "source": "user", "kind": "MessageEvent",
            "llm_message": {"role": "user", "content": [{"type": "text", "text": "RUN: ls"},
                {"type": "image", "image_urls": ["x"]}, {"type": "text", "text": "please"}]}}),
        ),
        (
            "status",
            json!({"id": "b7a2-3", "timestamp": "t", "source": "environment", "parent_id": "b7a2-2",
            "kind": "ConversationStateUpdateEvent", "key": "execution_status", "value": "running"}),
        ),
        (
            "state",
            json!({"id": "b7a2-4", "timestamp": "t", "source": "environment", "parent_id": "b7a2-2",
            "kind": "ConversationStateUpdateEvent", "key": "stats", "value": {}}),
        ),
        (
            "interrupt",
            json!({"id": "b7a2-5", "timestamp": "t", "source": "user", "parent_id": "b7a2-4",
            "kind": "InterruptEvent"}),
        ),
    ]
}

fn sample(name: &str) -> Value {
    samples().into_iter().find(|(sample, _)| *sample == name).unwrap().1
}

fn kind_of(raw: Value) -> LogEventKind {
    WireEvent::parse(raw).unwrap().log.kind
}

#[test]
fn each_kind_that_decides_something_is_read() {
    let event = WireEvent::parse(sample("action")).unwrap();
    assert_eq!((event.kind_name(), event.at.as_str()), ("ActionEvent", "2026-11-30T02:14:05.1"));
    assert_eq!(event.raw, sample("action"));
    assert_eq!(event.log.event_id, "b7a2-1");
    assert_eq!(event.log.parent_id.as_deref(), Some("b7a2-0"));
    assert_eq!(
        event.log.kind,
        LogEventKind::Action(ActionRecord {
            tool: "terminal".to_owned(),
            tool_call_id: "call_1".to_owned(),
            action: Some(json!({"command": "echo hi", "is_input": false, "kind": "TerminalAction"})),
            exempt_kind: None,
            claimed_risk: Some("LOW".to_owned()),
            claimed_summary: Some("list files".to_owned()),
        })
    );
    assert_eq!(kind_of(sample("observation")), LogEventKind::Observation { action_id: "b7a2-0".to_owned() });
    assert_eq!(kind_of(sample("reject")), LogEventKind::UserReject { action_id: "b7a2-0".to_owned() });
    assert_eq!(kind_of(sample("error")), LogEventKind::AgentError { tool_call_id: "call_1".to_owned() });
    assert_eq!(kind_of(sample("message")), LogEventKind::UserMessage { text: "RUN: ls\nplease".to_owned() });
    assert_eq!(kind_of(sample("status")), LogEventKind::Status(ExecutionStatus::Running));
    assert_eq!(kind_of(sample("state")), LogEventKind::StateUpdate);
    assert_eq!(kind_of(sample("interrupt")), LogEventKind::Other);
}

#[test]
fn a_kind_that_is_not_known_decides_nothing() {
    for kind in ["HookExecutionEvent", "ACPToolCallEvent", "actionevent", "ActionEvent ", "Anything"] {
        let raw = json!({"id": "a", "timestamp": "t", "kind": kind, "action_id": 7, "tool_call_id": []});
        assert_eq!(kind_of(raw), LogEventKind::Other, "{kind}");
    }
    for source in ["environment", "hook"] {
        let mut raw = sample("message");
        raw["source"] = json!(source);
        assert_eq!(kind_of(raw), LogEventKind::Other);
    }
    let mut raw = sample("message");
    raw["source"] = json!("agent");
    assert_eq!(kind_of(raw), LogEventKind::AgentMessage { text: "RUN: ls\nplease".to_owned() });
    let mut raw = sample("status");
    raw["value"] = json!("dreaming");
    assert_eq!(kind_of(raw), LogEventKind::Status(ExecutionStatus::Unknown));
}

#[test]
fn what_is_missing_or_of_another_form_is_never_guessed() {
    let needed = [
        ("action", vec!["id", "timestamp", "kind", "tool_name", "tool_call_id"]),
        ("observation", vec!["id", "timestamp", "kind", "action_id"]),
        ("reject", vec!["id", "timestamp", "kind", "action_id"]),
        ("error", vec!["id", "timestamp", "kind", "tool_call_id"]),
        ("message", vec!["id", "timestamp", "kind", "source", "llm_message"]),
        ("status", vec!["id", "timestamp", "kind", "key", "value"]),
        ("interrupt", vec!["id", "timestamp", "kind"]),
    ];
    for (name, fields) in needed {
        for field in fields {
            let mut raw = sample(name);
            raw.as_object_mut().unwrap().remove(field);
            assert!(WireEvent::parse(raw).is_err(), "{name} without {field}");
            for wrong in [json!(null), json!(7), json!(true), json!([]), json!([{}])] {
                let mut raw = sample(name);
                raw[field] = wrong.clone();
                assert!(WireEvent::parse(raw).is_err(), "{name} with {field} {wrong}");
            }
        }
    }
    for raw in [json!(null), json!([]), json!("x"), json!({})] {
        assert!(WireEvent::parse(raw).is_err());
    }
    for id in ["", "a/b", "a b", "__root__", "..", &"a".repeat(65)] {
        let mut raw = sample("interrupt");
        raw["id"] = json!(id);
        assert!(WireEvent::parse(raw).is_err(), "{id:?}");
    }
    let mut raw = sample("interrupt");
    raw["parent_id"] = json!(7);
    assert!(WireEvent::parse(raw).is_err());
}

#[test]
fn only_an_action_that_is_null_or_absent_cannot_execute() {
    for action in [None, Some(json!(null))] {
        let mut raw = sample("action");
        match action {
            None => drop(raw.as_object_mut().unwrap().remove("action")),
            Some(action) => raw["action"] = action,
        }
        let LogEventKind::Action(record) = kind_of(raw) else { panic!("not an action") };
        assert_eq!((record.action, record.exempt_kind), (None, None));
    }
    for action in [json!("ls"), json!([]), json!(false), json!(0), json!({}), json!({"kind": null}), json!({"kind": 1})]
    {
        let mut raw = sample("action");
        raw["action"] = action.clone();
        assert!(WireEvent::parse(raw).is_err(), "{action}");
    }
    let mut raw = sample("action");
    raw["action"] = json!({"kind": "SomethingNew", "x": 1});
    let LogEventKind::Action(record) = kind_of(raw) else { panic!("not an action") };
    assert_eq!(record.action, Some(json!({"kind": "SomethingNew", "x": 1})));
}

#[test]
fn finish_and_think_are_known_by_tool_and_kind_together() {
    let exempt = |tool: &str, kind: &str| {
        let mut raw = sample("action");
        raw["tool_name"] = json!(tool);
        raw["action"] = json!({"kind": kind, "message": "done"});
        let LogEventKind::Action(record) = kind_of(raw) else { panic!("not an action") };
        record.exempt_kind
    };
    assert_eq!(exempt("finish", "FinishAction"), Some(ExemptKind::Finish));
    assert_eq!(exempt("think", "ThinkAction"), Some(ExemptKind::Think));
    for (tool, kind) in [
        ("terminal", "FinishAction"),
        ("finish", "TerminalAction"),
        ("think", "FinishAction"),
        ("Finish", "FinishAction"),
        ("finish", "finishaction"),
        ("mcp_finish", "FinishAction"),
    ] {
        assert_eq!(exempt(tool, kind), None, "{tool} {kind}");
    }
}

#[test]
fn an_error_never_repeats_a_value() {
    let mut raw = sample("action");
    raw["action"] = json!("hush-hush");
    raw["summary"] = json!(["hush-hush"]);
    let error = WireEvent::parse(raw).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hush"));
}

#[test]
fn transient_frames_are_told_from_events() {
    for frame in [
        json!({"kind": "StreamingDeltaEvent", "content": "a"}),
        json!({"kind": "ServerErrorEvent", "code": "x"}),
        json!({"kind": "ConversationStateUpdateEvent", "key": "full_state", "value": {}}),
    ] {
        assert!(is_transient(&frame), "{frame}");
    }
    for (name, event) in samples() {
        assert!(!is_transient(&event), "{name}");
    }
    for frame in [json!({}), json!(null), json!({"kind": 1}), json!({"kind": "MessageEvent", "key": "full_state"})] {
        assert!(!is_transient(&frame), "{frame}");
    }
}

fn page(ids: &[&str], next: Option<&str>) -> Value {
    let items: Vec<Value> =
        ids.iter().map(|id| json!({"id": id, "timestamp": "t", "kind": "PauseEvent", "parent_id": "p"})).collect();
    json!({"items": items, "next_page_id": next})
}

fn read(after: Option<&str>, reply: &Value) -> Result<(Vec<String>, Option<String>), ContractError> {
    let page = EventsPage::parse(after, reply)?;
    Ok((page.events.into_iter().map(|event| event.log.event_id).collect(), page.next))
}

#[test]
fn pages_follow_one_another_without_gap_or_repetition() {
    assert_eq!(read(None, &page(&[], None)), Ok((vec![], None)));
    let first = read(None, &page(&["a", "b"], Some("c"))).unwrap();
    assert_eq!(first, (vec!["a".to_owned(), "b".to_owned()], Some("b".to_owned())));
    let second = read(first.1.as_deref(), &page(&["b", "c"], None)).unwrap();
    assert_eq!(second, (vec!["c".to_owned()], None));
    assert_eq!(read(Some("c"), &page(&["c"], None)), Ok((vec![], None)));
}

#[test]
fn a_page_from_somewhere_else_is_refused() {
    // An id the server does not know is answered from the beginning.
    assert!(read(Some("z"), &page(&["a", "b"], None)).is_err());
    assert!(read(Some("b"), &page(&["a", "b"], None)).is_err());
    assert!(read(Some("a"), &page(&[], None)).is_err());
    assert!(read(None, &page(&[], Some("a"))).is_err());
    assert!(read(Some("a"), &page(&["a"], Some("b"))).is_err());
    for reply in [json!([]), json!({}), json!({"items": {}}), json!({"items": [], "next_page_id": 7})] {
        assert!(read(None, &reply).is_err(), "{reply}");
    }
    let mut reply = page(&["a", "b"], None);
    reply["items"][1] = json!({"kind": "PauseEvent"});
    assert!(read(None, &reply).is_err());
}
