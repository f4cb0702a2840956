//! The live events of one conversation, over the server's WebSocket.
//!
//! The server takes any message on this socket for a prompt and runs it. The one text frame that ever leaves here is
//! the key; after it the stream only listens, answers pings and sends its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rules::passage::Side;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error as SocketError};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::connection::connect;
use crate::route::{PathValue, RouteName};
use crate::transport::Transport;
use crate::{Client, ContractError, MAX_REPLY_BYTES, SessionId};

/// Silence after which a ping is sent, and again after which the stream counts as dead. The server pings every 20 s.
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// How long a ping of ours may take to leave.
const PING_LIMIT: Duration = Duration::from_secs(5);

/// What a stream gives.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    /// One frame: an event, or one of those that [`crate::wire::is_transient`] knows. The first, a whole state, says
    /// that the subscription stands: what is read over HTTP after it and the frames that follow leave no gap.
    Event(Value),
    /// The stream is over. Every later call gives the same.
    Closed(CloseReason),
}

/// Why a stream is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The server did not accept the key (4001).
    BadKey,
    /// The server has no such conversation (4004).
    UnknownConversation,
    /// The server has too many listeners to this conversation (1013).
    TooMany,
    /// A frame was larger than 8 MiB, or not a JSON object.
    BadFrame,
    /// Nothing came for a minute, not even an answer to a ping.
    Silent,
    /// Anything else: the server stopped, or the connection broke; with the close code, when there was one.
    Other(Option<u16>),
}

/// A live stream. Dropping it closes it.
pub struct EventStream {
    socket: WebSocketStream<TcpStream>,
    last_heard: Instant,
    max_silence: Duration,
    pinged: bool,
    closed: Option<CloseReason>,
    transport: Arc<Transport>,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EventStream").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl Client {
    /// Opens the live stream of a conversation and sends the key. Whether it is accepted shows in the first item.
    ///
    /// # Errors
    /// Any [`ContractError`] of a read.
    pub async fn open_stream(&self, id: &SessionId) -> Result<EventStream, ContractError> {
        let name = RouteName::EventsStream;
        let route = self.transport.route(name, false)?;
        let target = route.target(PathValue::Session(id), &Vec::new())?;
        let limit = self.transport.contract().timeout(route.timeout);
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_REPLY_BYTES))
            .max_frame_size(Some(MAX_REPLY_BYTES))
            .max_write_buffer_size(1 << 20);
        let open = async {
            let port = self.transport.port();
            let stream = connect(port)
                .await
                .map_err(|error| ContractError::Unreachable { route: name, detail: error.to_string() })?;
            let request = format!("ws://127.0.0.1:{port}{target}").into_client_request().map_err(|_error| {
                ContractError::OutsideContract { route: name, what: "its target is not a path".to_owned() }
            })?;
            self.transport.count(name);
            let (mut socket, _response) =
                client_async_with_config(request, stream, Some(config)).await.map_err(refused)?;
            let key = json!({"type": "auth", "session_api_key": self.transport.key().expose()});
            socket.send(Message::text(key.to_string())).await.map_err(refused)?;
            Ok(EventStream {
                socket,
                last_heard: Instant::now(),
                max_silence: MAX_SILENCE,
                pinged: false,
                closed: None,
                transport: Arc::clone(&self.transport),
            })
        };
        timeout(limit, open).await.unwrap_or_else(|_elapsed| {
            let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            Err(ContractError::Timeout { route: name, limit_ms, sent: true })
        })
    }
}

/// An opening that failed; says only what kind of failure, since a handshake's answer may hold anything.
fn refused(error: SocketError) -> ContractError {
    let route = RouteName::EventsStream;
    match error {
        SocketError::Http(response) if response.status().is_redirection() => {
            ContractError::Redirect { route, status: response.status().as_u16() }
        }
        SocketError::Http(response) => {
            ContractError::Status { route, status: response.status().as_u16(), detail: None }
        }
        SocketError::Io(error) => ContractError::ConnectionLost { route, detail: error.kind().to_string() },
        SocketError::ConnectionClosed
        | SocketError::AlreadyClosed
        | SocketError::Tls(_)
        | SocketError::Capacity(_)
        | SocketError::Protocol(_)
        | SocketError::WriteBufferFull(_)
        | SocketError::Utf8(_)
        | SocketError::AttackAttempt
        | SocketError::Url(_)
        | SocketError::HttpFormat(_) => ContractError::malformed(route, "it is not a WebSocket handshake"),
    }
}

impl EventStream {
    /// The next frame. May be dropped and called again without losing one.
    pub async fn next(&mut self) -> StreamItem {
        loop {
            if let Some(reason) = self.closed {
                return StreamItem::Closed(reason);
            }
            match timeout_at(self.last_heard + self.max_silence, self.socket.next()).await {
                Err(_elapsed) => self.probe().await,
                Ok(received) => {
                    self.last_heard = Instant::now();
                    self.pinged = false;
                    let Some(value) = self.take(received) else { continue };
                    match self.transport.pass(Side::After, RouteName::EventsStream) {
                        Ok(()) => return StreamItem::Event(value),
                        Err(_cut) => self.closed = Some(CloseReason::Other(None)),
                    }
                }
            }
        }
    }

    /// After a silence: asks once whether anybody is there.
    async fn probe(&mut self) {
        if self.pinged {
            self.closed = Some(CloseReason::Silent);
            return;
        }
        self.pinged = true;
        self.last_heard = Instant::now();
        if !matches!(timeout(PING_LIMIT, self.socket.send(Message::Ping(Bytes::new()))).await, Ok(Ok(()))) {
            self.closed = Some(CloseReason::Silent);
        }
    }

    fn take(&mut self, received: Option<Result<Message, SocketError>>) -> Option<Value> {
        let reason = match received {
            Some(Ok(Message::Text(text))) => match serde_json::from_str::<Value>(text.as_str()) {
                Ok(value) if value.is_object() => return Some(value),
                Ok(_) | Err(_) => CloseReason::BadFrame,
            },
            // The library answers a ping by itself.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return None,
            Some(Ok(Message::Close(frame))) => close_reason(frame),
            Some(Ok(Message::Binary(_) | Message::Frame(_))) => CloseReason::BadFrame,
            Some(Err(SocketError::Capacity(_) | SocketError::Utf8(_))) => CloseReason::BadFrame,
            Some(Err(_)) | None => CloseReason::Other(None),
        };
        self.closed = Some(reason);
        None
    }
}

fn close_reason(frame: Option<CloseFrame>) -> CloseReason {
    match frame.map(|frame| u16::from(frame.code)) {
        Some(4001) => CloseReason::BadKey,
        Some(4004) => CloseReason::UnknownConversation,
        Some(1013) => CloseReason::TooMany,
        code => CloseReason::Other(code),
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
