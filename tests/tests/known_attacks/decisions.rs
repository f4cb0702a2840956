//! Acceptances that are late, early, doubled or meant for something else.

use api_types::{Approval, Receipt, ReceiptState};
use gatepost_tests::{Marker, SETTLE, Scene, Session, refusal_code, typed};
use serde_json::json;
use std::time::{Duration, Instant};

/// How long an offer stays good in this file's configuration.
const OFFER_LIFE: Duration = Duration::from_secs(120);

/// A batch that was offered early on.
pub(super) struct Early {
    session: Session,
    marker: Marker,
    shown: Approval,
    offered: Instant,
}

pub(super) fn offer_early(scene: &Scene) -> Early {
    // A workspace of its own: the server of the shared one is killed before the end, which voids what was offered.
    let workspace = scene.home().new_workspace("early").unwrap().canonicalize().unwrap();
    let session = scene.session_in(&workspace);
    let marker = Marker::new(&workspace, "early");
    let shown = session.propose(&marker.directive());
    Early { session, marker, shown, offered: Instant::now() }
}

pub(super) fn expired(early: &Early) {
    let Early { session, marker, shown, offered } = early;
    std::thread::sleep(OFFER_LIFE.saturating_sub(offered.elapsed()) + Duration::from_secs(1));
    let reply = session.ask_accept(&shown.approval_id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (410, "approval_expired"));
    // It can still be rejected, and the session goes on.
    session.reject(shown);
    session.turn("say: too late");
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    session.approve_to_end(&session.propose(&marker.directive()));
    marker.assert_runs(1);
}

pub(super) fn accepted_again(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("doubled");
    let shown = session.propose(&marker.directive());
    let generation = session.snapshot().capability_generation;
    let input = json!({"approval_id": shown.approval_id, "decision": "accept"});
    let id = format!("accept-{}", session.id());
    let ask = |id: &str| session.request("session.approval.decide", &input, Some(generation), id);
    let first: Receipt = typed(&ask(&id), &[200]);
    assert_eq!((first.state, first.replayed), (ReceiptState::Applied, false));
    for _ in 0..3 {
        let again: Receipt = typed(&ask(&id), &[200]);
        assert_eq!((again.state, again.replayed), (ReceiptState::Applied, true));
    }
    session.wait_quiet();
    // Under another key it is another decision, on what waits no more.
    for key in ["b", "c"] {
        let reply = session.accept_as(&shown.approval_id, &format!("{id}-{key}"));
        assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "nothing_pending"));
    }
    std::thread::sleep(SETTLE);
    marker.assert_runs(1);
}

pub(super) fn accepted_at_once(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("raced");
    let shown = session.propose(&marker.directive());
    let generation = session.snapshot().capability_generation;
    let input = json!({"approval_id": shown.approval_id, "decision": "accept"});
    // Four clients with keys of their own, four that share one.
    let racing: Vec<_> = (0..8)
        .map(|client| {
            let (session, input) = (session.clone(), input.clone());
            let id = format!("race-{}-{}", session.id(), client.min(4));
            std::thread::spawn(move || session.request("session.approval.decide", &input, Some(generation), &id))
        })
        .collect();
    let replies: Vec<_> = racing.into_iter().map(|racer| racer.join().unwrap()).collect();
    let mut applied: Vec<String> = Vec::new();
    for reply in &replies {
        if reply.status < 400 {
            let receipt: Receipt = typed(reply, &[200, 202]);
            assert_eq!(session.wait_final(&receipt.client_action_id).state, ReceiptState::Applied);
            applied.push(receipt.client_action_id);
            continue;
        }
        let code = refusal_code(reply);
        let lost = ["generation_stale", "nothing_pending", "session_running", "session_not_quiet", "action_in_flight"];
        assert!(lost.contains(&code.as_str()), "{code}");
    }
    applied.sort();
    applied.dedup();
    assert_eq!(applied.len(), 1, "one decision counts: {applied:?}");
    session.wait_quiet();
    std::thread::sleep(SETTLE);
    marker.assert_runs(1);
    assert_eq!(session.results_of(&shown.actions[0].event_id).len(), 1);
}

pub(super) fn superseded(scene: &Scene) {
    let session = scene.session();
    let (harmless, harmful) = (scene.marker("harmless"), scene.marker("harmful"));
    let shown = session.propose(&harmless.directive());
    session.reject(&shown);
    let now = session.propose(&harmful.directive());
    let reply = session.ask_accept(&shown.approval_id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "approval_superseded"));
    // Nor is the rejection of the old one a rejection of the new.
    let input = json!({"approval_id": shown.approval_id, "decision": "reject"});
    assert_eq!(session.refused("session.approval.decide", &input), "approval_superseded");
    std::thread::sleep(SETTLE);
    harmful.assert_absent();
    harmless.assert_absent();
    session.approve_to_end(&now);
    harmful.assert_runs(1);
    harmless.assert_absent();
}

pub(super) fn never_offered(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("never-offered");
    let invented = "0".repeat(64);
    let reply = session.ask_accept(&invented);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (404, "approval_not_found"));
    let shown = session.propose(&marker.directive());
    let reply = session.ask_accept(&invented);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (404, "approval_not_found"));
    let reply = session.ask_accept(&shown.approval_id[..12]);
    assert_eq!(reply.status, 422, "no prefix will do: {}", reply.text);
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    session.approve_to_end(&shown);
    marker.assert_runs(1);
}

pub(super) fn of_another_session(scene: &Scene) {
    let (one, other) = (scene.session(), scene.session());
    let (first, second) = (scene.marker("mine"), scene.marker("yours"));
    let shown = one.propose(&first.directive());
    let theirs = other.propose(&second.directive());
    assert_eq!(refusal_code(&one.ask_accept(&theirs.approval_id)), "approval_not_found");
    assert_eq!(refusal_code(&other.ask_accept(&shown.approval_id)), "approval_not_found");
    std::thread::sleep(SETTLE);
    first.assert_absent();
    second.assert_absent();
    one.approve_to_end(&shown);
    first.assert_runs(1);
    second.assert_absent();
    other.approve_to_end(&theirs);
    second.assert_runs(1);
}
