//! The ledger: what was asked and done, the sessions, the accepts that were sent.

mod accepts;
mod receipts;
mod sessions;

use std::path::Path;
use std::sync::Arc;

use crate::error::StoreError;
use crate::file;
use crate::record::{AcceptRecord, AcceptState, ReceiptRecord, SessionRecord};
use crate::worker::Worker;

/// Handle of the ledger. Every method blocks; a write is on the disk when its method returns.
#[derive(Clone)]
pub struct Ledger {
    worker: Arc<Worker>,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ledger").finish_non_exhaustive()
    }
}

impl Ledger {
    /// Opens or creates `ledger.sqlite3` in an existing private directory, locks it and checks it whole.
    ///
    /// # Errors
    /// [`StoreError::InUse`], `Unsafe`, `Damaged`, `NewerVersion`, `NotWritable`, `DiskFull`, `Io`, `Database`; the
    /// file is then as it was.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        Self::open_bounded(directory, None)
    }

    fn open_bounded(directory: &Path, max_pages: Option<u32>) -> Result<Self, StoreError> {
        let (path, connection) = file::open(directory, &file::LEDGER, max_pages)?;
        Ok(Self { worker: Arc::new(Worker::start("store-ledger", path, connection)?) })
    }

    /// Stores a new receipt with its steps. Of any number of callers with one `client_action_id`, exactly one succeeds.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] with the stored receipt; `DiskFull`, `Overloaded`, `TimedOut`, `Stopped`,
    /// `TooLarge`, `Database`.
    pub fn insert_receipt(&self, record: ReceiptRecord) -> Result<(), StoreError> {
        self.worker.write(move |connection| receipts::insert(connection, &record))
    }

    /// Stores a receipt's progress: state, code, detail, result, steps and `updated_at_ms`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Conflict`] when the stored receipt is final, when what was asked
    /// differs, or when a recorded step is missing or its known outcome changed; and those of
    /// [`Self::insert_receipt`].
    pub fn update_receipt(&self, record: ReceiptRecord) -> Result<(), StoreError> {
        self.worker.write(move |connection| receipts::update(connection, &record))
    }

    /// The receipt stored under this key.
    ///
    /// # Errors
    /// `Damaged`, `Overloaded`, `TimedOut`, `Stopped`, `Database`.
    pub fn receipt(&self, client_action_id: &str) -> Result<Option<ReceiptRecord>, StoreError> {
        let id = client_action_id.to_owned();
        self.worker.read(move |connection| receipts::get(connection, &id))
    }

    /// Every receipt that is not final, oldest first.
    ///
    /// # Errors
    /// As [`Self::receipt`].
    pub fn receipts_open(&self) -> Result<Vec<ReceiptRecord>, StoreError> {
        self.worker.read(receipts::open)
    }

    /// Stores a session, or what changed about it. Storing a closed one with no `closed_at_ms` opens it again.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the session is known with another workspace; `DiskFull`, `Overloaded`,
    /// `TimedOut`, `Stopped`, `TooLarge`, `Database`.
    pub fn put_session(&self, record: SessionRecord) -> Result<(), StoreError> {
        self.worker.write(move |connection| sessions::put(connection, &record))
    }

    /// Every session, closed ones too, in the order they were first stored.
    ///
    /// # Errors
    /// As [`Self::receipt`].
    pub fn sessions(&self) -> Result<Vec<SessionRecord>, StoreError> {
        self.worker.read(sessions::all)
    }

    /// One session.
    ///
    /// # Errors
    /// As [`Self::receipt`].
    pub fn session(&self, session_id: &str) -> Result<Option<SessionRecord>, StoreError> {
        let id = session_id.to_owned();
        self.worker.read(move |connection| sessions::get(connection, &id))
    }

    /// Marks a session closed; one that is closed already keeps its time.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], and those of [`Self::put_session`] without `Conflict`.
    pub fn close_session(&self, session_id: &str, closed_at_ms: i64) -> Result<(), StoreError> {
        let id = session_id.to_owned();
        self.worker.write(move |connection| sessions::close(connection, &id, closed_at_ms))
    }

    /// Records, before it is sent, the accept of a whole batch: all of its actions or none.
    ///
    /// # Errors
    /// [`StoreError::AcceptAlreadySent`] naming the first action that has an accept already; `DiskFull`, `Overloaded`,
    /// `TimedOut`, `Stopped`, `TooLarge`, `Database`. On any of them the accept must not be sent.
    pub fn record_accept(
        &self,
        session_id: &str,
        approval_id: &str,
        event_ids: &[String],
        sent_at_ms: i64,
    ) -> Result<(), StoreError> {
        let (session, approval, events) = (session_id.to_owned(), approval_id.to_owned(), event_ids.to_vec());
        self.worker.write(move |connection| accepts::record(connection, &session, &approval, &events, sent_at_ms))
    }

    /// Records what became of an action's accept. An answered one stays answered.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Conflict`] when an answered one would be taken back or one in doubt
    /// called sent; and those of [`Self::record_accept`].
    pub fn set_accept_state(
        &self,
        session_id: &str,
        event_id: &str,
        state: AcceptState,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        let (session, event) = (session_id.to_owned(), event_id.to_owned());
        self.worker.write(move |connection| accepts::set_state(connection, &session, &event, state, at_ms))
    }

    /// Takes back the accepts of one approval that are still `sent`, for the one case that the request is **proved**
    /// never to have left. Returns how many there were.
    ///
    /// # Errors
    /// As [`Self::put_session`] without `Conflict`.
    pub fn withdraw_unsent_accept(&self, session_id: &str, approval_id: &str) -> Result<usize, StoreError> {
        let (session, approval) = (session_id.to_owned(), approval_id.to_owned());
        self.worker.write(move |connection| accepts::withdraw(connection, &session, &approval))
    }

    /// Every accept ever sent in a session, oldest first.
    ///
    /// # Errors
    /// As [`Self::receipt`].
    pub fn accepts(&self, session_id: &str) -> Result<Vec<AcceptRecord>, StoreError> {
        let id = session_id.to_owned();
        self.worker.read(move |connection| accepts::of_session(connection, &id))
    }
}

#[cfg(test)]
mod tests;
