//! Events, and the attestation.

use api_types::{Attestation, Event, EventKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use gatepost_tests::{LIMIT, Scene, Session, refusal_code, typed, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Longer than an event that the stream brought is waited for in the log.
const EVENTS_REST: Duration = Duration::from_millis(2500);

/// A session with an event of every kind.
fn eventful(scene: &Scene, marker: &str) -> Session {
    let session = scene.session();
    session.turn("say: a text");
    let shown = session.propose(&scene.marker(marker).directive());
    session.approve_to_end(&shown);
    session
}

pub(super) fn complete(scene: &Scene) {
    let session = eventful(scene, "eventful");
    // Until the log has shown, or not, all that the stream brought.
    let events = wait_until("the events to rest", LIMIT, || {
        let before = session.events();
        std::thread::sleep(EVENTS_REST);
        Some(session.events()).filter(|after| *after == before)
    });
    let kinds: BTreeSet<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    let every = [
        EventKind::UserMessage,
        EventKind::AgentMessage,
        EventKind::ToolCall,
        EventKind::ToolResult,
        EventKind::ApprovalRequested,
        EventKind::ApprovalResolved,
        EventKind::Status,
        EventKind::Usage,
        EventKind::Lifecycle,
        EventKind::Other,
    ];
    for kind in every {
        assert!(kinds.contains(kind.as_str()), "no {} among {kinds:?}", kind.as_str());
    }
    let ids: BTreeSet<&str> = events.iter().map(|event| event.event_id.as_str()).collect();
    assert_eq!(ids.len(), events.len(), "an event stands twice"); // The real server publishes what it appends, in the order in which it does: the epoch is the first.
    let cursor = String::from_utf8(URL_SAFE_NO_PAD.decode(&events.last().unwrap().cursor).unwrap()).unwrap();
    assert_eq!(cursor.split(':').nth(3), Some("1"), "the stream was not as the log: {cursor}");

    for limit in [1, 3, 1000] {
        let mut again: Vec<Event> = Vec::new();
        let mut after = None;
        loop {
            let page = session.page(after.as_deref(), limit, Duration::ZERO);
            assert!(page.events.len() <= limit);
            after = Some(page.next_cursor);
            if page.events.is_empty() {
                break;
            }
            again.extend(page.events);
        }
        assert_eq!(again, events, "in pages of {limit}");
    }
    // An event's own cursor goes on after it.
    let page = session.page(Some(&events[4].cursor), 1, Duration::ZERO);
    assert_eq!(page.events, [events[5].clone()]);
}

pub(super) fn long_poll(scene: &Scene) {
    let session = scene.session();
    session.turn("say: before the poll");
    let head = session.snapshot().cursor;
    let begun = Instant::now();
    let page = session.page(Some(&head), 10, Duration::from_secs(2));
    assert_eq!(page.events, []);
    assert!(begun.elapsed() >= Duration::from_secs(2), "the poll did not wait");

    let polling = {
        let session = session.clone();
        std::thread::spawn(move || (session.page(Some(&head), 10, Duration::from_secs(50)), Instant::now()))
    };
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    session.prompt("say: the poll is woken");
    let (page, woken) = polling.join().unwrap();
    assert!(!page.events.is_empty());
    assert!(woken.saturating_duration_since(begun) < Duration::from_secs(20), "the poll slept on");
    session.wait_quiet();
}

pub(super) fn foreign_cursor(scene: &Scene) {
    let (session, other) = (eventful(scene, "foreign"), scene.session());
    other.turn("say: elsewhere");
    let foreign = other.snapshot().cursor;
    let page = session.page(Some(&foreign), 1000, Duration::ZERO);
    let resync = page.resync.unwrap();
    assert_eq!(resync.reason, "foreign_cursor");
    let events = session.events();
    assert_eq!(page.events, events, "it starts over");
    let first = session.page(Some(&resync.first_cursor), 1000, Duration::ZERO);
    assert_eq!((first.events, first.resync), (events, None));
    let reply = session.client().get(&session.path("/events?after=not-a-cursor")).unwrap();
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (400, "cursor_invalid"));
}

pub(super) fn streamed(scene: &Scene) {
    let session = eventful(scene, "streamed");
    let token = scene.home().owner_token().unwrap();
    let mut stream = session.client().clone().with_timeout(Duration::from_secs(5)).connect().unwrap();
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: gatepost\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n\r\n",
        session.path("/events")
    );
    stream.write_all(head.as_bytes()).unwrap();
    let events = session.events();
    let last = format!("id: {}\n", events.last().unwrap().cursor);
    session.prompt("say: while it streams");
    let mut received = Vec::new();
    let mut buffer = [0_u8; 4096];
    let begun = Instant::now();
    let text = loop {
        assert!(begun.elapsed() < LIMIT, "the stream ends before the new reply");
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the stream was closed");
        received.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&received).into_owned();
        if text.contains("\"text\":\"while it streams\"") {
            break text;
        }
    };
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    assert!(text.contains(&last), "what was there before is streamed too");
    let places: Vec<usize> =
        events.iter().map(|event| text.find(&format!("id: {}\n", event.cursor)).unwrap()).collect();
    assert!(places.is_sorted(), "in order");
    session.wait_quiet();
}

pub(super) fn attestation(scene: &Scene) {
    let session = scene.session();
    session.turn("say: attested");
    let reply = session.client().get(&session.path("/attestation")).unwrap();
    let attestation: Attestation = typed(&reply, &[200]);
    let key = STANDARD.decode(&attestation.public_key).unwrap();
    let signature = STANDARD.decode(&attestation.signature).unwrap();
    let document = &attestation.document;
    let signed = rules::jcs::canonical_json(document);
    host::sign::verify(&key, signed.as_bytes(), &signature).unwrap();

    assert_eq!(document["session_id"], session.id());
    assert_eq!(document["contract_version"], "1.40.0");
    assert_eq!(document["confinement_level"], "weak");
    assert_eq!(document["launch_config_digest"].as_str().unwrap().len(), 64);
    let canaries = document["canaries"].as_array().unwrap();
    assert!(canaries.len() >= 10, "{document}");
    for canary in canaries {
        assert_eq!((&canary["passed"], &canary["code"]), (&Value::Bool(true), &Value::Null), "{canary}");
        assert_eq!(canary["evidence_sha256"].as_str().unwrap().len(), 64, "{canary}");
        assert!(canary["age_ms"].as_i64().unwrap() < 300_000, "{canary}");
    }
    assert!(document["expires_at"].as_str() > document["issued_at"].as_str());

    // One letter more and the signature is none.
    let mut other = document.clone();
    other["confinement_level"] = Value::from("full");
    let changed = rules::jcs::canonical_json(&other);
    assert!(host::sign::verify(&key, changed.as_bytes(), &signature).is_err());
}
