//! The event stream, on a real socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/mod.rs"]
#[allow(dead_code, reason = "shared by several test programs")]
mod support;

use std::time::Duration;

use api::Limits;
use serde_json::{Value, json};
use support::{Connection, Request, Running, SESSION};

const STREAM: (&str, &str) = ("Accept", "text/event-stream");

async fn open(running: &Running, query: &str, headers: &[(&str, &str)]) -> Connection {
    let target = format!("/v1/sessions/{SESSION}/events{query}");
    let mut all = vec![STREAM];
    all.extend_from_slice(headers);
    let mut connection = running.connect().await;
    connection.write(&Request::get(&target).headers(&all).bytes()).await;
    let head = connection.until("\r\n\r\n").await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
    assert!(head.contains("cache-control: no-store\r\n"), "{head}");
    connection.until("retry: 2000\n\n").await.unwrap();
    connection
}

/// The next frame that is not a keep-alive: its `id`, `event` and `data`.
async fn frame(connection: &mut Connection) -> (Option<String>, String, Value) {
    loop {
        let text = connection.until("\n\n").await.expect("a frame");
        // Chunk sizes stand between frames.
        let text = text.rsplit("\r\n").next().unwrap().to_owned();
        if text.starts_with(": keep-alive") {
            continue;
        }
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).map(str::to_owned);
        let data = serde_json::from_str(&field("data").unwrap()).unwrap();
        return (field("id"), field("event").unwrap(), data);
    }
}

#[tokio::test]
async fn events_come_in_order_as_they_happen() {
    let running = Running::start(Limits::default());
    running.fake.publish(json!({"text": "line\nbreak"}));
    let mut stream = open(&running, "", &[]).await;
    let (id, event, data) = frame(&mut stream).await;
    assert_eq!((id.as_deref(), event.as_str(), &data["seq"]), (Some("c1"), "agent_message", &json!(1)));
    assert_eq!(data["payload"]["text"], "line\nbreak");
    for seq in 2..=4 {
        running.fake.publish(json!({ "n": seq }));
        let (id, _, data) = frame(&mut stream).await;
        assert_eq!((id, &data["seq"]), (Some(format!("c{seq}")), &json!(seq)));
    }
}

#[tokio::test]
async fn a_reconnect_goes_on_where_it_stopped() {
    let running = Running::start(Limits::default());
    for n in 1..=3 {
        running.fake.publish(json!({ "n": n }));
    }
    // The URL still says where the first connection began: the header wins.
    let mut stream = open(&running, "?after=c0", &[("Last-Event-ID", "c2")]).await;
    assert_eq!(frame(&mut stream).await.0.as_deref(), Some("c3"));
    let mut stream = open(&running, "?after=c1&limit=1", &[]).await;
    assert_eq!(frame(&mut stream).await.0.as_deref(), Some("c2"));
    assert_eq!(frame(&mut stream).await.0.as_deref(), Some("c3"));
}

#[tokio::test]
async fn an_old_cursor_is_answered_with_one_resync_and_the_events_from_there() {
    let running = Running::start(Limits::default());
    running.fake.publish(json!({"n": 1}));
    let mut stream = open(&running, "?after=of-an-earlier-epoch", &[]).await;
    let (id, event, data) = frame(&mut stream).await;
    assert_eq!((id, event.as_str()), (None, "resync"));
    assert_eq!(data, json!({"reason": "epoch", "first_cursor": "c0"}));
    assert_eq!(frame(&mut stream).await.0.as_deref(), Some("c1"));
    running.fake.publish(json!({"n": 2}));
    assert_eq!(frame(&mut stream).await.0.as_deref(), Some("c2"));
}

#[tokio::test]
async fn an_idle_stream_is_kept_alive() {
    let running = Running::start(Limits { stream_keep_alive: Duration::from_millis(40), ..Limits::default() });
    let mut stream = open(&running, "", &[]).await;
    for _ in 0..3 {
        assert!(stream.until(": keep-alive\n\n").await.is_some());
    }
    running.fake.publish(json!({"n": 1}));
    assert_eq!(frame(&mut stream).await.0.as_deref(), Some("c1"));
}

#[tokio::test]
async fn a_session_that_is_not_there_is_a_problem_and_no_stream() {
    let running = Running::start(Limits::default());
    let target = "/v1/sessions/00000000-0000-4000-8000-0000000000ff/events";
    let reply = running.send(&Request::get(target).headers(&[STREAM])).await;
    assert_eq!((reply.status, reply.code().as_deref()), (404, Some("session_not_found")));
}

#[tokio::test]
async fn a_reader_that_stops_reading_holds_a_page_and_is_dropped() {
    let running = Running::start(Limits { write_stall: Duration::from_millis(300), ..Limits::default() });
    let text = "x".repeat(10_000);
    for _ in 0..2_000 {
        running.fake.publish(json!({ "text": text }));
    }
    let _stream = open(&running, "?limit=10", &[]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let reads = running.fake.calls().len();
    // 20 MB wait in pages of 100 kB; the socket's and the connection's buffers hold a few of them.
    assert!(reads < 20, "{reads} pages were read ahead");
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(running.fake.calls().len(), reads);
    let report = tokio::time::timeout(Duration::from_secs(5), running.stop()).await.unwrap();
    assert_eq!(report.cut_off, 0, "it was dropped before the drain");
}

#[tokio::test]
async fn a_revoked_token_ends_the_stream_before_the_next_event() {
    let running = Running::start(Limits::default());
    running.fake.publish(json!({"n": 1}));
    let mut stream = open(&running, "", &[]).await;
    assert_eq!(frame(&mut stream).await.0.as_deref(), Some("c1"));
    running.fake.revoke();
    running.fake.publish(json!({"n": 2}));
    let (_, event, data) = frame(&mut stream).await;
    assert_eq!((event.as_str(), &data["code"]), ("problem", &json!("unauthenticated")));
    assert!(stream.until("0\r\n\r\n").await.is_some(), "the stream ends");
}

#[tokio::test]
async fn a_revoked_token_ends_what_waits_although_nothing_comes() {
    let running = Running::start(Limits { stream_keep_alive: Duration::from_secs(600), ..Limits::default() });
    let mut stream = open(&running, "", &[]).await;
    let target = format!("/v1/sessions/{SESSION}/events?wait_ms=60000");
    let mut poll = running.connect().await;
    poll.write(&Request::get(&target).bytes()).await;
    for _ in 0..500 {
        if running.fake.reading() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(running.fake.reading(), 2);
    running.fake.revoke();
    let (_, event, data) = frame(&mut stream).await;
    assert_eq!((event.as_str(), &data["code"]), ("problem", &json!("unauthenticated")));
    let reply = poll.reply(false).await.unwrap();
    assert_eq!((reply.status, reply.code().as_deref()), (401, Some("unauthenticated")));
}
