//! The WebSocket stream of a conversation's events.

use super::conversation::Conversation;
use super::cut::Budget;
use super::deform::{Deformer, stranger};
use super::log::{STATE_UPDATE, naive_time};
use super::serve::{Reply, accepts};
use super::server::Server;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use uuid::Uuid;

/// How long the first frame, which carries the key, may take.
const AUTH_TIMEOUT: Duration = Duration::from_secs(10);

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// Accepts the upgrade and serves the stream beside the reply.
pub(super) fn upgrade(
    request: Request<Incoming>,
    server: Arc<Server>,
    subject: String,
    query: String,
    budget: Budget,
) -> Reply {
    let key = request.headers().get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    let Some(accept) = key.and_then(|key| HeaderValue::from_str(&key).ok()) else {
        let mut reply = Response::new(Full::new(Bytes::from_static(b"an upgrade is required")));
        *reply.status_mut() = StatusCode::UPGRADE_REQUIRED;
        return reply;
    };
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
            follow(socket, &server, &subject, &query, &budget).await;
        }
    });
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    reply.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    reply.headers_mut().insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    reply
}

async fn follow(mut socket: Socket, server: &Server, subject: &str, query: &str, budget: &Budget) {
    let first = tokio::time::timeout(AUTH_TIMEOUT, socket.next()).await;
    let key = match first {
        Ok(Some(Ok(Message::Text(text)))) => {
            let frame: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
            frame["session_api_key"].as_str().filter(|_| frame["type"] == "auth").map(str::to_owned)
        }
        _ => None,
    };
    if !accepts(server, server.plan().keys, key.as_deref()) {
        return close(socket, 4001, "Authentication failed").await;
    }
    let id = Uuid::parse_str(subject).map(|id| id.to_string()).unwrap_or_default();
    let Some(conversation) = server.conversation(&id) else {
        return close(socket, 4004, "Conversation not found").await;
    };
    if let Some(code) = server.plan().stream.close_code {
        return close(socket, code, "as planned").await;
    }
    drop(feed(&mut socket, server, &conversation, query, budget).await);
}

async fn feed(
    socket: &mut Socket,
    server: &Server,
    conversation: &Conversation,
    query: &str,
    budget: &Budget,
) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    let mut frames = conversation.subscribe();
    let state = json!({"id": Uuid::new_v4().to_string(), "timestamp": naive_time(), "source": "environment",
                       "key": "full_state", "value": server.info(conversation), "kind": STATE_UPDATE});
    socket.send(Message::text(state.to_string())).await?;
    for event in resent(conversation, query) {
        socket.send(Message::text(event.to_string())).await?;
    }
    let plan = server.plan().stream;
    for _ in 0..plan.strangers_on_open {
        socket.feed(Message::text(stranger().to_string())).await?;
    }
    socket.flush().await?;
    if plan.oversize_on_open_bytes > 0 {
        let length = usize::try_from(plan.oversize_on_open_bytes).unwrap_or(0);
        socket.send(Message::text(" ".repeat(length))).await?;
    }
    let mut deformer = Deformer::new(server.streams.fetch_add(1, Ordering::Relaxed));
    conversation.append_updates(plan.appends_on_open);
    loop {
        tokio::select! {
            frame = frames.recv() => match frame {
                Ok(event) => {
                    let plan = server.plan().stream;
                    for event in deformer.deform(event, &plan) {
                        if plan.delay_ms > 0 {
                            // Never for nothing: the timer takes a whole millisecond for none.
                            tokio::time::sleep(Duration::from_millis(plan.delay_ms)).await;
                        }
                        if let Some(bytes) = deformer.breaks_at(&plan) {
                            budget.cut_after(bytes);
                        }
                        socket.send(Message::text(event.to_string())).await?;
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Ok(()),
            },
            heard = socket.next() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
                Some(Ok(_)) => {}
            },
        }
    }
}

/// What is sent again on connecting: everything, what is not older than a time, or nothing.
fn resent(conversation: &Conversation, query: &str) -> Vec<Value> {
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let since = value("after_timestamp").unwrap_or_default().replace("%3A", ":");
    let record = conversation.record();
    let events = record.log.events().iter();
    match value("resend_mode") {
        Some("all") => events.cloned().collect(),
        Some("since") if !since.is_empty() => {
            events.filter(|event| event["timestamp"].as_str().is_some_and(|at| at >= since.as_str())).cloned().collect()
        }
        _ => Vec::new(),
    }
}

async fn close(mut socket: Socket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code: code.into(), reason: reason.into() };
    // The peer may be gone already.
    socket.close(Some(frame)).await.ok();
    while let Some(Ok(_)) = socket.next().await {}
}
