//! A clock that was ahead and went back, and a time zone with summer time: nothing goes by them.

use super::{final_receipt, get, notary};
use gatepost_tests::{Faked, Scene, Session};
use serde_json::{Value, json};
use store::{Check, Journal, Ledger, NewEvent};
use testkit::fake_server::Plan;

/// A moment in 2100, in milliseconds.
const AHEAD_MS: i64 = 4_102_444_800_000;

/// Writes a receipt and an event as a daemon did whose clock was ahead.
fn write_ahead(scene: &Scene, session: &Session) {
    let state = scene.home().state();
    let ledger = Ledger::open(&state, notary(scene.home()), Check::Whole, AHEAD_MS).unwrap();
    let record = final_receipt("ahead", Some(session.id()), AHEAD_MS);
    ledger.insert_receipt(record).unwrap();
    ledger.close().unwrap();
    let journal = Journal::open(&state, Check::Whole).unwrap();
    let event = NewEvent {
        event_id: "ahead".into(),
        at: "2100-01-01T00:00:00Z".into(),
        kind: "lifecycle".into(),
        payload_json: json!({"event": "server_ready"}).to_string(),
        is_late: false,
    };
    journal.append(session.id(), vec![event], AHEAD_MS).unwrap();
    journal.close().unwrap();
}

/// The daemon runs in a zone whose clock is put back by an hour each autumn; what it shows is UTC.
#[test]
fn after_a_clock_went_back_everything_goes_on_in_its_order() {
    let faked = Faked::new(Plan::default());
    let mut scene =
        faked.scene_with(|setup| setup.environment.push(("TZ".into(), "CET-1CEST,M3.5.0,M10.5.0/3".into())));
    let session = scene.session();
    session.turn("say: before");
    scene.stop_daemon();
    write_ahead(&scene, &session);
    scene.serve_again();
    let session = scene.take_up(session.id());
    let links = get(scene.client(), "/v1/audit")["head"]["n"].as_u64().unwrap();
    let later = session.prompt("say: after");
    session.wait_quiet();
    assert_eq!(session.receipt("ahead").state, api_types::ReceiptState::Applied);
    assert!(later.created_at < session.receipt("ahead").created_at, "this clock is behind");
    assert!(get(scene.client(), "/v1/audit")["head"]["n"].as_u64().unwrap() > links);
    assert_eq!(get(scene.client(), "/v1/audit/verification")["intact"], true);
    // Gapless, which is checked, and by number: the event of 2100 stands where it was written.
    let events: Vec<Value> = session.events().iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let ahead = events.iter().position(|event| event["event_id"] == "ahead").unwrap();
    assert!(0 < ahead && ahead + 1 < events.len(), "{ahead} of {}", events.len());
    let own = events.iter().filter(|event| event["kind"] == "lifecycle");
    assert!(own.clone().count() > 2 && own.clone().all(|event| event["at"].as_str().unwrap().ends_with('Z')));
    scene.restart();
    assert_eq!(get(scene.client(), "/v1/audit/verification")["intact"], true);
    scene.finish();
}
