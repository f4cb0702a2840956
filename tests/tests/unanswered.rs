//! Steps that get no answer: what was sent may be carried out when something else waits, so the server it was sent to does
//! not live on, unless the step is seen to begin. On the fake server, which the real one cannot be made to imitate.

use api_types::{Receipt, ReceiptState};
use gatepost_tests::{Faked, LIMIT, Scene, Session, wait_until};
use serde_json::{Value, json};
use testkit::fake_server::{Fault, Plan};

fn server_start(session: &Session) -> Value {
    wait_until("the session to be on a server", LIMIT, || {
        session.snapshot().values.get("server_start_id").filter(|id| !id.is_null()).cloned()
    })
}

/// Leads a session to where this step may be asked for, and asks for it; its receipt and the server it was sent to.
fn ask_for(step: &str, scene: &Scene, faked: &Faked, fault: &Fault) -> (Session, Receipt, Value) {
    let session = scene.session();
    let marker = scene.marker(step);
    let approval = (step == "accept").then(|| session.propose(&marker.directive()));
    if step != "accept" {
        // Something to compact, or a turn that can be taken up again.
        session.turn(if step == "run" { "fail 401" } else { "say: hello" });
    }
    let before = server_start(&session);
    faked.follow(Plan::default().with_fault_times(step, 0, Some(1), fault.clone()));
    let key = format!("{step}-{}", session.id());
    let (operation, input) = match &approval {
        Some(approval) => {
            ("session.approval.decide", json!({"approval_id": approval.approval_id, "decision": "accept"}))
        }
        None if step == "send_message" => ("session.prompt.send", json!({"text": "say: once"})),
        None if step == "run" => ("session.resume", json!({})),
        None => ("session.compact", json!({})),
    };
    let reply = session.ask_as(operation, &input, &key);
    assert!([200, 202].contains(&reply.status), "{step}: {}", reply.text);
    faked.follow(Plan::default());
    // Looked at again, it is put on a server, which closes what is open.
    server_start(&session);
    let receipt = session.wait_final(&key);
    (session, receipt, before)
}

#[test]
fn a_step_that_gets_no_answer_ends_the_server() {
    for step in ["send_message", "run", "accept", "condense"] {
        let faked = Faked::new(Plan::default());
        let scene = faked.scene();
        let (session, receipt, before) = ask_for(step, &scene, &faked, &Fault::Drop);
        assert_eq!(receipt.state, ReceiptState::OutcomeUnknown, "{step}: {receipt:?}");
        assert_ne!(server_start(&session), before, "{step}: the server lives on");
        scene.marker(step).assert_absent();
        if let Some(doubtful) = session.pending() {
            assert!(step == "accept" && doubtful.actions[0].in_doubt, "{doubtful:?}");
            session.reject(&doubtful);
        }
        session.turn("say: it goes on");
        scene.finish();
    }
}

#[test]
fn a_step_that_is_seen_to_begin_ends_nothing() {
    for step in ["send_message", "accept"] {
        let faked = Faked::new(Plan::default());
        let scene = faked.scene();
        let (session, receipt, before) = ask_for(step, &scene, &faked, &Fault::CutAtByte(0));
        // What got no answer is not granted any more: the latch may hold the action, and it is in doubt then.
        let held = step == "accept" && receipt.state == ReceiptState::OutcomeUnknown;
        assert!(held || receipt.state == ReceiptState::Applied, "{step}: {receipt:?}");
        session.wait_quiet();
        assert_eq!(server_start(&session), before, "{step}: the server was ended");
        scene.finish();
    }
}

#[test]
fn a_step_that_is_answered_badly_is_closed() {
    for fault in [Fault::StatusInstead(409), Fault::StatusInstead(500), Fault::StatusAfter(500)] {
        let faked = Faked::new(Plan::default());
        let scene = faked.scene();
        let (session, receipt, before) = ask_for("accept", &scene, &faked, &fault);
        // That it was refused is no evidence that it did not happen: the action is not offered again.
        let ran = scene.marker("accept").runs();
        let expected = if ran == 1 { ReceiptState::Applied } else { ReceiptState::OutcomeUnknown };
        assert_eq!(receipt.state, expected, "{fault:?}: {receipt:?}");
        assert_eq!(server_start(&session), before, "{fault:?}: the server was ended");
        if let Some(doubtful) = session.pending() {
            assert!(doubtful.actions[0].in_doubt, "{fault:?}: {doubtful:?}");
            session.reject(&doubtful);
        }
        session.turn("say: it goes on");
        scene.finish();
    }
}
