//! Peers, bounds, timeouts and shutdown, on a real socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/mod.rs"]
#[allow(dead_code, reason = "shared by several test programs")]
mod support;

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use api::{Limits, PeerVerdict};
use rules::peer::PeerRefusal;
use serde_json::json;
use support::{GENERATION, OWNER, Request, Running, SESSION};

fn events(query: &str) -> String {
    format!("/v1/sessions/{SESSION}/events{query}")
}

fn actions() -> String {
    format!("/v1/sessions/{SESSION}/actions")
}

fn prompt(text: &str) -> String {
    let input = json!({ "text": text });
    json!({"operation_id": "session.prompt.send", "input": input, "capability_generation": GENERATION,
        "client_action_id": "a1"})
    .to_string()
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

#[tokio::test]
async fn a_refused_peer_gets_not_one_byte() {
    let running = Running::start_with(Limits::default(), |_: BorrowedFd<'_>| PeerVerdict::Refuse {
        reason: PeerRefusal::Descendant,
        detail: "descends from a server".into(),
    });
    let mut connection = running.connect().await;
    connection.write(&Request::get("/v1/healthz").token(None).bytes()).await;
    assert_eq!(connection.more().await, 0);
    let report = running.stop().await;
    assert_eq!((report.refused_peers, report.served), (1, 0));
}

