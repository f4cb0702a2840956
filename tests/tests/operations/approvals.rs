//! `session.approval.decide`: what waits is shown whole, then runs once, or never.

use api_types::{Approval, EventKind, ReceiptState};
use gatepost_tests::{SETTLE, Scene, refusal_code, typed};
use serde_json::json;

pub(super) fn shown_and_accepted(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("accepted");
    let shown = session.propose(&format!("summary \"tidy up\" {}", marker.directive()));
    assert_eq!(shown.session_id, session.id());
    let is_digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    assert!(is_digest(&shown.approval_id), "{}", shown.approval_id);
    assert!(shown.complete && !shown.holds_secret && !shown.notes.is_empty(), "{shown:?}");
    assert_eq!(shown.confinement_level, "weak");
    assert_eq!(shown.actions.len(), 1, "{shown:?}");
    let action = &shown.actions[0];
    assert_eq!((action.tool.as_str(), &action.arguments["command"]), ("terminal", &json!(marker.command())));
    // The agent's own words, labelled as such. Its own risk is not even read where nothing analyses it.
    assert_eq!((action.agent_summary.as_deref(), action.agent_risk.as_deref()), (Some("tidy up"), Some("UNKNOWN")));
    assert!(!action.redacted && !action.truncated && !action.deceptive_text && !action.in_doubt);
    assert_eq!(session.snapshot().status, "waiting_for_confirmation");
    assert!(session.offers("session.approval.decide"));

    let path = session.path(&format!("/approvals/{}", shown.approval_id));
    let one: Approval = typed(&session.client().get(&path).unwrap(), &[200]);
    assert_eq!(one, shown);
    let full: Approval = typed(&session.client().get(&format!("{path}?full=true")).unwrap(), &[200]);
    assert_eq!(full, shown);
    std::thread::sleep(SETTLE);
    marker.assert_absent();

    let receipt = session.approve_to_end(&shown);
    let steps: Vec<(&str, &str)> = receipt.steps.iter().map(|step| (step.name.as_str(), step.state.as_str())).collect();
    assert_eq!(steps, [("accept", "done")]);
    let actions = [json!({"event_id": action.event_id, "answer": "observed"})];
    assert_eq!(receipt.result, json!({"approval_id": shown.approval_id, "actions": actions}));
    marker.assert_runs(1);
    let results = session.results_of(&action.event_id);
    assert_eq!(results.len(), 1, "{results:?}");
    assert_eq!((&results[0]["outcome"], &results[0]["exit_code"]), (&json!("observed"), &json!(0)));
    assert!(results[0]["text"].as_str().unwrap().contains("marked"), "{results:?}");
    let events = session.events();
    let about = |kind| events.iter().find(|event| event.kind == kind).map(|event| &event.payload);
    assert_eq!(about(EventKind::ApprovalRequested).unwrap()["approval_id"], json!(shown.approval_id));
    assert_eq!(about(EventKind::ApprovalResolved).unwrap()["outcome"], "accepted");
    assert_eq!(session.pending(), None);
}

pub(super) fn rejected(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("rejected");
    let shown = session.propose(&marker.directive());
    // Rejecting needs no generation.
    let input = json!({"approval_id": shown.approval_id, "decision": "reject", "reason": "I do not want this"});
    let id = format!("reject-{}", session.id());
    let reply = session.request("session.approval.decide", &input, None, &id);
    assert_eq!(reply.status, 200, "{}", reply.text);
    let receipt = session.wait_final(&id);
    assert_eq!((receipt.state, receipt.steps.len()), (ReceiptState::Applied, 1), "{receipt:?}");

    let results = session.results_of(&shown.actions[0].event_id);
    assert_eq!(results.len(), 1, "{results:?}");
    assert_eq!((&results[0]["outcome"], &results[0]["text"]), (&json!("rejected"), &json!("I do not want this")));
    let resolved = session.wait_event("the decision", |event| event.kind == EventKind::ApprovalResolved);
    assert_eq!(resolved.payload["outcome"], "rejected");
    assert_eq!(session.pending(), None);
    session.turn("say: something else then");
    std::thread::sleep(SETTLE);
    marker.assert_absent();
}

pub(super) fn read_in_full(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("long");
    let command = format!("true {} && {}", "x".repeat(6000), marker.command());
    let shown = session.propose(&format!("run: {command}"));
    assert!(!shown.complete && shown.actions[0].truncated, "{shown:?}");
    assert_ne!(shown.actions[0].arguments["command"], json!(command));
    let reply = session.ask_accept(&shown.approval_id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "approval_not_shown_in_full"));

    let path = session.path(&format!("/approvals/{}?full=true", shown.approval_id));
    let full: Approval = typed(&session.client().get(&path).unwrap(), &[200]);
    assert_eq!(full.approval_id, shown.approval_id);
    assert_eq!(full.actions[0].arguments["command"], json!(command));
    marker.assert_absent();
    session.approve_to_end(&full);
    marker.assert_runs(1);
}

pub(super) fn editor(scene: &Scene) {
    let session = scene.session();
    let path = scene.workspace().join("written.txt");
    let arguments = json!({"command": "create", "path": path, "file_text": "by the editor\n", "security_risk": "LOW"});
    let shown = session.propose(&format!("call: file_editor {arguments}"));
    assert_eq!(shown.actions[0].tool, "file_editor");
    assert_eq!(shown.actions[0].arguments["file_text"], "by the editor\n");
    std::thread::sleep(SETTLE);
    assert!(!path.exists(), "it was written before anybody approved it");
    session.approve_to_end(&shown);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "by the editor\n");
}
