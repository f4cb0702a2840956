use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::*;
use crate::testing::{KEY, contract, key, session};

/// A WebSocket server that sends these frames after the first one it gets, then waits for the client to leave. Gives
/// back every frame that the client sent.
async fn server(frames: Vec<Message>) -> (Client, JoinHandle<Vec<Message>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(contract(2_000), listener.local_addr().unwrap().port(), key());
    let task = tokio::spawn(async move {
        let (stream, _peer) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        let mut received = vec![socket.next().await.unwrap().unwrap()];
        for frame in frames {
            socket.send(frame).await.unwrap();
        }
        while let Some(Ok(frame)) = socket.next().await {
            received.push(frame);
        }
        received
    });
    (client, task)
}

fn close(code: u16) -> Message {
    Message::Close(Some(CloseFrame { code: CloseCode::from(code), reason: KEY.into() }))
}

#[tokio::test]
async fn the_key_is_the_only_text_that_leaves() {
    let event = json!({"kind": "MessageEvent", "id": "e"});
    let frames = vec![
        Message::text(json!({"kind": "ConversationStateUpdateEvent", "key": "full_state"}).to_string()),
        Message::Ping(Bytes::from_static(b"there?")),
        Message::text(event.to_string()),
    ];
    let (client, task) = server(frames).await;
    let mut stream = client.open_stream(&session()).await.unwrap();
    let StreamItem::Event(first) = stream.next().await else { panic!("no first frame") };
    assert!(crate::wire::is_transient(&first));
    assert_eq!(stream.next().await, StreamItem::Event(event));
    // Reading on is what answers the ping.
    assert!(timeout(Duration::from_millis(100), stream.next()).await.is_err());
    drop(stream);
    let received = task.await.unwrap();
    let auth = json!({"type": "auth", "session_api_key": KEY}).to_string();
    assert_eq!(received, [Message::text(auth), Message::Pong(Bytes::from_static(b"there?"))]);
    assert_eq!(client.requests_sent(), [("events_stream", 1)].into());
}

#[tokio::test]
async fn each_close_has_its_reason_and_stays() {
    let cases = [
        (close(4001), CloseReason::BadKey),
        (close(4004), CloseReason::UnknownConversation),
        (close(1013), CloseReason::TooMany),
        (close(1000), CloseReason::Other(Some(1000))),
        (close(1012), CloseReason::Other(Some(1012))),
        (Message::Close(None), CloseReason::Other(None)),
    ];
    for (frame, reason) in cases {
        let (client, _task) = server(vec![frame]).await;
        let mut stream = client.open_stream(&session()).await.unwrap();
        assert_eq!(stream.next().await, StreamItem::Closed(reason));
        assert_eq!(stream.next().await, StreamItem::Closed(reason));
        assert!(!format!("{stream:?}").contains(KEY));
    }
}

#[tokio::test]
async fn a_frame_that_is_not_an_object_or_too_large_ends_the_stream() {
    let large = format!("{{\"a\":\"{}\"}}", "a".repeat(MAX_REPLY_BYTES));
    let frames = [
        Message::text("[]"),
        Message::text("{"),
        Message::text("{\"a\":NaN}"),
        Message::text("7"),
        Message::Binary(Bytes::from_static(b"{}")),
        Message::text(large),
    ];
    for frame in frames {
        let (client, _task) = server(vec![frame]).await;
        let mut stream = client.open_stream(&session()).await.unwrap();
        assert_eq!(stream.next().await, StreamItem::Closed(CloseReason::BadFrame));
    }
    let just = json!({"a": "a".repeat(MAX_REPLY_BYTES - 8)});
    let (client, _task) = server(vec![Message::text(just.to_string())]).await;
    assert_eq!(client.open_stream(&session()).await.unwrap().next().await, StreamItem::Event(just));
}

#[tokio::test]
async fn a_silent_peer_is_asked_once_and_then_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(contract(2_000), listener.local_addr().unwrap().port(), key());
    // Accepts, and never reads again.
    let task = tokio::spawn(async move {
        let (stream, _peer) = listener.accept().await.unwrap();
        let socket = accept_async(stream).await.unwrap();
        std::future::pending::<()>().await;
        drop(socket);
    });
    let mut stream = client.open_stream(&session()).await.unwrap();
    stream.max_silence = Duration::from_millis(50);
    let item = timeout(Duration::from_secs(5), stream.next()).await.unwrap();
    assert_eq!(item, StreamItem::Closed(CloseReason::Silent));
    task.abort();
}

#[tokio::test]
async fn a_quiet_peer_that_answers_pings_is_kept() {
    let (client, task) = server(Vec::new()).await;
    let mut stream = client.open_stream(&session()).await.unwrap();
    stream.max_silence = Duration::from_millis(50);
    assert!(timeout(Duration::from_millis(400), stream.next()).await.is_err());
    drop(stream);
    let received = task.await.unwrap();
    assert!(received.iter().filter(|frame| matches!(frame, Message::Ping(_))).count() >= 3);
    assert_eq!(received.iter().filter(|frame| frame.is_text()).count(), 1);
}

#[tokio::test]
async fn a_broken_connection_is_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(contract(2_000), listener.local_addr().unwrap().port(), key());
    let task = tokio::spawn(async move {
        let (stream, _peer) = listener.accept().await.unwrap();
        drop(accept_async(stream).await.unwrap());
    });
    let mut stream = client.open_stream(&session()).await.unwrap();
    assert_eq!(stream.next().await, StreamItem::Closed(CloseReason::Other(None)));
    task.await.unwrap();
}
