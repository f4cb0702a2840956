//! A call that goes wrong leaves no session waiting for ever: what comes next is delivered.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use api_types::ReceiptState;
use gatepost_tests::{Scenarios, Scene, Session};
use serde_json::json;
use std::path::Path;
use testkit::daemon::SERVER_VERSION;
use testkit::fake_server::{Fault, Plan, install, set_plan};

/// A prompt is read and answered.
fn goes_on(session: &Session) {
    let receipt = session.prompt("say: here I am");
    assert_eq!(session.wait_final(&receipt.client_action_id).state, ReceiptState::Applied, "{receipt:?}");
    session.wait_event("the answer to a later prompt", |event| event.payload["text"] == "here I am");
    session.wait_quiet();
}

fn fails_once(directory: &Path, route: &str, fault: Fault) {
    set_plan(directory, &Plan::default().with_fault_times(route, 0, Some(1), fault)).unwrap();
}

#[test]
fn after_a_step_that_the_server_answers_badly_the_session_goes_on() {
    let directory = tempfile::Builder::new().prefix("gp-env-").tempdir().unwrap();
    let executable = install(directory.path(), SERVER_VERSION).unwrap();
    let scene = Scene::with(|setup| *setup = setup.clone().with_executable(&executable));
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
                fails_once(directory.path(), route, fault.clone());
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
