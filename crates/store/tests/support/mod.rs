//! What every file of tests opens a ledger with.

use std::path::Path;
use std::sync::Arc;

use store::{Check, Ledger, Notary, StoreError};

/// Signs with nothing but its own word: enough to tell signatures apart.
pub(crate) struct Word(pub(crate) &'static str);

impl Notary for Word {
    fn sign(&self, message: &[u8]) -> Vec<u8> {
        [self.0.as_bytes(), message].concat()
    }

    fn is_own(&self, message: &[u8], signature: &[u8]) -> bool {
        signature == self.sign(message)
    }
}

pub(crate) fn open_ledger(directory: &Path) -> Result<Ledger, StoreError> {
    Ledger::open(directory, Arc::new(Word("own")), Check::Whole, 1_700_000_000_000)
}
