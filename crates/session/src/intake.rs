//! The one way into a session's journal: events of the stream, of the log, and gatepost's own.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use agent_contract::WireEvent;
use rules::reconcile::{Content, Logged, Origin, Place, Rest, Row, Verdict, reconcile};
use rules::redact::Redactor;
use rules::refusal::Refusal;
use store::{EventRecord, EventRow, Journal, NewEvent, Rewritten, StoreError};

use crate::session::Session;
use crate::{clock, events};

/// After this long an event that the stream brought must stand in the log. The server publishes an event just before it
/// appends it.
const APPEND_GRACE: Duration = Duration::from_secs(2);
/// Most events that the journal may be ahead of the log.
const MAX_AHEAD: usize = 2048;
/// Rows that are read at once when the tail is not known.
const ROWS_PAGE: usize = 10_000;
/// Most events that are held back until the log's end is read, when the orders differ.
const MAX_HELD_BACK: usize = 1000;
/// Room for so many rows is kept when none stands behind the confirmed ones.
const KEPT_ROWS: usize = 16;
/// Most events of our own that wait to be journaled.
const MAX_OWED: usize = 256;

/// What stands in the journal behind the last event that a read of the log confirmed.
pub(crate) struct Tail {
    /// Number of the last row that is confirmed; the rows have the numbers after it.
    confirmed_seq: u64,
    rows: VecDeque<Row>,
    /// Whether the rows are those of the journal.
    is_known: bool,
    began: Instant,
}

/// When a read of the log began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadBegan(Instant);

/// What became of the events of a read.
pub(crate) enum Taken {
    /// They are journaled.
    Journaled,
    /// The orders differ and the log goes on: nothing was journaled, the whole rest is needed.
    HeldBack,
}

impl ReadBegan {
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }
}

impl Tail {
    pub(crate) fn new() -> Self {
        Self { confirmed_seq: 0, rows: VecDeque::new(), is_known: false, began: Instant::now() }
    }

    /// On a clock that begins with the grace, so that nothing is overdue at its beginning.
    fn ms(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.began).saturating_add(APPEND_GRACE);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn servers_row(&self, event_id: String, content: Option<Content>) -> Row {
        Row { event_id, origin: Origin::Server { content, arrived_ms: self.ms(Instant::now()) } }
    }

    fn loaded(&self, row: EventRow) -> Row {
        match row.kind.as_str() {
            "" => Row { event_id: row.event_id, origin: Origin::Emptied },
            _ if row.is_late => Row { event_id: row.event_id, origin: Origin::Late },
            kind if events::OWN_KINDS.contains(&kind) => Row { event_id: row.event_id, origin: Origin::Own },
            _ => self.servers_row(row.event_id, None),
        }
    }

    fn is_ahead(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.origin, Origin::Server { .. }))
    }

    fn confirm(&mut self, rows: usize) {
        self.rows.drain(..rows);
        if self.rows.is_empty() {
            // After a whole log was read it is large, and will not be again.
            self.rows.shrink_to(KEPT_ROWS);
        }
        self.confirmed_seq += rows as u64;
    }
}

impl Session {
    /// Journals what the stream brought, so that readers have it at once. Decisions wait for the log.
    ///
    /// # Errors
    /// `store_failed`; the log will tell.
    pub(crate) async fn take_streamed(&self, batch: Vec<NewEvent>) -> Result<(), Refusal> {
        let mut tail = self.intake.lock().await;
        self.know(&mut tail).await?;
        if tail.rows.len() + batch.len() > MAX_AHEAD {
            self.frames().note_overrun(Instant::now());
            self.mark_stale();
            return Ok(());
        }
        for record in self.append(&mut tail, batch).await? {
            let content = fingerprint(&record.kind, &record.payload_json);
            let row = tail.servers_row(record.event_id, Some(content));
            tail.rows.push_back(row);
        }
        drop(tail);
        self.announce_change();
        Ok(())
    }

    /// Journals something of our own: at once, or once that is possible.
    ///
    /// # Errors
    /// `store_failed`; it is owed then.
    pub(crate) async fn take_own(&self, event: NewEvent) -> Result<(), Refusal> {
        {
            let mut state = self.current();
            if state.owed.len() >= MAX_OWED {
                tracing::error!(session = self.id().as_str(), "an event of gatepost's own is lost: too many are owed");
                state.owed.pop_front();
            }
            state.owed.push_back(event);
        }
        self.journal_owed().await
    }

    /// Journals what of our own could not be so far, in its order.
    ///
    /// # Errors
    /// `store_failed`; it is owed still.
    pub(crate) async fn journal_owed(&self) -> Result<(), Refusal> {
        let mut tail = self.intake.lock().await;
        let owed: Vec<NewEvent> = self.current().owed.iter().cloned().collect();
        if owed.is_empty() {
            return Ok(());
        }
        let journaled: Vec<String> = owed.iter().map(|event| event.event_id.clone()).collect();
        let written = self.append(&mut tail, owed).await?;
        self.current().owed.retain(|event| !journaled.contains(&event.event_id));
        for record in written {
            if tail.is_known && tail.rows.is_empty() {
                tail.confirmed_seq += 1;
            } else if tail.is_known {
                tail.rows.push_back(Row { event_id: record.event_id, origin: Origin::Own });
            }
        }
        Ok(())
    }

