//! Readers that do not read, beside others.

use super::stage::{Reader, stage, streams};
use gatepost_tests::{LIMIT, Scene, Session, wait_until};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use testkit::fake_server::{Plan, StreamPlan};

/// Events that fill every buffer between the daemon and a reader several times.
const EVENTS: u64 = 4_000;
/// Readers that do not read.
const IDLERS: usize = 8;

/// Asks for the event stream of a session.
fn stream(scene: &Scene, session: &Session, last: Option<&str>) -> UnixStream {
    let token = scene.home().owner_token().unwrap();
    let mut stream = session.client().clone().with_timeout(Duration::from_secs(10)).connect().unwrap();
    let last = last.map(|cursor| format!("Last-Event-ID: {cursor}\r\n")).unwrap_or_default();
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: gatepost\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n{last}\r\n",
        session.path("/events")
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Reads until this stands in what was read.
fn read_until(stream: &mut UnixStream, end: &str) -> String {
    let (mut received, mut buffer) = (Vec::new(), [0_u8; 65_536]);
    loop {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the stream ended: {}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&buffer[..count]);
        let tail = received.len().saturating_sub(count + end.len());
        if String::from_utf8_lossy(&received[tail..]).contains(end) {
            return String::from_utf8_lossy(&received).into_owned();
        }
    }
}

#[test]
fn who_does_not_read_holds_up_nobody() {
    let (faked, scene) = stage();
    faked.follow(streams(StreamPlan { appends_on_open: EVENTS, ..StreamPlan::default() }));
    let session = scene.session();
    let idlers: Vec<UnixStream> = (0..IDLERS).map(|_| stream(&scene, &session, None)).collect();
    let reader = Reader::of(&session);
    wait_until("the events", LIMIT, || (reader.now().events.len() as u64 > EVENTS).then_some(()));
    faked.follow(Plan::default());
    session.turn("say: it goes on");
    let read = reader.wait_for_the_log(&scene, &session);
    reader.end();

    // Another stream has everything, in order, once.
    let mut whole = stream(&scene, &session, None);
    let last = format!("id: {}\n", read.events.last().unwrap().cursor);
    let text = read_until(&mut whole, &last);
    let mut ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let cursors: Vec<&str> = read.events.iter().map(|event| event.cursor.as_str()).collect();
    // What came since may stand behind.
    ids.truncate(cursors.len());
    assert!(ids == cursors, "{} of {}, or in another order", ids.len(), cursors.len());

    // One that connects again goes on; from elsewhere it is told to start over.
    let at = &read.events[read.events.len() - 3].cursor;
    let text = read_until(&mut stream(&scene, &session, Some(at)), &last);
    assert!(text.lines().filter(|line| line.starts_with("id: ")).count() >= 2, "{text}");
    assert!(!text.contains("event: resync"), "{text}");
    let other = scene.session();
    let text = read_until(&mut stream(&scene, &other, Some(at)), "id: ");
    assert!(text.contains("event: resync\ndata: {\"reason\":\"foreign_cursor\""), "{text}");
    drop(idlers);
    scene.finish();
}
