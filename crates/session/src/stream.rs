//! Keeping up with a conversation: the WebSocket brings events for readers at once, the log says what is true.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use agent_contract::wire::is_transient;
use agent_contract::{CloseReason, EventStream, StreamItem, WireEvent};
use rules::lifecycle::jittered_ms;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::events;
use crate::frames::Link;
use crate::server::VerifiedServer;
use crate::session::Session;

/// Frames that come close together cause one read. While reads take long, so do the pauses between them.
const DEBOUNCE: Duration = Duration::from_millis(20);
const MAX_DEBOUNCE: Duration = Duration::from_secs(1);
/// While a turn goes on, or the journal is ahead of the log, the log is read at least this often.
const BUSY_POLL: Duration = Duration::from_secs(1);
/// While the stream is not open.
const DEAF_POLL: Duration = Duration::from_secs(5);
/// While nothing goes on.
const IDLE_POLL: Duration = Duration::from_secs(60);
/// How often it is looked whether a session that rests, or has nothing to journal, is still followed.
const FOLLOWED_LOOK: Duration = Duration::from_secs(600);
/// When a session could not rest, it is looked again after this at the earliest.
const MIN_REST_LOOK: Duration = Duration::from_secs(1);
/// First and longest wait before the stream is opened again.
const RECONNECT_MIN: Duration = Duration::from_millis(200);
const RECONNECT_MAX: Duration = Duration::from_secs(10);
/// A stream that stood this long was a good one.
const STOOD: Duration = Duration::from_secs(10);

/// Follows a session on one server until the session closes or the server is gone.
pub(crate) fn follow(session: &Arc<Session>, server: &Arc<VerifiedServer>) {
    session.frames().set_link(Link::Connecting);
    tokio::spawn(listen(Arc::downgrade(session), Arc::clone(server)));
    tokio::spawn(journal(Arc::downgrade(session), Arc::clone(server)));
    tokio::spawn(read_on(Arc::downgrade(session), Arc::clone(server)));
}

/// The session, while it is open and on this server.
fn following(session: &Weak<Session>, server: &Arc<VerifiedServer>) -> Option<Arc<Session>> {
    session.upgrade().filter(|session| session.follows(server) && !server.is_gone())
}

async fn listen(session: Weak<Session>, server: Arc<VerifiedServer>) {
    let Some((mut changes, watchers)) = session.upgrade().map(|it| (it.watch_changes(), it.shared_watchers())) else {
        return;
    };
    let mut wait = RECONNECT_MIN;
    loop {
        let Some(id) = following(&session, &server).map(|session| session.id().clone()) else { return };
        let opened = Instant::now();
        let heard = match server.client().open_stream(&id).await {
            Ok(stream) => hear(&session, &server, stream, &mut changes).await,
            Err(_) => Heard::End(CloseReason::Other(None)),
        };
        let reason = match heard {
            Heard::End(reason) => reason,
            Heard::Enough => {
                tracing::debug!(session = id.as_str(), "the session rests");
                // The stream is closed by now. What was said while it was, the last read before the rest tells.
                if let Some(stale) = session.upgrade().map(|session| session.stale_signal()) {
                    stale.notify_one();
                }
                tokio::select! {
                    () = watchers.woken() => continue,
                    () = server.gone() => return,
                }
            }
        };
        let Some(current) = following(&session, &server) else { return };
        match reason {
            CloseReason::BadKey | CloseReason::UnknownConversation => {
                let link = Link::Refused(reason);
                current.frames().set_link(link);
                let payload = json!({"event": "stream_refused", "reason": link_word(link)});
                if let Err(refusal) = current.note_event("lifecycle", payload).await {
                    tracing::warn!(session = id.as_str(), %refusal, "the stream's end could not be journaled");
                }
                return;
            }
            CloseReason::TooMany | CloseReason::BadFrame | CloseReason::Silent | CloseReason::Other(_) => {
                current.frames().set_link(Link::Connecting);
                current.mark_stale();
            }
        }
        drop(current);
        if opened.elapsed() >= STOOD {
            wait = RECONNECT_MIN;
        }
        tokio::select! {
            () = tokio::time::sleep(jittered(wait, uuid::Uuid::new_v4().as_u128())) => {}
            () = server.gone() => return,
        }
        wait = (wait * 2).min(RECONNECT_MAX);
    }
}

/// Why a stream is heard no more.
enum Heard {
    /// It ended, or is not wanted any more.
    End(CloseReason),
    /// The session rests.
    Enough,
}