    /// Brings the journal into the log's order, with what a read brought: a new epoch where they differ.
    ///
    /// # Errors
    /// `store_failed`.
    pub(crate) async fn take_logged(
        &self,
        page: &[WireEvent],
        rest: Rest,
        began: ReadBegan,
        redactor: &Redactor,
    ) -> Result<Taken, Refusal> {
        let mut new: Vec<NewEvent> = page
            .iter()
            .map(|event| events::describe(&event.log.event_id, &event.at, &event.raw, redactor).into_record())
            .collect();
        let mut tail = self.intake.lock().await;
        self.know(&mut tail).await?;
        let logged: Vec<Logged<'_>> = new
            .iter()
            .map(|event| Logged { event_id: &event.event_id, content: fingerprint(&event.kind, &event.payload_json) })
            .collect();
        let grace_ms = u64::try_from(APPEND_GRACE.as_millis()).unwrap_or(u64::MAX);
        let overdue_ms = tail.ms(began.0).saturating_sub(grace_ms);
        match reconcile(tail.rows.make_contiguous(), &logged, rest, overdue_ms) {
            Verdict::Extend { mut confirmed, append, late } => {
                append.iter().take(late).for_each(|index| new[*index].is_late = true);
                let mut new: Vec<Option<NewEvent>> = new.into_iter().map(Some).collect();
                let new: Vec<NewEvent> = append.iter().filter_map(|index| new[*index].take()).collect();
                if !new.is_empty() {
                    let is_whole = confirmed == tail.rows.len();
                    let appended = self.append(&mut tail, new).await?;
                    tail.rows.extend(
                        appended.into_iter().map(|event| Row { event_id: event.event_id, origin: Origin::Late }),
                    );
                    confirmed = if is_whole { tail.rows.len() } else { confirmed };
                }
                tail.confirm(confirmed);
            }
            Verdict::Rewrite { .. } if rest == Rest::More && page.len() < MAX_HELD_BACK => {
                return Ok(Taken::HeldBack);
            }
            Verdict::Rewrite { difference, keep, order } => {
                tracing::warn!(session = self.id().as_str(), difference = difference.as_str(), "a new epoch begins");
                let first = tail.confirmed_seq + 1;
                let mut new: Vec<Option<NewEvent>> = new.into_iter().map(Some).collect();
                let written: Vec<Rewritten> = order
                    .iter()
                    .filter_map(|place| match place {
                        Place::Row(index) => Some(Rewritten::Kept(first + *index as u64)),
                        Place::Logged(index) => new.get_mut(*index).and_then(Option::take).map(Rewritten::New),
                    })
                    .collect();
                let (id, reason, keep_seq) =
                    (self.id().as_str().to_owned(), difference.as_str(), tail.confirmed_seq + keep as u64);
                let written = self
                    .write(&mut tail, "raise_epoch", move |journal| {
                        journal.raise_epoch(&id, reason, keep_seq, written, clock::now_ms())
                    })
                    .await?;
                tail.confirmed_seq = keep_seq + written.len() as u64;
                tail.rows.clear();
                self.frames().note_wrong(Instant::now());
            }
        }
        // Before the tail is given up: what the stream brings next is ahead again.
        self.frames().set_ahead(tail.is_ahead());
        Ok(Taken::Journaled)
    }

    /// Reads the rows behind the last confirmed one, when they are not known.
    async fn know(&self, tail: &mut Tail) -> Result<(), Refusal> {
        if tail.is_known {
            return Ok(());
        }
        tail.rows.clear();
        loop {
            let (id, after) = (self.id().as_str().to_owned(), tail.confirmed_seq + tail.rows.len() as u64);
            let rows = self.shared().records.journal(move |journal| journal.rows(&id, after, ROWS_PAGE)).await?;
            let count = rows.len();
            for row in rows {
                let row = tail.loaded(row);
                tail.rows.push_back(row);
            }
            if count < ROWS_PAGE {
                tail.is_known = true;
                return Ok(());
            }
        }
    }

    async fn append(&self, tail: &mut Tail, events: Vec<NewEvent>) -> Result<Vec<EventRecord>, Refusal> {
        let id = self.id().as_str().to_owned();
        self.write(tail, "append", move |journal| journal.append(&id, events, clock::now_ms())).await
    }

    /// A write of which nothing is known after a failure: it may be carried out yet.
    async fn write<T: Send + 'static>(
        &self,
        tail: &mut Tail,
        name: &'static str,
        work: impl FnOnce(&Journal) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let was_known = std::mem::replace(&mut tail.is_known, false);
        let done =
            self.shared().records.write_journal(name, work).await.inspect_err(|_| self.frames().set_ahead(true))?;
        tail.is_known = was_known;
        Ok(done)
    }
}

/// What readers see of an event, without its time: that is for showing only.
fn fingerprint(kind: &str, payload_json: &str) -> Content {
    let mut hasher = DefaultHasher::new();
    (kind, payload_json).hash(&mut hasher);
    hasher.finish()
}
