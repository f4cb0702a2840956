//! What an interrupt or a close comes before: it is not sent any more, and its receipt says so.

use super::{kill, pid};
use api_types::ReceiptState;
use gatepost_tests::{Faked, LIMIT, wait_until};
use serde_json::json;
use testkit::fake_server::{Fault, Plan};

/// Longer than an interrupt takes to be answered while no server is up.
const SLOW_START_MS: u64 = 5_000;

/// The prompt waits for its server to be started, and is not sent when it is.
#[test]
fn an_interrupt_stops_a_prompt_whose_server_is_still_starting() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene();
    let session = scene.session();
    session.turn("say: before");
    // The prompt is to have the generation that the session has on its server, which nobody was told yet: daemons that did the
    // same count the same steps apart.
    let mut counted = || {
        scene.restart();
        scene.take_up(session.id()).snapshot().capability_generation
    };
    let (one, next) = (counted(), counted());
    let generation = next + (next - one);
    faked.follow(Plan { start_delay_ms: SLOW_START_MS, ..Plan::default() });
    scene.restart();
    let session = scene.take_up(session.id());
    let prompting = {
        let session = session.clone();
        let input = json!({"text": "say: too late"});
        std::thread::spawn(move || session.request("session.prompt.send", &input, Some(generation), "too-late"))
    };
    wait_until("the server to be starting", LIMIT, || (!scene.status().servers.is_empty()).then_some(()));
    // Without a look, which would wait for the server.
    let interrupted = session.request("session.turn.interrupt", &json!({}), None, "stop");
    assert_eq!(interrupted.body["state"], "applied", "{}", interrupted.text);
    let answer = prompting.join().unwrap();
    assert_eq!(answer.body["code"], "interrupted", "{}", answer.text);
    assert!(!session.events().iter().any(|event| event.payload["text"] == "say: too late"));
    session.turn("say: it goes on");
    scene.finish();
}

/// Nobody looks later for what came of it.
#[test]
fn a_session_that_is_closed_on_no_server_closes_its_receipts() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let session = scene.session();
    session.turn("say: before");
    let server = pid(&scene);
    let plan = Plan { exit_at_once: Some(1), ..Plan::default() };
    faked.follow(plan.with_fault("set_title", Fault::StallMs(60_000)));
    let naming = {
        let session = session.clone();
        let generation = session.snapshot().capability_generation;
        let input = json!({"title": "never answered"});
        std::thread::spawn(move || session.request("session.title.set", &input, Some(generation), "named"))
    };
    wait_until("the call", LIMIT, || (faked.asked_for("set_title") == 1).then_some(()));
    kill(server);
    let answer = naming.join().unwrap();
    assert_eq!((answer.status, answer.body["state"].as_str()), (202, Some("in_flight")), "{}", answer.text);
    assert_eq!(session.close(false).status, 200);
    assert_eq!(session.receipt("named").state, ReceiptState::OutcomeUnknown);
    scene.finish();
}
