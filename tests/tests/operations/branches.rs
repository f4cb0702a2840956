//! Fork and rewind.

use api_types::EventKind;
use gatepost_tests::{LIMIT, SETTLE, Scene, refusal_code, wait_until};
use serde_json::json;

pub(super) fn fork(scene: &Scene) {
    let session = scene.session();
    let (parents, forks) = (scene.marker("parents"), scene.marker("forks"));
    session.turn("say: shared history");
    let shown = session.propose(&parents.directive());

    let id = uuid::Uuid::new_v4().to_string();
    let receipt = session.applied("session.fork", &json!({"session_id": id, "title": "the other way"}));
    assert_eq!(receipt.result["session_id"], json!(id));
    let fork = scene.take_up(&id);
    let snapshot = fork.wait_quiet();
    assert_eq!((snapshot.pending_actions, snapshot.title.as_deref()), (0, Some("the other way")));
    assert_eq!(snapshot.values.get("policy"), Some(&json!("AlwaysConfirm")));
    assert_eq!(snapshot.blocked_reason, None);
    let copied: Vec<_> = fork.events().into_iter().filter(|event| event.kind == EventKind::AgentMessage).collect();
    assert_eq!(copied.len(), 1, "the shared history is there");
    assert_eq!(session.pending().unwrap(), shown, "the parent waits as before");

    let own = fork.propose(&forks.directive());
    assert_ne!(own.approval_id, shown.approval_id);
    std::thread::sleep(SETTLE);
    forks.assert_absent();
    parents.assert_absent();
    fork.approve_to_end(&own);
    forks.assert_runs(1);
    parents.assert_absent();
    assert_eq!(fork.snapshot().blocked_reason, None);

    session.approve_to_end(&session.pending().unwrap());
    parents.assert_runs(1);
    forks.assert_runs(1);
}

pub(super) fn fork_refused(scene: &Scene) {
    let session = scene.session();
    session.turn("say: something to fork from");
    let reply = session.ask("session.fork", &json!({"session_id": session.id()}));
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "session_exists"));
    // Without an id one is chosen.
    let receipt = session.applied("session.fork", &json!({}));
    let fork = scene.take_up(receipt.result["session_id"].as_str().unwrap());
    fork.wait_quiet();
    fork.turn("say: from the fork");
    assert_eq!(fork.snapshot().status, "finished");
}

pub(super) fn rewind(scene: &Scene) {
    let session = scene.session();
    session.turn("say: the first turn");
    session.turn("say: the second turn");
    let choices = session.snapshot().choices.rewind;
    let turns: Vec<(u32, &str)> = choices.iter().map(|choice| (choice.turn, choice.text.as_str())).collect();
    assert_eq!(turns, [(1, "say: the first turn"), (2, "say: the second turn")]);
    assert!(choices.iter().all(|choice| !choice.at.is_empty()));

    let receipt = session.applied("session.rewind", &json!({"event_id": choices[0].event_id}));
    assert_eq!(receipt.result, json!({"event_id": choices[0].event_id}));
    assert_eq!(session.snapshot().choices.rewind.len(), 1);
    session.turn("say: another second turn");
    let requests = scene.model().requests();
    let last = requests.last().unwrap()["messages"].to_string();
    assert!(last.contains("say: the first turn") && last.contains("another second turn"), "{last}");
    assert!(!last.contains("say: the second turn"), "the agent still sees what was taken back: {last}");
}

pub(super) fn rewind_refused(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("rewound");
    let shown = session.propose(&marker.directive());
    session.approve_to_end(&shown);
    marker.assert_runs(1);
    let unknown = uuid::Uuid::new_v4().to_string();
    for event_id in [shown.actions[0].event_id.as_str(), unknown.as_str()] {
        let reply = session.ask("session.rewind", &json!({"event_id": event_id}));
        assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "not_a_safe_point"));
    }
    let safe = session.snapshot().choices.rewind.pop().unwrap().event_id;
    session.prompt("slow 20000: say: never");
    session.wait_status(&["running"]);
    assert!(!session.offers("session.rewind"));
    let reply = wait_until("a refusal that is about the running turn", LIMIT, || {
        let reply = session.ask("session.rewind", &json!({"event_id": safe}));
        (refusal_code(&reply) != "generation_stale").then_some(reply)
    });
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "session_running"));
    session.interrupt();
    session.wait_quiet();
    session.applied("session.rewind", &json!({"event_id": safe}));
    marker.assert_runs(1);
}