#[tokio::test]
async fn a_peer_check_that_fails_refuses() {
    let running = Running::start_with(Limits::default(), |_: BorrowedFd<'_>| -> PeerVerdict { panic!("unreadable") });
    let mut connection = running.connect().await;
    assert_eq!(connection.more().await, 0);
    assert_eq!(running.stop().await.refused_peers, 1);
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let running = Running::start(Limits { connections: 2, ..Limits::default() });
    let mut first = running.connect().await;
    let mut second = running.connect().await;
    for connection in [&mut first, &mut second] {
        connection.write(&Request::get("/v1/healthz").bytes()).await;
        assert_eq!(connection.reply(false).await.unwrap().status, 200);
    }
    let reply = running.send(&Request::get("/v1/healthz")).await;
    assert_eq!((reply.status, reply.code().as_deref()), (503, Some("too_many_connections")));
    assert_eq!(reply.header("retry-after"), Some("2"));
    assert_eq!(reply.header("connection"), Some("close"));
    assert_eq!(reply.json()["retryable"], true);
    drop(first);
    let mut served = 0;
    for _ in 0..100 {
        served = running.send(&Request::get("/v1/healthz")).await.status;
        if served == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(served, 200);
}

#[tokio::test]
async fn one_waiting_poll_too_many_is_told_so_and_a_read_that_does_not_wait_is_served() {
    let running = Running::start(Limits { waiting_polls: 2, ..Limits::default() });
    let waiting = events("?wait_ms=60000");
    let mut page = running.connect().await;
    page.write(&Request::get(&waiting).bytes()).await;
    let plain = events("");
    let mut stream = running.connect().await;
    stream.write(&Request::get(&plain).headers(&[("Accept", "text/event-stream")]).bytes()).await;
    stream.until("retry: 2000\n\n").await.unwrap();
    eventually("two reads wait", || running.fake.reading() == 2).await;
    let reply = running.send(&Request::get(&waiting)).await;
    assert_eq!((reply.status, reply.code().as_deref()), (503, Some("too_many_waiting")));
    assert!(reply.header("retry-after").is_some());
    assert_eq!(running.send(&Request::get(&plain)).await.status, 200);
    drop((page, stream));
    eventually("clients that hung up wait no more", || running.fake.reading() == 0).await;
}

#[tokio::test]
async fn a_poll_answers_when_an_event_comes_and_when_its_time_is_over() {
    let running = Running::start(Limits::default());
    let started = Instant::now();
    let empty = running.send(&Request::get(&events("?wait_ms=80"))).await.json();
    assert!(started.elapsed() >= Duration::from_millis(80));
    assert_eq!(empty, json!({"events": [], "next_cursor": "c0", "resync": null}));
    let target = events("?after=c0&wait_ms=60000");
    let mut connection = running.connect().await;
    connection.write(&Request::get(&target).bytes()).await;
    eventually("the read waits", || running.fake.reading() == 1).await;
    running.fake.publish(json!({"text": "hello"}));
    let page = connection.reply(false).await.unwrap().json();
    assert_eq!(page["events"][0]["seq"], 1);
    assert_eq!(page["next_cursor"], "c1");
}

#[tokio::test]
async fn a_client_that_hangs_up_cancels_nothing() {
    let running = Running::start(Limits::default());
    let mut connection = running.connect().await;
    connection.write(&Request::post(&actions(), &prompt("slow")).bytes()).await;
    eventually("the action began", || running.fake.calls().len() == 1).await;
    drop(connection);
    eventually("the action ended", || running.fake.calls().last().is_some_and(|call| call == "act finished")).await;
}

#[tokio::test]
async fn mutations_under_way_are_bounded() {
    let running = Running::start(Limits { mutations: 1, ..Limits::default() });
    let mut connection = running.connect().await;
    connection.write(&Request::post(&actions(), &prompt("slow")).bytes()).await;
    eventually("the action began", || running.fake.calls().len() == 1).await;
    let reply = running.send(&Request::post(&actions(), &prompt("x"))).await;
    assert_eq!((reply.status, reply.code().as_deref()), (503, Some("too_many_connections")));
    assert_eq!(connection.reply(false).await.unwrap().status, 200);
}

#[tokio::test]
async fn slow_heads_idle_connections_and_slow_bodies_end() {
    let limits = Limits {
        head_timeout: Duration::from_millis(150),
        body_timeout: Duration::from_millis(150),
        ..Limits::default()
    };
    let running = Running::start(limits);
    let mut silent = running.connect().await;
    assert_eq!(silent.more().await, 0);
    let mut slow = running.connect().await;
    slow.write(b"GET /v1/healthz HTTP/1.1\r\nX-").await;
    assert_eq!(slow.reply(false).await.map(|reply| reply.status), None);
    let mut idle = running.connect().await;
    idle.write(&Request::get("/v1/healthz").bytes()).await;
    assert_eq!(idle.reply(false).await.unwrap().status, 200);
    assert_eq!(idle.more().await, 0);
    let mut body = running.connect().await;
    let head = format!(
        "POST {} HTTP/1.1\r\nAuthorization: Bearer {OWNER}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{",
        actions()
    );
    body.write(head.as_bytes()).await;
    let reply = body.reply(false).await.unwrap();
    assert_eq!((reply.status, reply.code().as_deref()), (408, Some("request_timeout")));
    assert_eq!(running.fake.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn a_body_without_a_length_is_bounded_as_well() {
    let running = Running::start(Limits::default());
    let mut connection = running.connect().await;
    let head = format!(
        "POST {} HTTP/1.1\r\nAuthorization: Bearer {OWNER}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        actions()
    );
    connection.write(head.as_bytes()).await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..17 {
        connection.write(chunk.as_bytes()).await;
    }
    let reply = connection.reply(false).await.unwrap();
    assert_eq!((reply.status, reply.code().as_deref()), (413, Some("body_too_large")));
}

#[tokio::test]
async fn a_chunked_body_is_read() {
    let running = Running::start(Limits::default());
    let mut connection = running.connect().await;
    let body = prompt("x");
    let text = format!(
        "POST {} HTTP/1.1\r\nAuthorization: Bearer {OWNER}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        actions(),
        body.len()
    );
    connection.write(text.as_bytes()).await;
    assert_eq!(connection.reply(false).await.unwrap().status, 200);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let running = Running::start(Limits::default());
    let mut connection = running.connect().await;
    let mut bytes = Request::get("/v1/healthz").bytes();
    bytes.extend(Request::get("/v1/nothing").bytes());
    connection.write(&bytes).await;
    assert_eq!(connection.reply(false).await.unwrap().status, 200);
    assert_eq!(connection.reply(false).await.unwrap().status, 404);
}

#[tokio::test]
async fn shutdown_lets_actions_finish_and_ends_polls_and_streams() {
    let mut running = Running::start(Limits::default());
    let mut acting = running.connect().await;
    acting.write(&Request::post(&actions(), &prompt("slow")).bytes()).await;
    let mut polling = running.connect().await;
    polling.write(&Request::get(&events("?wait_ms=60000")).bytes()).await;
    let mut streaming = running.connect().await;
    streaming.write(&Request::get(&events("")).headers(&[("Accept", "text/event-stream")]).bytes()).await;
    streaming.until("retry: 2000\n\n").await.unwrap();
    let mut idle = running.connect().await;
    idle.write(&Request::get("/v1/healthz").bytes()).await;
    assert_eq!(idle.reply(false).await.unwrap().status, 200);
    eventually("both read", || running.fake.reading() == 2).await;
    let started = Instant::now();
    running.begin_stop();
    assert_eq!(acting.reply(false).await.unwrap().status, 200);
    assert_eq!(polling.reply(false).await.unwrap().status, 200);
    assert!(streaming.until("0\r\n\r\n").await.is_some(), "the stream ends as a whole body");
    assert_eq!(idle.more().await, 0);
    let report = running.stop().await;
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!((report.cut_off, report.mutations_left, report.served), (0, 0, 4));
}

#[tokio::test]
async fn shutdown_waits_no_longer_than_its_deadline() {
    let running = Running::start(Limits { drain: Duration::from_millis(50), ..Limits::default() });
    let mut acting = running.connect().await;
    acting.write(&Request::post(&actions(), &prompt("slow")).bytes()).await;
    eventually("the action began", || running.fake.calls().len() == 1).await;
    let fake = running.fake.clone();
    let report = running.stop().await;
    assert_eq!((report.cut_off, report.mutations_left), (1, 1));
    eventually("it was not cancelled", || fake.calls().last().is_some_and(|call| call == "act finished")).await;
}
