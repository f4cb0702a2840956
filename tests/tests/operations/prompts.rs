//! `session.prompt.send`: answered, replayed, queued, cancelled.

use api_types::{EventKind, Receipt, ReceiptState};
use gatepost_tests::{Scene, Session, refusal_code, typed};
use serde_json::json;
use testkit::model::Reply;

/// Every text of that kind, in order.
fn texts(session: &Session, kind: EventKind) -> Vec<String> {
    let events = session.events().into_iter().filter(|event| event.kind == kind);
    events.filter_map(|event| event.payload["text"].as_str().map(str::to_owned)).collect()
}

pub(super) fn text_reply(scene: &Scene) {
    let session = scene.session();
    let receipt = session.prompt("say: good morning");
    assert_eq!(receipt.state, ReceiptState::Applied);
    let steps: Vec<(&str, &str)> = receipt.steps.iter().map(|step| (step.name.as_str(), step.state.as_str())).collect();
    assert_eq!(steps, [("send_message", "done")]);
    let snapshot = session.wait_quiet();
    assert_eq!((snapshot.status.as_str(), snapshot.pending_actions), ("finished", 0));
    assert_eq!(texts(&session, EventKind::UserMessage), ["say: good morning"]);
    assert_eq!(texts(&session, EventKind::AgentMessage), ["good morning"]);
}

pub(super) fn replay(scene: &Scene) {
    let session = scene.session();
    let generation = session.snapshot().capability_generation;
    let id = format!("once-{}", session.id());
    let input = json!({"text": "say: once"});
    let first: Receipt = typed(&session.request("session.prompt.send", &input, Some(generation), &id), &[200]);
    assert!(!first.replayed);
    session.wait_quiet();

    // The generation is no part of what was asked.
    for generation in [Some(generation), Some(generation + 999), None] {
        let again: Receipt = typed(&session.request("session.prompt.send", &input, generation, &id), &[200]);
        assert!(again.replayed);
        assert_eq!(Receipt { replayed: false, ..again }, first);
    }
    assert_eq!(session.receipt(&id).created_at, first.created_at);
    assert_eq!(texts(&session, EventKind::UserMessage), ["say: once"], "it was sent once");

    let other = json!({"text": "say: twice"});
    let reply = session.request("session.prompt.send", &other, Some(generation), &id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "client_action_id_reused"));
    let reply = session.request("session.compact", &json!({}), Some(generation), &id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "client_action_id_reused"));
    let other_session = scene.session();
    let reply = other_session.request("session.prompt.send", &input, Some(generation), &id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "client_action_id_reused"));
    assert_eq!(texts(&session, EventKind::UserMessage), ["say: once"]);
}

pub(super) fn generation(scene: &Scene) {
    let session = scene.session();
    let old = session.snapshot().capability_generation;
    session.turn("say: something changes");
    let id = format!("stale-{}", session.id());
    let input = json!({"text": "say: too late"});
    let reply = session.request("session.prompt.send", &input, Some(old), &id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "generation_stale"));
    let current = reply.body["capability_generation"].as_u64();
    assert_eq!(current, Some(session.snapshot().capability_generation), "the refusal says what to look at");
    let reply = session.request("session.prompt.send", &input, None, &id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "generation_missing"));

    // A refusal before the intent does not use the key up.
    let receipt: Receipt = typed(&session.request("session.prompt.send", &input, current, &id), &[200]);
    assert!(!receipt.replayed);
    session.wait_quiet();
    assert_eq!(texts(&session, EventKind::UserMessage), ["say: something changes", "say: too late"]);
}

/// Queues a prompt behind the turn that runs.
fn queue(session: &Session, text: &str) -> String {
    let receipt = session.prompt(text);
    assert_eq!(receipt.state, ReceiptState::Queued, "{receipt:?}");
    assert_eq!(receipt.steps, [], "nothing was sent");
    receipt.client_action_id
}

pub(super) fn queued_in_order(scene: &Scene) {
    let session = scene.session();
    session.prompt("slow 4000: say: first");
    session.wait_status(&["running"]);
    let queued: Vec<String> = ["second", "third"].iter().map(|word| queue(&session, &format!("say: {word}"))).collect();
    assert_eq!(session.snapshot().values.get("queued_prompts"), Some(&json!(2)));
    for id in &queued {
        let receipt = session.wait_final(id);
        assert_eq!((receipt.state, receipt.steps.len()), (ReceiptState::Applied, 1), "{receipt:?}");
    }
    session.wait_quiet();
    assert_eq!(texts(&session, EventKind::UserMessage), ["slow 4000: say: first", "say: second", "say: third"]);
    assert_eq!(texts(&session, EventKind::AgentMessage), ["first", "second", "third"], "each was read by the agent");
    assert_eq!(session.snapshot().values.get("queued_prompts"), Some(&json!(0)));
}

pub(super) fn queue_cancelled(scene: &Scene) {
    let session = scene.session();
    session.prompt("slow 20000: say: never");
    session.wait_status(&["running"]);
    let queued: Vec<String> = ["one", "two"].iter().map(|word| queue(&session, &format!("say: {word}"))).collect();
    let interrupt = session.interrupt();
    assert_eq!(interrupt.result, json!({"cancelled_prompts": 2}));
    for id in &queued {
        let receipt = session.receipt(id);
        assert_eq!((receipt.state, receipt.code.as_deref()), (ReceiptState::Rejected, Some("interrupted")));
        assert_eq!(receipt.steps, []);
    }
    session.wait_quiet();
    session.turn("say: afterwards");
    assert_eq!(texts(&session, EventKind::UserMessage), ["slow 20000: say: never", "say: afterwards"]);
    assert_eq!(texts(&session, EventKind::AgentMessage), ["afterwards"]);
}

pub(super) fn after_a_model_error(scene: &Scene) {
    let session = scene.session();
    assert!(scene.model().push(Reply::fail(401)));
    session.turn("say: at last");
    assert_eq!(session.snapshot().status, "error");
    assert!(session.offers("session.resume"));
    session.applied("session.resume", &json!({}));
    session.wait_quiet();
    assert_eq!(texts(&session, EventKind::AgentMessage), ["at last"]);
}
