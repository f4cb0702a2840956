//! Everything that can go wrong with a stored file, each with what to do next.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::event::Head;
use crate::record::ReceiptRecord;

/// Why the store did not do what was asked. Unless a variant says otherwise, nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A receipt with this `client_action_id` stands already; it is returned as stored.
    #[error("the action id {:?} was used before; compare the fingerprint and answer the stored receipt", record.client_action_id)]
    AlreadyExists {
        /// The stored receipt.
        record: Box<ReceiptRecord>,
    },
    /// Nothing is stored under this identifier.
    #[error("no {what} {id:?} is stored; check the identifier")]
    NotFound {
        /// `receipt`, `session` or `accept`.
        what: &'static str,
        /// The identifier asked for.
        id: String,
    },
    /// The write contradicts what is stored.
    #[error("{what} {id:?}: {reason}; read the stored record again")]
    Conflict {
        /// `receipt`, `session` or `accept`.
        what: &'static str,
        /// The identifier.
        id: String,
        /// What contradicts.
        reason: &'static str,
    },
    /// An accept of this action was recorded before: it may only be rejected.
    #[error("an accept of the action {event_id:?} was sent before; the action can only be rejected")]
    AcceptAlreadySent {
        /// The action's event id.
        event_id: String,
    },
    /// The asked position does not belong to the session's present epoch or no longer (or not yet) exists.
    #[error("this position is not in the journal's epoch {}; start again at {}", head.epoch, head.first_seq)]
    OutOfRange {
        /// Where the session's journal stands.
        head: Head,
    },
    /// Another process, or another handle of this one, has the file open.
    #[error("{} is in use by another gatepost daemon; stop that one, or give this one another --state-dir", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Owner, mode or kind of the file or directory is not what it must be.
    #[error("{}: {reason}; correct it by hand and start again", path.display())]
    Unsafe {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file is damaged, truncated, or no file of ours. It was not written to.
    #[error("{} is damaged ({reason}); it was left untouched: restore a copy, or move it away to start anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the check said.
        reason: String,
    },
    /// The file was written by a newer gatepost. It was not written to.
    #[error("{} has version {found}, this gatepost knows up to {known}; use the newer gatepost", path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// No room is left for the write.
    #[error("no space is left for {}; free some and try again", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory cannot be written.
    #[error("{} cannot be written; check the permissions of its directory and the file system", path.display())]
    NotWritable {
        /// The file.
        path: PathBuf,
    },
    /// One value is larger than a record may be.
    #[error("a value is larger than a record may be; shorten it")]
    TooLarge,
    /// The queue stayed full for the whole wait.
    #[error("the store was busy for {waited_s} s; the disk is too slow or stuck, try again")]
    Overloaded {
        /// Seconds waited.
        waited_s: u64,
    },
    /// No answer came in time. **The write may still happen**: read the record back before going on.
    #[error("the store did not answer for {waited_s} s; whether the write was done is not known")]
    TimedOut {
        /// Seconds waited.
        waited_s: u64,
    },
    /// The writing thread ended. Whether the write was done is not known.
    #[error("the store has stopped; restart the daemon")]
    Stopped,
    /// The operating system refused an operation on the file.
    #[error("{}: {detail}; check the disk and the permissions", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Kind of the failure.
        kind: io::ErrorKind,
        /// The system's words.
        detail: String,
    },
    /// SQLite refused the statement. After a failed commit, whether the write was done is not known.
    #[error("the database refused: {detail}; see the log, and restart the daemon if it persists")]
    Database {
        /// SQLite's words.
        detail: String,
    },
}

/// What an error says of a file, where that decides what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It is damaged, or none of ours.
    Damaged,
    /// No room is left for it.
    DiskFull,
    /// It cannot be written.
    NotWritable,
    /// Someone else has it open.
    InUse,
    /// Anything else.
    Other,
}

impl StoreError {
    /// What it says of the file.
    #[must_use]
    pub fn trouble(&self) -> Trouble {
        match self {
            Self::Damaged { .. } => Trouble::Damaged,
            Self::DiskFull { .. } => Trouble::DiskFull,
            Self::NotWritable { .. } => Trouble::NotWritable,
            Self::InUse { .. } => Trouble::InUse,
            Self::AlreadyExists { .. }
            | Self::NotFound { .. }
            | Self::Conflict { .. }
            | Self::AcceptAlreadySent { .. }
            | Self::OutOfRange { .. }
            | Self::Unsafe { .. }
            | Self::NewerVersion { .. }
            | Self::TooLarge
            | Self::Overloaded { .. }
            | Self::TimedOut { .. }
            | Self::Stopped
            | Self::Io { .. }
            | Self::Database { .. } => Trouble::Other,
        }
    }

    /// Damage of a file that the caller of the statement fills in.
    pub(crate) fn damaged(reason: impl Into<String>) -> Self {
        Self::Damaged { path: PathBuf::new(), reason: reason.into() }
    }

    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        let (path, kind) = (path.to_owned(), error.kind());
        if matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) {
            Self::NotWritable { path }
        } else if matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            Self::DiskFull { path }
        } else {
            Self::Io { path, kind, detail: error.to_string() }
        }
    }

    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        // A value that cannot be read back as what was written is damage, not a wrong request.
        let unreadable = matches!(
            error,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..)
        );
        match error.sqlite_error_code() {
            None if unreadable => Self::Damaged { path, reason: error.to_string() },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { path, reason: error.to_string() }
            }
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::NotWritable { path }
            }
            Some(ErrorCode::TooBig) => Self::TooLarge,
            _ => Self::Database { detail: error.to_string() },
        }
    }

    /// Fills in the file where the statement that failed did not know it.
    pub(crate) fn located(mut self, file: &Path) -> Self {
        if let Self::InUse { path } | Self::Damaged { path, .. } | Self::DiskFull { path } | Self::NotWritable { path } =
            &mut self
            && path.as_os_str().is_empty()
        {
            *path = file.to_owned();
        }
        self
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::sqlite(Path::new(""), &error)
    }
}
