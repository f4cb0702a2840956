//! Events as a stream (`text/event-stream`). A page is read only when the last one was taken, so a slow reader holds
//! one page and never more.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use api_types::{Event, EventPage};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use rules::refusal::Refusal;
use tokio::sync::OwnedSemaphorePermit;

use super::events::wait;
use crate::backend::Backend;
use crate::convert;
use crate::reply::{self, Reply};
use crate::service::Service;

/// First frame: how long a client waits before it reconnects.
const OPENING: &str = "retry: 2000\n\n";
const KEEP_ALIVE: &str = ": keep-alive\n\n";

struct Stream<B> {
    service: Arc<Service<B>>,
    session_id: String,
    /// Asked about again at each page, so that a revoked token ends the stream.
    bearer: String,
    cursor: Option<String>,
    limit: usize,
    frames: VecDeque<String>,
    ended: bool,
    /// Held as long as the stream lives: it counts as a waiting poll.
    _place: OwnedSemaphorePermit,
}

/// Opens a stream; a session that cannot be read is refused before it begins.
pub(super) async fn open<B: Backend>(
    service: &Arc<Service<B>>,
    session_id: &str,
    bearer: &str,
    after: Option<String>,
    limit: usize,
) -> Result<Reply, Refusal> {
    let place = service.waiting_place()?;
    let first = service.backend.events(session_id, after.as_deref(), limit, 0).await?;
    let mut stream = Stream {
        service: Arc::clone(service),
        session_id: session_id.to_owned(),
        bearer: bearer.to_owned(),
        cursor: after,
        limit,
        frames: VecDeque::from([OPENING.to_owned()]),
        ended: false,
        _place: place,
    };
    stream.take(convert::event_page(first));
    let frames = futures_util::stream::unfold(stream, |mut stream| async move {
        let frame = stream.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(frame))), stream))
    });
    Ok(reply::finish(StatusCode::OK, "text/event-stream", StreamBody::new(frames).boxed_unsync()))
}

impl<B: Backend> Stream<B> {
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Some(frame);
            }
            if self.ended || self.service.is_stopping() {
                return None;
            }
            match self.page().await {
                Ok(page) => self.take(convert::event_page(page)),
                Err(refusal) => {
                    // The status is sent already: the last frame says why the stream ends.
                    self.frames.push_back(frame(None, "problem", &convert::reason(refusal)));
                    self.ended = true;
                }
            }
            if self.frames.is_empty() && !self.service.is_stopping() {
                return Some(KEEP_ALIVE.to_owned());
            }
        }
    }

    async fn page(&self) -> Result<session::view::EventPage, Refusal> {
        let wait_ms = u64::try_from(self.service.limits.stream_keep_alive.as_millis()).unwrap_or(u64::MAX);
        wait(&self.service, &self.session_id, &self.bearer, self.cursor.as_deref(), self.limit, wait_ms).await
    }

    fn take(&mut self, page: EventPage) {
        if let Some(resync) = &page.resync {
            self.frames.push_back(frame(None, "resync", resync));
        }
        self.frames.extend(page.events.iter().map(event_frame));
        self.cursor = Some(page.next_cursor);
    }
}

fn event_frame(event: &Event) -> String {
    frame(Some(&event.cursor), event.kind.as_str(), event)
}

/// JSON holds no line break, so `data` is one line.
fn frame<T: serde::Serialize>(id: Option<&str>, name: &str, data: &T) -> String {
    let data = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    let mut text = String::with_capacity(data.len() + 128);
    if let Some(id) = id {
        text.push_str("id: ");
        text.extend(id.chars().filter(|letter| !letter.is_control()));
        text.push('\n');
    }
    text.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_frame_is_one_line_a_field() {
        assert_eq!(
            frame(Some("c\n1"), "status", &json!({"text": "a\nb\r\n\ndata: x"})),
            "id: c1\nevent: status\ndata: {\"text\":\"a\\nb\\r\\n\\ndata: x\"}\n\n"
        );
        assert_eq!(frame(None, "resync", &json!({})), "event: resync\ndata: {}\n\n");
    }
}
