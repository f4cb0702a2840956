//! Going back to an action: the server would run it again.

use api_types::EventKind;
use gatepost_tests::{Marker, SETTLE, Scene, refusal_code};
use serde_json::json;

pub(super) fn executed(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("executed");
    let shown = session.propose(&marker.directive());
    session.approve_to_end(&shown);
    marker.assert_runs(1);

    let action = &shown.actions[0].event_id;
    let reply = session.ask("session.rewind", &json!({"event_id": action}));
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "not_a_safe_point"));
    assert!(session.snapshot().choices.rewind.iter().all(|choice| choice.event_id != *action));
    session.turn("say: anything");
    std::thread::sleep(SETTLE);
    marker.assert_runs(1);
    assert_eq!(session.results_of(action).len(), 1);
}

pub(super) fn rejected(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("rejected");
    let shown = session.propose(&marker.directive());
    session.reject(&shown);

    let reply = session.ask("session.rewind", &json!({"event_id": shown.actions[0].event_id}));
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "not_a_safe_point"));
    session.turn("say: anything");
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    // Proposed anew it is a new action: it runs when it is approved.
    let again = session.propose(&marker.directive());
    assert_ne!(again.approval_id, shown.approval_id);
    session.approve_to_end(&again);
    marker.assert_runs(1);
}

pub(super) fn before(scene: &Scene) {
    let session = scene.session();
    let (marker, later) = (scene.marker("before"), scene.marker("later"));
    session.turn("say: a place to come back to");
    let safe = session.snapshot().choices.rewind.pop().unwrap().event_id;
    session.approve_to_end(&session.propose(&marker.directive()));
    // Away from a batch that waits: it is withdrawn, not run.
    let left_behind = session.propose(&later.directive());
    session.applied("session.rewind", &json!({"event_id": safe}));
    assert_eq!(session.pending(), None, "what was left behind waits no more");
    assert_eq!(refusal_code(&session.ask_accept(&left_behind.approval_id)), "nothing_pending");
    session.turn("say: going on");
    std::thread::sleep(SETTLE);
    marker.assert_runs(1);
    later.assert_absent();

    let again = session.propose(&later.directive());
    session.approve_to_end(&again);
    later.assert_runs(1);
    marker.assert_runs(1);
    assert_eq!(session.snapshot().blocked_reason, None);
}

/// Between the results of one batch: going back there would leave the rest of it unanswered, and run it again.
pub(super) fn within_a_batch(scene: &Scene) {
    let session = scene.session();
    let markers = ["batch-a", "batch-b", "batch-c"].map(|name| scene.marker(name));
    let commands = markers.each_ref().map(Marker::command);
    let shown = session.propose(&format!("run all: {}", commands.join(" ;; ")));
    session.approve_to_end(&shown);
    let results: Vec<String> = session
        .events()
        .into_iter()
        .filter(|event| event.kind == EventKind::ToolResult)
        .map(|event| event.event_id)
        .collect();
    assert_eq!(results.len(), 3);
    let actions = shown.actions.iter().map(|action| &action.event_id);
    for event_id in actions.chain(&results[..2]) {
        let reply = session.ask("session.rewind", &json!({"event_id": event_id}));
        assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "not_a_safe_point"), "{event_id}");
    }
    // After its last result everything is answered.
    session.applied("session.rewind", &json!({"event_id": results[2]}));
    assert_eq!(session.pending(), None);
    session.turn("say: going on");
    std::thread::sleep(SETTLE);
    for marker in &markers {
        marker.assert_runs(1);
    }
}
