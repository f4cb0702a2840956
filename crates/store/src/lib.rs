//! What must outlive the daemon, in two SQLite files of one private directory.
//!
//! - The **ledger** ([`Ledger`]): receipts with their steps, sessions, sent accepts, digests of tokens, and a signed chain with a link for
//!   each change of them and each refusal. Every write is on the disk (full
//!   synchronous) before its method returns.
//! - The **journal** ([`Journal`]): the events of each session, numbered without a gap within an epoch. Writes survive a
//!   killed daemon; a power failure may lose the newest, which the server's own log holds still.
//!
//! Each file has one thread that owns its only connection, fed by a bounded queue. Writes that wait together are
//! committed together. Every method **blocks** until its answer stands: call them through `spawn_blocking` or from a
//! thread of your own, never from an asynchronous task. A handle is cheap to clone; the file is closed when the last
//! clone is dropped.
//!
//! A file is locked for as long as it is open, so a second daemon on the same state is refused ([`StoreError::InUse`]).
//! A damaged, foreign or newer file is refused and left as it is. Nothing else in the process may open these files: the
//! system drops a process's locks on a file when the process closes *any* descriptor of it.

mod aside;
mod audit;
mod clean;
mod error;
mod event;
mod file;
mod journal;
mod ledger;
mod migrate;
mod record;
mod room;
#[cfg(test)]
mod testing;
mod worker;

pub use audit::{AuditPage, Broken, ChainHead, Fault, Link, Notary, RefusedRequest, Verdict};
pub use clean::{mark_clean, take_clean_mark};
pub use error::{StoreError, Trouble};
pub use event::{EventRecord, EventRow, Head, NewEvent, Rewritten};
pub use file::{Check, JOURNAL_FILE, LEDGER_FILE};
pub use journal::{Journal, MAX_PAGE_BYTES, MAX_PAGE_EVENTS};
pub use ledger::{Ledger, MAX_AUDIT_LINKS, OfflineLedger};
pub use record::{
    AcceptRecord, AcceptState, ReceiptRecord, ReceiptState, SessionOrigin, SessionRecord, StepRecord, StepState,
    TokenRecord,
};
pub use room::check_room;
