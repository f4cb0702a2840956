//! While an action waits: the server would run it at whatever comes next.

use api_types::{Approval, ReceiptState};
use gatepost_tests::{LIMIT, Marker, SETTLE, Scene, Session, refusal_code, wait_until};
use serde_json::json;
use testkit::daemon::Reply;

/// A session whose agent waits with a command that leaves this marker.
fn waiting(scene: &Scene, name: &str) -> (Session, Marker, Approval) {
    let session = scene.session();
    let marker = scene.marker(name);
    let shown = session.propose(&marker.directive());
    (session, marker, shown)
}

fn assert_refused(reply: &Reply, code: &str) {
    assert_eq!((reply.status, refusal_code(reply).as_str()), (409, code));
}

/// The command did not run, and does once, when it is approved.
fn only_approval_runs_it(session: &Session, marker: &Marker, shown: &Approval) {
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    assert_eq!(session.results_of(&shown.actions[0].event_id), Vec::<serde_json::Value>::new());
    let now = session.wait_pending();
    assert_eq!(now.actions, shown.actions, "the same action waits");
    session.approve_to_end(&now);
    marker.assert_runs(1);
    assert_eq!(session.snapshot().blocked_reason, None);
}

pub(super) fn prompt(scene: &Scene) {
    let (session, marker, shown) = waiting(scene, "prompted");
    for input in [
        json!({"text": "Wait, do NOT run that"}),
        json!({"text": "say: no", "on_pending": "refuse"}),
        json!({"text": marker.directive()}),
    ] {
        assert_refused(&session.ask("session.prompt.send", &input), "approval_pending");
    }
    assert!(session.events().iter().all(|event| event.payload["text"] != "Wait, do NOT run that"), "it was sent");
    only_approval_runs_it(&session, &marker, &shown);
}

pub(super) fn resume(scene: &Scene) {
    let (session, marker, shown) = waiting(scene, "resumed");
    assert!(!session.offers("session.resume"));
    assert_refused(&session.ask("session.resume", &json!({})), "approval_pending");
    only_approval_runs_it(&session, &marker, &shown);
}

pub(super) fn fork(scene: &Scene) {
    let (session, marker, shown) = waiting(scene, "forked");
    let receipt = session.applied("session.fork", &json!({}));
    let fork = scene.take_up(receipt.result["session_id"].as_str().unwrap());
    let snapshot = fork.wait_quiet();
    assert_eq!(snapshot.pending_actions, 0, "the action went with the fork");

    // The prompt stands unanswered in the fork: the agent proposes again, and is asked again.
    assert_eq!(fork.act("session.resume", &json!({})).state, ReceiptState::Applied);
    let again = fork.wait_pending();
    assert_ne!(again.actions[0].event_id, shown.actions[0].event_id);
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    assert_eq!(refusal_code(&fork.ask_accept(&shown.approval_id)), "approval_not_found");
    fork.reject(&again);
    fork.turn("say: another way");
    only_approval_runs_it(&session, &marker, &shown);
}

pub(super) fn compact(scene: &Scene) {
    let (session, marker, shown) = waiting(scene, "compacted");
    assert!(!session.offers("session.compact"));
    assert_refused(&session.ask("session.compact", &json!({})), "approval_pending");
    only_approval_runs_it(&session, &marker, &shown);
}

pub(super) fn interrupt(scene: &Scene) {
    let (session, marker, shown) = waiting(scene, "interrupted");
    session.interrupt();
    session.wait_quiet();
    assert_refused(&session.ask("session.prompt.send", &json!({"text": "say: and now"})), "approval_pending");
    assert_refused(&session.ask("session.resume", &json!({})), "approval_pending");
    only_approval_runs_it(&session, &marker, &shown);
}

/// Every operation that could make the agent act, from eight clients at once.
pub(super) fn storm(scene: &Scene) {
    let (session, marker, shown) = waiting(scene, "stormed");
    let operations = [
        ("session.prompt.send", json!({"text": "say: now"})),
        ("session.resume", json!({})),
        ("session.compact", json!({})),
        ("session.rewind", json!({"event_id": shown.actions[0].event_id})),
    ];
    let clients: Vec<_> = (0..8)
        .map(|client| {
            let (session, (operation, input)) = (session.clone(), operations[client % operations.len()].clone());
            std::thread::spawn(move || (0..5).map(|_| session.refused(operation, &input)).collect::<Vec<String>>())
        })
        .collect();
    let allowed = ["approval_pending", "not_a_safe_point", "generation_stale"];
    for client in clients {
        let codes = client.join().unwrap();
        assert!(codes.iter().all(|code| allowed.contains(&code.as_str())), "{codes:?}");
    }
    only_approval_runs_it(&session, &marker, &shown);
}

/// A prompt that was queued behind a turn must not run what that turn ends with.
pub(super) fn queued_prompt(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("queued-behind");
    session.prompt(&format!("slow 2000: {}", marker.directive()));
    session.wait_status(&["running"]);
    let queued = session.prompt("say: do not wait for me");
    assert_eq!(queued.state, ReceiptState::Queued, "{queued:?}");
    let shown = session.wait_pending();
    std::thread::sleep(SETTLE);
    assert_eq!(session.receipt(&queued.client_action_id).state, ReceiptState::Queued, "it waits for the decision");
    marker.assert_absent();
    session.approve(&shown);
    assert_eq!(session.wait_final(&queued.client_action_id).state, ReceiptState::Applied);
    let snapshot = session.wait_quiet();
    assert_eq!((snapshot.pending_actions, snapshot.blocked_reason), (0, None));
    session.wait_event("the answer to the queued prompt", |event| event.payload["text"] == "do not wait for me");
    marker.assert_runs(1);
}

/// An approved command that still runs goes with no fork, and does not run there again.
pub(super) fn fork_while_it_runs(scene: &Scene) {
    let session = scene.session();
    let (begun, ended) = (scene.marker("running-begun"), scene.marker("running-ended"));
    let shown = session.propose(&format!("run: {} && sleep 4 && {}", begun.command(), ended.command()));
    let deciding = {
        let (session, approval_id) = (session.clone(), shown.approval_id.clone());
        std::thread::spawn(move || session.ask_accept(&approval_id))
    };
    wait_until("the command to begin", LIMIT, || (begun.runs() == 1).then_some(()));
    let receipt = session.applied("session.fork", &json!({}));
    let fork = scene.take_up(receipt.result["session_id"].as_str().unwrap());
    assert_eq!(fork.wait_quiet().pending_actions, 0);
    fork.act("session.resume", &json!({}));
    let proposed_again = fork.wait_pending();
    fork.reject(&proposed_again);
    assert!(deciding.join().unwrap().status < 300);
    session.wait_quiet();
    std::thread::sleep(SETTLE);
    begun.assert_runs(1);
    ended.assert_runs(1);
    assert_eq!(fork.snapshot().blocked_reason, None);
}
