//! Keeping up with a conversation: the WebSocket says that something happened, the log says what.

use std::sync::{Arc, Weak};
use std::time::Duration;

use agent_contract::{CloseReason, StreamItem};

use crate::server::VerifiedServer;
use crate::session::Session;

/// Frames that come close together cause one read.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// While a turn goes on, the log is read at least this often, whatever the stream says.
const BUSY_POLL: Duration = Duration::from_secs(1);
/// While nothing goes on.
const IDLE_POLL: Duration = Duration::from_secs(60);
/// First and longest wait before the stream is opened again.
const RECONNECT_MIN: Duration = Duration::from_millis(200);
const RECONNECT_MAX: Duration = Duration::from_secs(10);

/// Follows a session on one server until the session closes or the server is gone.
pub(crate) fn follow(session: &Arc<Session>, server: &Arc<VerifiedServer>) {
    tokio::spawn(listen(Arc::downgrade(session), Arc::clone(server)));
    tokio::spawn(read_on(Arc::downgrade(session), Arc::clone(server)));
}

async fn listen(session: Weak<Session>, server: Arc<VerifiedServer>) {
    let mut wait = RECONNECT_MIN;
    loop {
        let Some(id) = session.upgrade().filter(|session| session.follows(&server)).map(|session| session.id().clone())
        else {
            return;
        };
        if let Ok(mut stream) = server.client().open_stream(&id).await {
            loop {
                let item = tokio::select! {
                    item = stream.next() => item,
                    () = server.gone() => return,
                };
                let Some(session) = session.upgrade().filter(|session| session.follows(&server)) else { return };
                match item {
                    StreamItem::Event(frame) => {
                        wait = RECONNECT_MIN;
                        // A delta says nothing that the log will not say; a full state says that a turn may be over.
                        if frame.get("kind").and_then(serde_json::Value::as_str) != Some("StreamingDeltaEvent") {
                            session.mark_stale();
                        }
                    }
                    StreamItem::Closed(CloseReason::BadKey | CloseReason::UnknownConversation) => return,
                    StreamItem::Closed(
                        CloseReason::TooMany | CloseReason::BadFrame | CloseReason::Silent | CloseReason::Other(_),
                    ) => break,
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = server.gone() => return,
        }
        wait = (wait * 2).min(RECONNECT_MAX);
    }
}

async fn read_on(session: Weak<Session>, server: Arc<VerifiedServer>) {
    loop {
        let Some(current) = session.upgrade().filter(|session| session.follows(&server)) else { return };
        let limit = if current.is_busy() { BUSY_POLL } else { IDLE_POLL };
        let stale = current.stale_signal();
        drop(current);
        tokio::select! {
            () = stale.notified() => tokio::time::sleep(DEBOUNCE).await,
            () = tokio::time::sleep(limit) => {}
            () = server.gone() => {}
        }
        let Some(current) = session.upgrade().filter(|session| session.follows(&server)) else { return };
        if server.is_gone() {
            current.note_server_gone(&server).await;
            return;
        }
        current.take_stale();
        // A failed read is tried again at the next signal or poll; operations read for themselves.
        if let Err(refusal) = current.pull(&server).await {
            tracing::debug!(session = current.id().as_str(), %refusal, "the log could not be read");
        }
    }
}
