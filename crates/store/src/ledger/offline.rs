//! The ledger while no daemon runs: read where it lies, never made, locked against nobody, and never written to.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use crate::audit::{AuditPage, Notary, Verdict};
use crate::error::StoreError;
use crate::file;
use crate::ledger::chain;
use crate::ledger::verify::Walk;

/// A ledger that is only read. No daemon may be using its directory for as long as this lives.
pub struct OfflineLedger {
    connection: Connection,
    notary: Arc<dyn Notary>,
    path: std::path::PathBuf,
}

impl std::fmt::Debug for OfflineLedger {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OfflineLedger").finish_non_exhaustive()
    }
}

impl OfflineLedger {
    /// Opens `ledger.sqlite3` of an existing private directory.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none; `InUse`, `Unsafe`, `Damaged`, `NewerVersion`, `NotWritable`, `Io`,
    /// `Database`; `Conflict` when it is of an older version.
    pub fn open(directory: &Path, notary: Arc<dyn Notary>) -> Result<Self, StoreError> {
        let (path, connection) = file::open_to_read(directory, &file::LEDGER)?;
        Ok(Self { connection, notary, path })
    }

    /// The links after number `after`, oldest first, at most `limit` and [`crate::MAX_AUDIT_LINKS`].
    ///
    /// # Errors
    /// `Damaged`, `Database`.
    pub fn audit(&self, after: u64, limit: usize) -> Result<AuditPage, StoreError> {
        chain::page(&self.connection, after, limit).map_err(|error| error.located(&self.path))
    }

    /// Checks the file, walks the chain and compares every row with it.
    ///
    /// # Errors
    /// `Damaged` when the file itself is; `Database`. A broken chain is a verdict.
    pub fn verify(&self) -> Result<Verdict, StoreError> {
        let whole = || {
            file::check_pages(&self.connection)?;
            Walk::whole(&self.connection, &*self.notary)
        };
        whole().map_err(|error| error.located(&self.path))
    }
}
