//! Interrupt, resume, compact, model and title.

use super::SECOND_MODEL;
use api_types::{EventKind, Receipt};
use gatepost_tests::{LIMIT, SETTLE, Scene, refusal_code, typed, wait_until};
use serde_json::json;
use testkit::model::Reply;

pub(super) fn interrupt_turn(scene: &Scene) {
    let session = scene.session();
    assert!(scene.model().push(Reply::say("too late").after_ms(20_000)));
    session.prompt("say: resumed");
    session.wait_status(&["running"]);
    assert!(!session.offers("session.resume"), "what runs is not resumed");
    assert_eq!(refusal_code(&session.ask("session.compact", &json!({}))), "session_running");

    let receipt = session.interrupt();
    assert_eq!(receipt.steps.len(), 1);
    let snapshot = session.wait_quiet();
    assert_eq!(snapshot.status, "paused");
    assert!(session.offers("session.resume"));
    session.applied("session.resume", &json!({}));
    session.wait_quiet();
    let said: Vec<_> = session.events().into_iter().filter(|event| event.kind == EventKind::AgentMessage).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0].payload["text"], "resumed");
    assert_eq!(session.refused("session.resume", &json!({})), "not_advertised", "a turn that ended is not resumed");
}

pub(super) fn interrupt_command(scene: &Scene) {
    let session = scene.session();
    let (begun, marker) = (scene.marker("begun"), scene.marker("interrupted"));
    let shown = session.propose(&format!("run: {} && sleep 300 && {}", begun.command(), marker.command()));
    let deciding = {
        let (session, approval_id) = (session.clone(), shown.approval_id.clone());
        std::thread::spawn(move || session.ask_accept(&approval_id))
    };
    wait_until("the command to begin", LIMIT, || (begun.runs() == 1).then_some(()));
    session.interrupt();
    let snapshot = session.wait_quiet();
    assert_eq!((snapshot.status.as_str(), snapshot.pending_actions), ("paused", 0), "{snapshot:?}");
    let receipt: Receipt = typed(&deciding.join().unwrap(), &[200, 202]);
    assert!(session.wait_final(&receipt.client_action_id).state.is_final());

    session.turn("say: going on");
    std::thread::sleep(SETTLE);
    assert_eq!(session.pending(), None);
    begun.assert_runs(1);
    marker.assert_absent();
}

pub(super) fn compact(scene: &Scene) {
    let session = scene.session();
    for word in ["one", "two", "three"] {
        session.turn(&format!("say: {word}"));
    }
    let receipt = session.applied("session.compact", &json!({}));
    assert_eq!(receipt.steps.len(), 1);
    session.wait_event("the condensation", |event| {
        let source = event.payload["source_kind"].as_str().unwrap_or_default();
        event.kind == EventKind::Other && source.starts_with("Condensation")
    });
    session.wait_quiet();
    session.turn("say: four");
    assert_eq!(session.snapshot().status, "finished");
}

pub(super) fn model(scene: &Scene) {
    let session = scene.session();
    session.turn("say: with the first");
    let reply = session.ask("session.model.set", &json!({"model": "openai/unheard-of"}));
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "model_not_reviewed"));

    let receipt = session.applied("session.model.set", &json!({"model": SECOND_MODEL}));
    assert_eq!(receipt.result, json!({"model": SECOND_MODEL}));
    let snapshot = session.snapshot();
    assert_eq!((snapshot.values.get("model"), &snapshot.blocked_reason), (Some(&json!(SECOND_MODEL)), &None));
    session.turn("say: with the second");
    let asked: Vec<_> = scene.model().requests().iter().map(|request| request["model"].clone()).collect();
    assert_eq!(asked.last(), Some(&json!("second")), "{asked:?}");
    // Another model asks as before.
    let marker = scene.marker("second-model");
    let shown = session.propose(&marker.directive());
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    session.approve_to_end(&shown);
    marker.assert_runs(1);
}

pub(super) fn title(scene: &Scene) {
    let session = scene.session();
    let receipt = session.applied("session.title.set", &json!({"title": "a better name"}));
    assert_eq!(receipt.steps.len(), 1);
    assert_eq!(session.snapshot().title.as_deref(), Some("a better name"));
    let reply = session.ask("session.title.set", &json!({"title": ""}));
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "empty"));
    assert_eq!(session.snapshot().title.as_deref(), Some("a better name"));
}
