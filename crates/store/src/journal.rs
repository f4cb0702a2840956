//! The journal: events in order, numbered without a gap within an epoch.

mod events;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::aside;
use crate::error::StoreError;
use crate::event::{EventRecord, EventRow, Head, NewEvent, Rewritten};
use crate::file::{self, Check, Opening};
use crate::worker::Worker;

/// Most events in one page.
pub const MAX_PAGE_EVENTS: usize = 1000;
/// Bytes of payload after which a page ends, even before its limit; one event always fits.
pub const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Handle of the journal. Every method blocks.
#[derive(Clone)]
pub struct Journal {
    worker: Arc<Worker>,
    lineage: u64,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Journal").finish_non_exhaustive()
    }
}

/// Names this start of the machine; empty where the system does not say.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or_else(|_| String::new(), |id| id.trim().to_owned())
}

impl Journal {
    /// Opens or creates `journal.sqlite3` in an existing private directory, locks it and checks it.
    ///
    /// # Errors
    /// As [`crate::Ledger::open`].
    pub fn open(directory: &Path, check: Check) -> Result<Self, StoreError> {
        Self::open_bounded(directory, check, None)
    }

    fn open_bounded(directory: &Path, check: Check, max_pages: Option<u32>) -> Result<Self, StoreError> {
        let opening = Opening { check, max_pages, complete: &|_, _| Ok(()), verify: &events::at_open };
        let (path, connection) = file::open(directory, &file::JOURNAL, &opening)?;
        let lineage = events::lineage(&connection, check, &boot_id()).map_err(|error| error.located(&path))?;
        Ok(Self { worker: Arc::new(Worker::start("store-journal", path, connection)?), lineage })
    }

    /// Number of this file: a position in the journal of another file of the same session is none in this.
    #[must_use]
    pub fn lineage(&self) -> u64 {
        self.lineage
    }

    /// Closes the file, after all that was asked before. Further calls fail with [`StoreError::Stopped`].
    ///
    /// # Errors
    /// As [`Self::append`]. `Damaged` when damage was met since it was opened, by whatever call: it is closed, and no mark of
    /// an orderly stop may spare the whole check.
    pub fn close(&self) -> Result<(), StoreError> {
        self.worker.close()
    }

    /// Moves a damaged journal of this directory to `journal.sqlite3.damaged-STAMP`; nothing is overwritten. Returns the
    /// new path, `None` when there was none.
    ///
    /// # Errors
    /// `NotWritable`, `Io`, `Database`.
    pub fn set_aside(directory: &Path, stamp: &str) -> Result<Option<PathBuf>, StoreError> {
        aside::set_aside(directory, file::JOURNAL_FILE, stamp)
    }

    /// Appends events in the given order and returns those that are new, with their numbers. An event whose id the
    /// session's journal holds already is left out. All are stored or none. `now_ms` (since 1970, UTC) is what
    /// [`Self::prune`] goes by.
    ///
    /// # Errors
    /// `DiskFull`, `Overloaded`, `TimedOut`, `Stopped`, `TooLarge`, `Database`.
    pub fn append(&self, session_id: &str, events: Vec<NewEvent>, now_ms: i64) -> Result<Vec<EventRecord>, StoreError> {
        let id = session_id.to_owned();
        self.worker.write(move |connection| events::append(connection, &id, events, now_ms))
    }

    /// The events after number `after_seq`, oldest first: at most `limit` and [`MAX_PAGE_EVENTS`], fewer when
    /// [`MAX_PAGE_BYTES`] is reached. Empty only at the head.
    ///
    /// # Errors
    /// [`StoreError::OutOfRange`] when `epoch` is not the present one, when events after `after_seq` were pruned, or
    /// when `after_seq` is beyond the head; `Damaged`, `Overloaded`, `TimedOut`, `Stopped`, `Database`.
    pub fn read(
        &self,
        session_id: &str,
        epoch: u64,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<EventRecord>, StoreError> {
        let id = session_id.to_owned();
        self.worker.read(move |connection| events::read(connection, &id, epoch, after_seq, limit))
    }

    /// As [`Self::read`], after the number that `place` chooses by where the journal stands, in one look: no epoch is raised and
    /// nothing is pruned between the choice and the read. Returns what was chosen beside the events.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_at<T: Send + 'static>(
        &self,
        session_id: &str,
        limit: usize,
        place: impl FnOnce(&Head) -> (u64, T) + Send + 'static,
    ) -> Result<(T, Vec<EventRecord>), StoreError> {
        let id = session_id.to_owned();
        self.worker.read(move |connection| {
            let head = events::head(connection, &id)?;
            let (after_seq, chosen) = place(&head);
            Ok((chosen, events::read(connection, &id, head.epoch, after_seq, limit)?))
        })
    }

    /// Where a session's journal stands; epoch 1 and no event for one that has none.
    ///
    /// # Errors
    /// `Damaged`, `Overloaded`, `TimedOut`, `Stopped`, `Database`.
    pub fn head(&self, session_id: &str) -> Result<Head, StoreError> {
        let id = session_id.to_owned();
        self.worker.read(move |connection| events::head(connection, &id))
    }

    /// The rows after number `after_seq`, oldest first, at most `limit`, those that were emptied among them.
    ///
    /// # Errors
    /// `Overloaded`, `TimedOut`, `Stopped`, `Database`.
    pub fn rows(&self, session_id: &str, after_seq: u64, limit: usize) -> Result<Vec<EventRow>, StoreError> {
        let id = session_id.to_owned();
        self.worker.read(move |connection| events::rows(connection, &id, after_seq, limit))
    }

    /// Begins the next epoch, in one step: the events up to number `keep_seq` stay, `tail` follows them in place of what
    /// stood behind. What is not in the server's log must be in `tail` to be kept. Returns the tail's records; an event whose id
    /// stands before it is left out.
    ///
    /// # Errors
    /// As [`Self::append`]; `Damaged` when an event that is to be kept is not there, or was emptied.
    pub fn raise_epoch(
        &self,
        session_id: &str,
        reason: &str,
        keep_seq: u64,
        tail: Vec<Rewritten>,
        now_ms: i64,
    ) -> Result<Vec<EventRecord>, StoreError> {
        let (id, reason) = (session_id.to_owned(), reason.to_owned());
        self.worker.write(move |connection| events::raise_epoch(connection, &id, &reason, keep_seq, tail, now_ms))
    }

    /// Empties the events of every session up to the last that was journaled before `before_ms`; their numbers and ids
    /// stay taken. Returns how many were emptied.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn prune(&self, before_ms: i64) -> Result<usize, StoreError> {
        self.worker.write(move |connection| events::prune(connection, before_ms))
    }

    /// Forgets a session's events and epoch, for a conversation that was deleted on the server.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn remove_session(&self, session_id: &str) -> Result<(), StoreError> {
        let id = session_id.to_owned();
        self.worker.write(move |connection| events::remove_session(connection, &id))
    }
}

#[cfg(test)]
mod tests;
