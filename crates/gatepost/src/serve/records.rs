//! The records at the start and the stop: checked in the background, closed in order.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_types::ExitCode;
use cli::Failure;
use host::sign::SigningKey;
use rules::refusal::{Refusal, RefusalCode};
use session::OpenRecords;
use session::view::Finding;
use store::{Check, Journal, Ledger, StoreError, Trouble};

use crate::clock;
use crate::notary::Installation;

/// Why the records are not there.
pub(super) enum NotOpened {
    /// The ledger is not to be trusted: the daemon stays, and refuses.
    Damaged(Finding),
    /// Something that is mended before the next start.
    Failed(Failure),
}

/// Checks and opens both. **Blocks**, for long after a stop that was not in order.
pub(super) fn open(state_dir: &Path, signing_key: &Arc<SigningKey>) -> Result<OpenRecords, NotOpened> {
    // A start that could not record what it does would be half a start.
    store::check_room(state_dir).map_err(|error| failed(&error))?;
    let check = store::take_clean_mark(state_dir).map_err(|error| failed(&error))?;
    tracing::info!(whole = check == Check::Whole, "the records are checked");
    let notary = Arc::new(Installation(Arc::clone(signing_key)));
    let of_ledger = |error: StoreError| match error.trouble() {
        Trouble::Damaged => NotOpened::Damaged(finding(error.to_string())),
        Trouble::DiskFull | Trouble::NotWritable | Trouble::InUse | Trouble::Other => failed(&error),
    };
    let ledger = Ledger::open(state_dir, notary, check, clock::now_ms()).map_err(of_ledger)?;
    let start = ledger.count_start().map_err(of_ledger)?;
    let mut notes = Vec::new();
    let journal = match Journal::open(state_dir, check) {
        Err(error) if error.trouble() == Trouble::Damaged => {
            let aside = set_journal_aside(state_dir)?;
            let words = format!(
                "the journal of events was damaged and was set aside as {}; a new one was begun, and events are read from the \
                 servers again",
                aside.display()
            );
            tracing::error!(%error, aside = %aside.display(), "the journal was damaged and set aside; a new one is begun");
            notes.push(words);
            Journal::open(state_dir, Check::Whole)
        }
        other => other,
    };
    Ok(OpenRecords { ledger, journal: journal.map_err(|error| failed(&error))?, start, notes })
}

/// Closes both and leaves the mark of an orderly stop, unless damage of either was met meanwhile: the next start must look
/// for it. **Blocks.**
pub(super) fn close(state_dir: &Path, records: &OpenRecords) {
    let (journal, ledger) = (records.journal.close(), records.ledger.close());
    match journal.and(ledger).and_then(|()| store::mark_clean(state_dir)) {
        Ok(()) => tracing::debug!("the records are closed"),
        Err(error) => tracing::warn!(%error, "the records were not closed in order; the next start checks them whole"),
    }
}

fn set_journal_aside(state_dir: &Path) -> Result<PathBuf, NotOpened> {
    let aside = Journal::set_aside(state_dir, &clock::stamp()).map_err(|error| failed(&error))?;
    Ok(aside.unwrap_or_else(|| state_dir.join(store::JOURNAL_FILE)))
}

/// What is told of a ledger that is not to be trusted.
fn finding(detail: String) -> Finding {
    Finding::of(Refusal::new(RefusalCode::LedgerDamaged, detail))
}

/// Records that were opened, and then could not be read.
pub(super) fn unreadable(refusal: Refusal) -> NotOpened {
    if refusal.code == RefusalCode::LedgerDamaged {
        return NotOpened::Damaged(finding(refusal.detail));
    }
    let exit = ExitCode::of_refusal(refusal.code.as_str(), refusal.code.http_status());
    NotOpened::Failed(Failure::new(exit, refusal.code.as_str(), refusal.detail))
}

/// A ledger or journal that cannot be used for another reason than damage.
fn failed(error: &StoreError) -> NotOpened {
    let (exit, code) = match error.trouble() {
        Trouble::InUse => (ExitCode::Conflict, RefusalCode::StoreFailed),
        Trouble::DiskFull => (ExitCode::Blocked, RefusalCode::DiskFull),
        Trouble::NotWritable => (ExitCode::Blocked, RefusalCode::RecordsReadOnly),
        Trouble::Damaged | Trouble::Other => (ExitCode::Failed, RefusalCode::StoreFailed),
    };
    NotOpened::Failed(Failure::new(exit, code.as_str(), error.to_string()))
}
