//! The pending batch, and how much of it a person has had on the screen.

use api_types::Approval;

use super::BatchRows;
use crate::acceptable;

/// What waits for a decision.
#[derive(Debug)]
pub(in crate::console) struct Batch {
    pub(in crate::console) approval: Approval,
    /// Generation of the snapshot that was read before it: a decision carries it.
    pub(in crate::console) generation: u64,
    /// It was fetched whole, to be decided on.
    pub(in crate::console) in_full: bool,
    /// First row on the screen.
    pub(in crate::console) scroll: usize,
    /// Rows from the first one on that stood on the screen, without a gap.
    read_rows: usize,
    /// All of them did.
    pub(in crate::console) is_read: bool,
    /// A decision on it was sent.
    pub(in crate::console) decided: bool,
}

impl Batch {
    pub(in crate::console) fn new(approval: Approval, generation: u64, in_full: bool) -> Self {
        Self { approval, generation, in_full, scroll: 0, read_rows: 0, is_read: false, decided: false }
    }

    /// These rows stood on the screen. True when with them all of it did, for the first time.
    pub(in crate::console) fn shown(&mut self, rows: BatchRows) -> bool {
        self.scroll = rows.first;
        if rows.first <= self.read_rows {
            self.read_rows = self.read_rows.max(rows.end);
        }
        let completes = !self.is_read && rows.total > 0 && self.read_rows >= rows.total;
        self.is_read |= completes;
        completes
    }

    /// The furthest first row that leaves no gap in what was read.
    pub(in crate::console) fn reach(&self) -> usize {
        if self.is_read { usize::MAX } else { self.read_rows }
    }

    /// The rows are others now: what was read of them, but not to the end, is not known any more.
    pub(in crate::console) fn broken_anew(&mut self) {
        self.read_rows = 0;
        self.scroll = 0;
    }

    /// The same batch, read again under another generation: nothing in it moved.
    pub(in crate::console) fn is_same(&self, approval: &Approval, in_full: bool) -> bool {
        self.approval == *approval && self.in_full == in_full
    }

    /// Why it cannot be accepted now, in words; `None` when the question may be asked.
    pub(in crate::console) fn refuses_accept(&self) -> Option<&'static str> {
        if self.decided {
            return Some("a decision on this batch was sent");
        }
        if !self.in_full {
            return Some("this token may not approve: it may not read the batch in full");
        }
        if let Some((_, words)) = acceptable::refusal(&self.approval) {
            return Some(words);
        }
        if self.approval.named_files.iter().any(|file| file.changed) {
            return Some("a file that it names has changed since: it can only be rejected");
        }
        (!self.is_read).then_some("read it to the end first: all of it must have been on the screen")
    }
}
