//! A daemon that is killed: its servers end with it, the next start ends what they left, and nothing is sent twice.

use crate::left::{Hidden, Left, runs};
use crate::{approve_restored, server_of};
use api_types::{ReceiptState, SessionList};
use gatepost_tests::{LIMIT, Scene, refusal_code, typed, wait_until};
use serde_json::json;
use std::time::Duration;

/// How long the server may outlive the daemon.
const DEATH_LIMIT: Duration = Duration::from_secs(5);

#[test]
fn after_a_killed_daemon_the_next_one_ends_what_is_left_and_closes_what_was_open() {
    let mut scene = Scene::start();
    let workspace = scene.workspace();
    let (session, other) = (scene.session(), scene.session());
    let left = Left::by(&scene, &session, Hidden::Not);
    let (waits, begun, later) = (scene.marker("waits"), scene.marker("begun"), scene.marker("later"));
    let waiting = other.propose(&waits.directive());
    let batch = session.propose(&format!("run: {} && sleep 300", begun.command()));

    let accept = json!({
        "operation_id": "session.approval.decide", "client_action_id": "accept-in-flight",
        "input": {"approval_id": batch.approval_id, "decision": "accept"},
        "capability_generation": session.snapshot().capability_generation,
    });
    let accepting = {
        let (client, path) = (session.client().clone(), session.path("/actions"));
        // The daemon dies before it answers, or right after it said that it goes on.
        std::thread::spawn(move || client.post(&path, &accept).is_ok_and(|reply| reply.status == 200))
    };
    wait_until("the action to begin", LIMIT, || Some(()).filter(|()| begun.runs() == 1));
    let queued = session.ask_as("session.prompt.send", &json!({"text": later.directive()}), "prompt-queued");
    assert_eq!((queued.status, queued.body["state"].as_str()), (202, Some("queued")), "{}", queued.text);

    let server = server_of(&scene, &workspace).pid.unwrap();
    scene.kill_daemon();
    assert!(!accepting.join().unwrap(), "an accept was answered whose action still ran");
    wait_until("the server to end with its daemon", DEATH_LIMIT, || Some(()).filter(|()| !runs(server)));

    scene.serve_again();
    assert_eq!(left.alive(), [], "the next start has returned, and something is left");
    let known: SessionList = typed(&scene.client().get("/v1/sessions").unwrap(), &[200]);
    let mut ids: Vec<&str> = known.sessions.iter().map(|session| session.session_id.as_str()).collect();
    ids.sort_unstable();
    let mut expected = [session.id(), other.id()];
    expected.sort_unstable();
    assert_eq!(ids, expected);
    // The log is read for what came of it, and shows nothing.
    let receipt = session.wait_final("accept-in-flight");
    assert_eq!((receipt.state, receipt.code.as_deref()), (ReceiptState::OutcomeUnknown, Some("approval_in_doubt")));
    assert_eq!(session.receipt("prompt-queued").state, ReceiptState::Queued);

    let again = other.wait_pending();
    assert_ne!(again.approval_id, waiting.approval_id, "a restart voids what was shown");
    assert_eq!(again.actions, waiting.actions);
    waits.assert_absent();
    approve_restored(&scene, &other, &again);
    waits.assert_runs(1);

    // Whether the accepted action ran to its end is not known: it can only be rejected, and holds the prompt up until then.
    let doubtful = session.wait_pending();
    assert_eq!(doubtful.actions[0].event_id, batch.actions[0].event_id);
    assert!(doubtful.actions[0].in_doubt);
    assert_eq!(refusal_code(&session.ask_accept(&doubtful.approval_id)), "approval_in_doubt");
    assert_eq!(session.receipt("prompt-queued").state, ReceiptState::Queued);
    session.reject(&doubtful);

    // The prompt is delivered under the gate: its command waits like any.
    assert_eq!(session.wait_final("prompt-queued").state, ReceiptState::Applied);
    let batch = session.wait_pending();
    later.assert_absent();
    session.approve_to_end(&batch);
    later.assert_runs(1);
    begun.assert_runs(1);
    scene.finish();
}
