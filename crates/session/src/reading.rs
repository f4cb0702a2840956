//! Readers of events: pages, waiting, and starting over.

use std::sync::Arc;
use std::time::Duration;

use rules::refusal::Refusal;
use serde_json::Value;
use store::{EventRecord, Journal, StoreError};

use crate::cursor::{Cursor, Given};
use crate::session::Session;
use crate::supervisor::Supervisor;
use crate::view::{EventPage, EventView, Resync};

impl Supervisor {
    /// Events after a cursor: at once when there are any, else after at most `wait_ms`.
    ///
    /// # Errors
    /// `session_not_found`, `cursor_invalid`, `store_failed`.
    pub async fn events(
        &self,
        session_id: &str,
        after: Option<&str>,
        limit: usize,
        wait_ms: u64,
    ) -> Result<EventPage, Refusal> {
        let session = self.find(session_id)?;
        let given = after.map(|text| Cursor::decode(session_id, text)).transpose()?;
        let mut changes = session.watch_changes();
        let deadline = tokio::time::Instant::now() + Duration::from_millis(wait_ms);
        loop {
            let page = self.page(&session, given, limit).await?;
            if !page.events.is_empty() || page.resync.is_some() {
                return Ok(page);
            }
            match tokio::time::timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Ok(page),
            }
        }
    }

    async fn page(&self, session: &Arc<Session>, given: Option<Given>, limit: usize) -> Result<EventPage, Refusal> {
        let id = session.id().as_str().to_owned();
        let (head, read) = self
            .shared()
            .records
            .journal(move |journal| {
                let head = journal.head(&id)?;
                let first = Cursor { epoch: head.epoch, seq: head.first_seq.saturating_sub(1) };
                let (from, reason) = match given {
                    None => (first, None),
                    Some(Given::Foreign) => (first, Some("foreign_cursor")),
                    Some(Given::Own(cursor)) if cursor.epoch != head.epoch => (first, Some("epoch_changed")),
                    Some(Given::Own(cursor)) if cursor.seq > head.seq => (first, Some("cursor_ahead")),
                    Some(Given::Own(cursor)) if cursor.seq < first.seq => (first, Some("events_expired")),
                    Some(Given::Own(cursor)) => (cursor, None),
                };
                read_from(journal, &id, from, limit).map(|events| (first, (events, from, reason)))
            })
            .await?;
        let (events, from, reason) = read;
        let session_id = session.id().as_str();
        let last = events.last().map_or(from, |event| Cursor { epoch: event.epoch, seq: event.seq });
        Ok(EventPage {
            events: events.into_iter().map(view).collect(),
            next_cursor: last.encode(session_id),
            resync: reason.map(|reason| Resync { reason: reason.to_owned(), first_cursor: head.encode(session_id) }),
        })
    }

    /// Where the event stream of a session stands.
    pub(crate) async fn head_cursor(&self, session: &Session) -> Result<String, Refusal> {
        let id = session.id().as_str().to_owned();
        let head = self.shared().records.journal(move |journal| journal.head(&id)).await?;
        Ok(Cursor { epoch: head.epoch, seq: head.seq }.encode(session.id().as_str()))
    }
}

fn read_from(journal: &Journal, id: &str, from: Cursor, limit: usize) -> Result<Vec<EventRecord>, StoreError> {
    journal.read(id, from.epoch, from.seq, limit)
}

fn view(record: EventRecord) -> EventView {
    EventView {
        cursor: Cursor { epoch: record.epoch, seq: record.seq }.encode(&record.session_id),
        seq: record.seq,
        session_id: record.session_id,
        event_id: record.event_id,
        at: record.at,
        kind: record.kind,
        payload: serde_json::from_str(&record.payload_json).unwrap_or(Value::Null),
    }
}
