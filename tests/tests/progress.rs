//! A call that goes wrong leaves no session waiting for ever: what comes next is delivered.

use api_types::ReceiptState;
use gatepost_tests::{Faked, Scenarios, Session};
use serde_json::json;
use testkit::fake_server::{Fault, Plan};

/// A prompt is read and answered.
fn goes_on(session: &Session) {
    let receipt = session.prompt("say: here I am");
    assert_eq!(session.wait_final(&receipt.client_action_id).state, ReceiptState::Applied, "{receipt:?}");
    session.wait_event("the answer to a later prompt", |event| event.payload["text"] == "here I am");
    session.wait_quiet();
}

#[test]
fn after_a_step_that_the_server_answers_badly_the_session_goes_on() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let mut scenarios = Scenarios::new();
    let faults = [
        ("without effect", Fault::StatusInstead(500)),
        ("after its effect", Fault::StatusAfter(500)),
        ("with no JSON", Fault::NotJson),
    ];
    for (how, fault) in faults {
        for (route, operation, input) in [
            ("condense", "session.compact", json!({})),
            ("run", "session.resume", json!({})),
            ("send_message", "session.prompt.send", json!({"text": "say: hello"})),
        ] {
            scenarios.play(&format!("{operation}, answered {how}"), || {
                let session = scene.session();
                // Something to compact, and a turn that can be taken up again.
                session.turn(if route == "run" { "fail 401" } else { "say: hello" });
                faked.follow(Plan::default().with_fault_times(route, 0, Some(1), fault.clone()));
                let receipt = session.act(operation, &input);
                assert!(receipt.state.is_final(), "{receipt:?}");
                session.wait_quiet();
                goes_on(&session);
            });
        }
    }
    scenarios.finish();
    scene.finish();
}
