//! The ledger: what was asked and done, the sessions, the accepts that were sent, the tokens by their digests.

mod accepts;
mod chain;
mod entry;
mod offline;
mod receipts;
mod sessions;
mod starts;
mod tokens;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use crate::aside;
use crate::audit::{AuditPage, Notary, RefusedRequest, Verdict};
use crate::error::StoreError;
use crate::file::{self, Check, Opening};
use crate::record::{AcceptRecord, AcceptState, ReceiptRecord, SessionRecord, TokenRecord};
use crate::worker::Worker;
use verify::{Step, Walk};

pub use chain::MAX_AUDIT_LINKS;
pub use offline::OfflineLedger;

/// Handle of the ledger. Every method blocks; a write is on the disk when its method returns.
#[derive(Clone)]
pub struct Ledger {
    worker: Arc<Worker>,
    notary: Arc<dyn Notary>,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ledger").finish_non_exhaustive()
    }
}

impl Ledger {
    /// Opens or creates `ledger.sqlite3` in an existing private directory, locks it and checks it, the chain included. A
    /// new one gets a chain, begun at `now_ms` (since 1970, UTC); one without a chain is damaged. Where a journal stands and no ledger does,
    /// the ledger was lost: that is damage, and none is begun.
    ///
    /// # Errors
    /// [`StoreError::InUse`], `Unsafe`, `Damaged`, `NewerVersion`, `NotWritable`, `DiskFull`, `Io`, `Database`; the
    /// file is then as it was.
    pub fn open(directory: &Path, notary: Arc<dyn Notary>, check: Check, now_ms: i64) -> Result<Self, StoreError> {
        Self::open_bounded(directory, notary, check, now_ms, None)
    }

    fn open_bounded(
        directory: &Path,
        notary: Arc<dyn Notary>,
        check: Check,
        now_ms: i64,
        max_pages: Option<u32>,
    ) -> Result<Self, StoreError> {
        Self::check_not_lost(directory)?;
        let opening = Opening {
            check,
            max_pages,
            complete: &|connection, from| match from {
                0 => chain::begin(connection, &*notary, now_ms),
                _ => Ok(()),
            },
            verify: &|connection, check| verify::at_open(connection, &*notary, check),
        };
        let (path, connection) = file::open(directory, &file::LEDGER, &opening)?;
        Ok(Self { worker: Arc::new(Worker::start("store-ledger", path, connection)?), notary })
    }

    fn check_not_lost(directory: &Path) -> Result<(), StoreError> {
        let is_there = |name: &str| directory.join(name).symlink_metadata().is_ok();
        if is_there(file::JOURNAL_FILE) && !is_there(file::LEDGER_FILE) {
            let reason = "missing, while the journal is there".to_owned();
            return Err(StoreError::Damaged { path: directory.join(file::LEDGER_FILE), reason });
        }
        Ok(())
    }

    /// Closes the file, after all that was asked before. Further calls fail with [`StoreError::Stopped`].
    ///
    /// # Errors
    /// As [`Self::put_session`] without `Conflict`. `Damaged` when damage was met since it was opened, by whatever call: it
    /// is closed, and no mark of an orderly stop may spare the whole check.
    pub fn close(&self) -> Result<(), StoreError> {
        self.worker.close()
    }

    /// Moves the ledger of this directory to `ledger.sqlite3.damaged-STAMP`; nothing is overwritten. Returns the new path,
    /// `None` when there was none. **What was accepted is forgotten with it.**
    ///
    /// # Errors
    /// `NotWritable`, `Io`, `Database`.
    pub fn set_aside(directory: &Path, stamp: &str) -> Result<Option<PathBuf>, StoreError> {
        aside::set_aside(directory, file::LEDGER_FILE, stamp)
    }

    fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection, &dyn Notary) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let notary = Arc::clone(&self.notary);
        self.worker.write(move |connection| operation(connection, &*notary))
    }

    /// Counts a start of the daemon and returns its number: higher than that of any start before it with this ledger.
    ///
    /// # Errors
    /// `Damaged` when the count is missing, and those of [`Self::put_session`] without `Conflict`.
    pub fn count_start(&self) -> Result<u64, StoreError> {
        self.worker.write(starts::count)
    }

    /// Stores a new receipt with its steps. Of any number of callers with one `client_action_id`, exactly one succeeds.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] with the stored receipt; `DiskFull`, `Overloaded`, `TimedOut`, `Stopped`,
    /// `TooLarge`, `Database`.
    pub fn insert_receipt(&self, record: ReceiptRecord) -> Result<(), StoreError> {
        self.write(move |connection, notary| receipts::insert(connection, notary, &record))
    }

    /// Stores a receipt's progress: state, code, detail, result, steps and `updated_at_ms`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Conflict`] when the stored receipt is final, when what was asked
    /// differs, or when a recorded step is missing or its known outcome changed; and those of
    /// [`Self::insert_receipt`].
    pub fn update_receipt(&self, record: ReceiptRecord) -> Result<(), StoreError> {
        self.write(move |connection, notary| receipts::update(connection, notary, &record))
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
        self.write(move |connection, notary| sessions::put(connection, notary, &record))
    }

    /// [`Self::put_session`] and [`Self::update_receipt`] of what was asked for it: both or neither.
    ///
    /// # Errors
    /// Those of either.
    pub fn put_session_with_receipt(&self, session: SessionRecord, receipt: ReceiptRecord) -> Result<(), StoreError> {
        self.write(move |connection, notary| {
            sessions::put(connection, notary, &session)?;
            receipts::update(connection, notary, &receipt)
        })
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

    /// Marks a session closed at the word of `caller`; one that is closed already is left as it is.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], and those of [`Self::put_session`] without `Conflict`.
    pub fn close_session(&self, session_id: &str, closed_at_ms: i64, caller: &str) -> Result<(), StoreError> {
        let (id, caller) = (session_id.to_owned(), caller.to_owned());
        self.write(move |connection, notary| sessions::close(connection, notary, &id, closed_at_ms, &caller))
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
        self.write(move |connection, notary| {
            accepts::record(connection, notary, &session, &approval, &events, sent_at_ms)
        })
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
        self.write(move |connection, notary| accepts::set_state(connection, notary, &session, &event, state, at_ms))
    }

    /// Takes back the accepts of one approval that are still `sent`, for the one case that the request is **proved**
    /// never to have left. Returns how many there were.
    ///
    /// # Errors
    /// As [`Self::put_session`] without `Conflict`.
    pub fn withdraw_unsent_accept(&self, session_id: &str, approval_id: &str) -> Result<usize, StoreError> {
        let (session, approval) = (session_id.to_owned(), approval_id.to_owned());
        self.write(move |connection, notary| accepts::withdraw(connection, notary, &session, &approval))
    }

    /// Every accept ever sent in a session, oldest first.
    ///
    /// # Errors
    /// As [`Self::receipt`].
    pub fn accepts(&self, session_id: &str) -> Result<Vec<AcceptRecord>, StoreError> {
        let id = session_id.to_owned();
        self.worker.read(move |connection| accepts::of_session(connection, &id))
    }

    /// Stores a new token.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when its name is taken; and those of [`Self::put_session`].
    pub fn insert_token(&self, record: TokenRecord) -> Result<(), StoreError> {
        self.write(move |connection, notary| tokens::insert(connection, notary, &record))
    }

    /// Marks a token revoked; one that is revoked already is left as it is.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], and those of [`Self::put_session`] without `Conflict`.
    pub fn revoke_token(&self, name: &str, revoked_at_ms: i64) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.write(move |connection, notary| tokens::revoke(connection, notary, &name, revoked_at_ms))
    }

    /// Every token, revoked ones too, in the order they were made.
    ///
    /// # Errors
    /// As [`Self::receipt`].
    pub fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        self.worker.read(tokens::all)
    }

    /// Enters a request that was refused before it had a receipt. Its key is not used by that.
    ///
    /// # Errors
    /// As [`Self::put_session`] without `Conflict`.
    pub fn note_refusal(&self, refused: RefusedRequest) -> Result<(), StoreError> {
        self.write(move |connection, notary| chain::note_refusal(connection, notary, &refused))
    }

    /// The links after number `after`, oldest first, at most `limit` and [`MAX_AUDIT_LINKS`].
    ///
    /// # Errors
    /// As [`Self::receipt`].
    pub fn audit(&self, after: u64, limit: usize) -> Result<AuditPage, StoreError> {
        self.worker.read(move |connection| chain::page(connection, after, limit))
    }

    /// Walks the chain and compares every row with it, in short steps between which others are served. What is written
    /// meanwhile is part of it or not, and disturbs nothing.
    ///
    /// # Errors
    /// As [`Self::receipt`]. A broken chain is a verdict.
    pub fn verify(&self) -> Result<Verdict, StoreError> {
        let mut walk = self.worker.read(Walk::of)?;
        loop {
            let notary = Arc::clone(&self.notary);
            match self.worker.read(move |connection| walk.step(connection, &*notary))? {
                Step::More(further) => walk = further,
                Step::Done(verdict) => {
                    if verdict.broken.is_some() {
                        self.worker.note_damage("the chain is broken");
                    }
                    return Ok(verdict);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod chain_tests;

#[cfg(test)]
mod token_tests;
