//! The private channel into the server: what it does not acknowledge is not taken for granted.

use api_types::ReceiptState;
use gatepost_tests::{Faked, LIMIT, refusal_code, wait_until};
use serde_json::json;
use testkit::fake_server::{ControlAnswer, Plan};

/// Whether the last run has ended is not known, so nothing is sent; a reject does not need to know.
#[test]
fn without_word_that_the_last_run_has_ended_nothing_is_sent() {
    for (settled_answer, code) in
        [(ControlAnswer::Lie, "session_not_quiet"), (ControlAnswer::Silence, "server_unavailable")]
    {
        let faked = Faked::new(Plan::default());
        let scene = faked.scene();
        let session = scene.session();
        let marker = scene.marker("unsettled");
        let approval = session.propose(&marker.directive());
        faked.follow(Plan { settled_answer, ..Plan::default() });
        let before = faked.steps();
        let reply = session.ask_accept(&approval.approval_id);
        assert_eq!(refusal_code(&reply), code, "{settled_answer:?}: {}", reply.text);
        session.reject(&approval);
        assert_eq!(session.refused("session.prompt.send", &json!({"text": "say: no"})), code);
        assert_eq!(faked.steps(), before);
        marker.assert_absent();
        faked.follow(Plan::default());
        session.turn("say: it goes on");
        scene.finish();
    }
}

/// A grant that may be in force and was not acknowledged ends the server: nothing may run on it later.
#[test]
fn a_grant_that_is_not_acknowledged_ends_the_server_and_lets_nothing_run() {
    for grant_answer in [ControlAnswer::Lie, ControlAnswer::Silence] {
        let faked = Faked::new(Plan::default());
        let scene = faked.scene();
        let session = scene.session();
        let marker = scene.marker("ungranted");
        let approval = session.propose(&marker.directive());
        let pid = scene.server_pid().unwrap();
        faked.follow(Plan { grant_answer, ..Plan::default() });
        let before = faked.steps();
        let reply = session.accept_as(&approval.approval_id, "ungranted");
        assert_eq!(reply.status, 200, "{}", reply.text);
        let receipt = session.wait_final("ungranted");
        assert_eq!((receipt.state, receipt.code.as_deref()), (ReceiptState::Rejected, Some("server_unavailable")));
        assert_eq!(faked.steps(), before, "an accept went out");
        let gone = || (!scene.daemon().processes().iter().any(|process| process.pid == pid)).then_some(());
        wait_until("the server to be ended", LIMIT, gone);
        marker.assert_absent();
        // Nothing was sent, so the action may be decided again, on another server.
        faked.follow(Plan::default());
        // A restart voids what was shown.
        let again = wait_until("a batch of another server", LIMIT, || {
            session.pending().filter(|now| now.approval_id != approval.approval_id)
        });
        session.approve_to_end(&again);
        marker.assert_runs(1);
        scene.finish();
    }
}