/// Hears a stream to its end, or until nobody follows it or the session rests.
async fn hear(
    session: &Weak<Session>,
    server: &Arc<VerifiedServer>,
    mut stream: EventStream,
    changes: &mut watch::Receiver<u64>,
) -> Heard {
    let over = Heard::End(CloseReason::Other(None));
    let Some(mut rests_in) = session.upgrade().map(|session| session.rests_after()) else { return over };
    let mut look_at = tokio::time::Instant::now() + rests_in;
    loop {
        let item = tokio::select! {
            item = stream.next() => item,
            () = tokio::time::sleep_until(look_at) => {
                let Some(current) = following(session, server) else { return over };
                if current.frames().link() == Link::Open && current.may_rest() && current.begin_rest() {
                    return Heard::Enough;
                }
                rests_in = current.rests_after().saturating_sub(current.watchers().unwatched()).max(MIN_REST_LOOK);
                look_at = tokio::time::Instant::now() + rests_in;
                continue;
            }
            () = server.gone() => StreamItem::Closed(CloseReason::Other(None)),
            // A session that was closed announces it.
            changed = changes.changed() => match changed {
                Ok(()) if following(session, server).is_some() => continue,
                Ok(()) | Err(_) => StreamItem::Closed(CloseReason::Other(None)),
            },
        };
        let frame = match item {
            StreamItem::Event(frame) => frame,
            StreamItem::Closed(reason) => return Heard::End(reason),
        };
        let Some(current) = following(session, server) else { return over };
        if current.frames().link() != Link::Open {
            // The first frame says that the subscription stands: a read that begins now leaves no gap to what follows.
            current.frames().set_link(Link::Open);
        }
        take_in(&current, server, frame);
    }
}

fn take_in(session: &Session, server: &VerifiedServer, frame: Value) {
    // A delta says nothing that the log will not say; a whole state says that a turn may be over.
    if frame.get("kind").and_then(Value::as_str) == Some("StreamingDeltaEvent") {
        return;
    }
    if !is_transient(&frame) {
        match WireEvent::parse(frame) {
            Ok(event) => {
                let described = events::describe(&event.log.event_id, &event.at, &event.raw, server.redactor());
                session.frames().push(described.into_record(), Instant::now());
            }
            Err(_) => session.frames().note_gap(),
        }
    }
    session.mark_stale();
}

/// How the stream stands, as the snapshot tells it.
pub(crate) fn link_word(link: Link) -> &'static str {
    match link {
        Link::Connecting => "connecting",
        Link::Open => "open",
        Link::Resting => "resting",
        Link::Refused(CloseReason::BadKey) => "bad_key",
        Link::Refused(CloseReason::UnknownConversation) => "unknown_conversation",
        Link::Refused(CloseReason::TooMany | CloseReason::BadFrame | CloseReason::Silent | CloseReason::Other(_)) => {
            "refused"
        }
    }
}

/// Between half of the wait and the whole of it, so that many sessions do not come at once.
fn jittered(wait: Duration, random: u128) -> Duration {
    let whole_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(jittered_ms(whole_ms, u16::try_from(random % 1_001).unwrap_or(0)))
}

/// Journals what was heard.
async fn journal(session: Weak<Session>, server: Arc<VerifiedServer>) {
    let Some(frames) = session.upgrade().map(|session| session.shared_frames()) else { return };
    loop {
        tokio::select! {
            () = frames.ready() => {}
            () = tokio::time::sleep(FOLLOWED_LOOK) => {}
            () = server.gone() => return,
        }
        let Some(current) = following(&session, &server) else { return };
        loop {
            let batch = frames.take();
            if batch.is_empty() {
                break;
            }
            if let Err(refusal) = current.take_streamed(batch).await {
                tracing::warn!(session = current.id().as_str(), %refusal, "events could not be journaled");
                frames.note_gap();
                current.mark_stale();
            }
        }
    }
}

async fn read_on(session: Weak<Session>, server: Arc<VerifiedServer>) {
    let mut pause = DEBOUNCE;
    loop {
        let Some(current) = session.upgrade().filter(|session| session.follows(&server)) else { return };
        let limit = if current.is_busy() || current.frames().is_ahead() {
            BUSY_POLL
        } else {
            match current.frames().link() {
                Link::Open => IDLE_POLL,
                Link::Connecting | Link::Refused(_) => DEAF_POLL,
                Link::Resting => FOLLOWED_LOOK,
            }
        };
        let stale = current.stale_signal();
        drop(current);
        tokio::select! {
            () = stale.notified() => tokio::time::sleep(pause).await,
            () = tokio::time::sleep(limit) => {}
            () = server.gone() => {}
        }
        let Some(current) = session.upgrade().filter(|session| session.follows(&server)) else { return };
        if server.is_gone() {
            current.note_server_gone(&server).await;
            return;
        }
        current.take_stale();
        let began = Instant::now();
        // A failed read is tried again at the next signal or poll; operations read for themselves.
        let read = if current.frames().link() == Link::Resting {
            current.read_at_rest(&server).await
        } else {
            current.pull(&server).await
        };
        if let Err(refusal) = read {
            tracing::debug!(session = current.id().as_str(), %refusal, "the log could not be read");
        }
        pause = began.elapsed().clamp(DEBOUNCE, MAX_DEBOUNCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_jittered_within_its_bounds() {
        let wait = Duration::from_secs(10);
        let waits: Vec<Duration> = (0..2_002).map(|random| jittered(wait, random)).collect();
        assert_eq!(waits.iter().min(), Some(&(wait / 2)));
        assert_eq!(waits.iter().max(), Some(&wait));
        assert!(waits[1..1_001].windows(2).all(|pair| pair[0] != pair[1]));
    }
}
