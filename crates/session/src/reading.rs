//! Readers of events: pages, waiting, and starting over.

use std::sync::Arc;
use std::time::Duration;

use rules::refusal::Refusal;
use serde_json::Value;
use store::{EventRecord, Head, Journal, StoreError};

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
        let _waiting = session.note_waiting();
        let given = after.map(|text| Cursor::decode(session_id, text)).transpose()?;
        let mut changes = session.watch_changes();
        let deadline = tokio::time::Instant::now() + Duration::from_millis(wait_ms);
        loop {
            let page = self.page(&session, given, limit).await?;
            // The timer takes a whole millisecond for no wait at all.
            if !page.events.is_empty() || page.resync.is_some() || wait_ms == 0 {
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
        let found = self.shared().records.journal(move |journal| find(journal, &id, given, limit)).await?;
        let Found { events, from, head, reason } = found;
        let session_id = session.id().as_str();
        let last = events.last().map_or(from, |event| Cursor { epoch: event.epoch, seq: event.seq, ..from });
        Ok(EventPage {
            events: events.into_iter().map(|event| view(event, from.lineage)).collect(),
            next_cursor: last.encode(session_id),
            resync: reason.map(|reason| Resync { reason: reason.to_owned(), first_cursor: head.encode(session_id) }),
        })
    }

    /// Where the event stream of a session stands.
    pub(crate) async fn head_cursor(&self, session: &Session) -> Result<String, Refusal> {
        let id = session.id().as_str().to_owned();
        let read = move |journal: &Journal| Ok((journal.lineage(), journal.head(&id)?));
        let (lineage, head) = self.shared().records.journal(read).await?;
        Ok(Cursor { lineage, epoch: head.epoch, seq: head.seq }.encode(session.id().as_str()))
    }
}

/// What a cursor leads to.
struct Found {
    events: Vec<EventRecord>,
    /// Where they begin.
    from: Cursor,
    /// Where the events that there are begin.
    head: Cursor,
    /// Why they do not begin at the cursor.
    reason: Option<&'static str>,
}

fn find(journal: &Journal, id: &str, given: Option<Given>, limit: usize) -> Result<Found, StoreError> {
    let lineage = journal.lineage();
    let place = move |head: &Head| {
        let first = Cursor { lineage, epoch: head.epoch, seq: head.first_seq.saturating_sub(1) };
        let (from, reason) = match given {
            None => (first, None),
            Some(Given::Foreign) => (first, Some("foreign_cursor")),
            Some(Given::Own(cursor)) if (cursor.lineage, cursor.epoch) != (lineage, head.epoch) => {
                (first, Some("epoch_changed"))
            }
            Some(Given::Own(cursor)) if cursor.seq > head.seq => (first, Some("cursor_ahead")),
            Some(Given::Own(cursor)) if cursor.seq < first.seq => (first, Some("events_expired")),
            Some(Given::Own(cursor)) => (cursor, None),
        };
        (from.seq, (from, first, reason))
    };
    let ((from, head, reason), events) = journal.read_at(id, limit, place)?;
    Ok(Found { events, from, head, reason })
}

fn view(record: EventRecord, lineage: u64) -> EventView {
    EventView {
        cursor: Cursor { lineage, epoch: record.epoch, seq: record.seq }.encode(&record.session_id),
        seq: record.seq,
        session_id: record.session_id,
        event_id: record.event_id,
        at: record.at,
        kind: record.kind,
        payload: serde_json::from_str(&record.payload_json).unwrap_or(Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use store::{Check, NewEvent, Rewritten};

    use super::*;

    #[test]
    fn a_page_is_found_while_epochs_are_raised() {
        let private = std::fs::Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let journal = Journal::open(directory.path(), Check::Whole).unwrap();
        let event = |id: &str| NewEvent {
            event_id: id.to_owned(),
            at: String::new(),
            kind: "other".to_owned(),
            payload_json: "{}".to_owned(),
            is_late: false,
        };
        journal.append("s", vec![event("a"), event("b")], 1).unwrap();
        std::thread::scope(|scope| {
            let raising = scope.spawn(|| {
                for _ in 0..300 {
                    journal.raise_epoch("s", "order_differs", 1, vec![Rewritten::New(event("b"))], 1).unwrap();
                }
            });
            while !raising.is_finished() {
                let old = Some(Given::Own(Cursor { lineage: journal.lineage(), epoch: 1, seq: 2 }));
                let found = find(&journal, "s", old, 10).unwrap();
                assert!(found.events.len() == 2 || found.from.epoch == 1, "{:?}", found.from);
            }
        });
    }
}
