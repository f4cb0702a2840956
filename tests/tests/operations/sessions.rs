//! Starting, looking at, closing and taking up sessions.

use super::SECOND_MODEL;
use api_types::{Closed, EventKind, SessionList, SessionSnapshot};
use gatepost_tests::{Scene, Session, refusal_code, typed};
use serde_json::{Value, json};
use std::time::Duration;

fn listed(scene: &Scene, session: &Session) -> bool {
    let list: SessionList = typed(&scene.client().get("/v1/sessions").unwrap(), &[200]);
    list.sessions.iter().any(|line| line.session_id == session.id())
}

fn attach(scene: &Scene, conversation_id: &str) -> testkit::daemon::Reply {
    let body = json!({"workspace": scene.workspace(), "conversation_id": conversation_id});
    scene.client().post("/v1/sessions/attach", &body).unwrap()
}

pub(super) fn start_twice(scene: &Scene) {
    let id = uuid::Uuid::new_v4().to_string();
    let body = json!({"workspace": scene.workspace(), "session_id": id, "title": "one of two", "prompt": "say: begun"});
    let session = scene.create(&body);
    assert_eq!(session.id(), id);
    session.wait_event("the answer to the first prompt", |event| event.payload["text"] == "begun");

    let again: SessionSnapshot = typed(&scene.client().post("/v1/sessions", &body).unwrap(), &[200]);
    assert_eq!((again.session_id.as_str(), again.title.as_deref()), (id.as_str(), Some("one of two")));
    session.wait_quiet();
    let prompts = session.events().into_iter().filter(|event| event.kind == EventKind::UserMessage).count();
    assert_eq!(prompts, 1, "the first prompt was sent once");

    let elsewhere = scene.home().new_workspace("elsewhere").unwrap();
    let moved = json!({"workspace": elsewhere, "session_id": id});
    let reply = scene.client().post("/v1/sessions", &moved).unwrap();
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "session_exists"));

    assert!(listed(scene, &session));
    let reply = scene.client().get(&format!("/v1/sessions/{}", uuid::Uuid::new_v4())).unwrap();
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (404, "session_not_found"));
}

pub(super) fn snapshot(scene: &Scene) {
    let session = scene.create(&json!({"workspace": scene.workspace(), "title": "look at me"}));
    let snapshot = session.snapshot();
    assert_eq!(snapshot.workspace, scene.workspace().to_string_lossy());
    assert_eq!((snapshot.status.as_str(), snapshot.pending_actions), ("idle", 0));
    assert_eq!(snapshot.title.as_deref(), Some("look at me"));
    assert_eq!(snapshot.blocked_reason, None);
    assert!(snapshot.capability_generation > 0);
    assert!(snapshot.valid_until > snapshot.observed_at, "{snapshot:?}");
    let expected = [
        ("model", json!("openai/scripted")),
        ("title", json!("look at me")),
        ("policy", json!("AlwaysConfirm")),
        ("queued_prompts", json!(0)),
        ("confinement_level", json!("weak")),
    ];
    for (name, value) in expected {
        assert_eq!(snapshot.values.get(name), Some(&value), "{name}");
    }
    assert!(snapshot.values.get("server_start_id").is_some_and(Value::is_string));
    assert_eq!(snapshot.choices.model, [SECOND_MODEL]);
    assert_eq!(snapshot.choices.rewind, []);

    session.turn("say: hello");
    let after = session.snapshot();
    let offered: Vec<&str> =
        after.advertised_operations.iter().map(|operation| operation.operation_id.as_str()).collect();
    let expected = [
        "session.prompt.send",
        "session.turn.interrupt",
        "session.fork",
        "session.rewind",
        "session.compact",
        "session.model.set",
        "session.title.set",
    ];
    assert_eq!(offered, expected, "after a turn that ended");
    for operation in &after.advertised_operations {
        assert_eq!(operation.needs_generation, operation.operation_id != "session.turn.interrupt");
    }
    assert_eq!(after.choices.rewind.len(), 1);
    assert_eq!((after.choices.rewind[0].turn, after.choices.rewind[0].text.as_str()), (1, "say: hello"));
    assert!(after.capability_generation > snapshot.capability_generation, "more may be done now");
    let page = session.page(Some(&after.cursor), 10, Duration::ZERO);
    assert_eq!((page.events, page.resync), (vec![], None), "the cursor stands at the end");
}

pub(super) fn close_and_attach(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("attached");
    session.turn("say: before");
    let shown = session.propose(&marker.directive());

    let closed: Closed = typed(&session.close(false), &[200]);
    assert_eq!((closed.session_id.as_str(), closed.deleted), (session.id(), false));
    assert!(!listed(scene, &session));
    let reply = session.client().get(&session.path("")).unwrap();
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (404, "session_not_found"));

    let snapshot: SessionSnapshot = typed(&attach(scene, session.id()), &[200]);
    assert_eq!((snapshot.session_id.as_str(), snapshot.pending_actions), (session.id(), 1));
    assert!(listed(scene, &session));
    let again: SessionSnapshot = typed(&attach(scene, session.id()), &[200]);
    assert_eq!(again.session_id, session.id());
    let texts: Vec<String> =
        session.events().iter().filter_map(|event| event.payload["text"].as_str().map(str::to_owned)).collect();
    assert!(texts.contains(&"before".to_owned()), "the events from before are there: {texts:?}");

    let pending = session.wait_pending();
    assert_eq!(pending.actions[0].event_id, shown.actions[0].event_id);
    marker.assert_absent();
    session.approve_to_end(&pending);
    marker.assert_runs(1);
}

pub(super) fn close_and_delete(scene: &Scene) {
    let session = scene.session();
    session.turn("say: gone soon");
    let closed: Closed = typed(&session.close(true), &[200]);
    assert!(closed.deleted);
    assert!(!listed(scene, &session));
    let reply = session.client().get(&session.path("/events")).unwrap();
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (404, "session_not_found"));
    let reply = attach(scene, session.id());
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (404, "conversation_not_found"));
    let never = uuid::Uuid::new_v4().to_string();
    assert_eq!(refusal_code(&attach(scene, &never)), "conversation_not_found");
}
