//! What the tests of several modules need.

use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;

use crate::audit::Notary;
use crate::error::StoreError;
use crate::file::{Check, Opening};
use crate::record::{ReceiptRecord, ReceiptState, StepRecord, StepState};

pub(crate) fn private_directory() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

/// A receipt whose message is about to be sent.
pub(crate) fn receipt(id: &str) -> ReceiptRecord {
    ReceiptRecord {
        client_action_id: id.to_owned(),
        session_id: Some("session".into()),
        operation_id: "session.prompt.send".into(),
        fingerprint: "f".repeat(64),
        caller: "owner".into(),
        state: ReceiptState::InFlight,
        code: None,
        detail: None,
        input_json: "{\"text\":\"hello\"}".into(),
        result_json: None,
        steps: vec![StepRecord { name: "send_message".into(), state: StepState::Intent, code: None, detail: None }],
        created_at_ms: 1,
        updated_at_ms: 1,
        request_id: Some("request-1".into()),
    }
}

/// Nothing to do beside the SQL, nothing to check.
pub(crate) const PLAIN: Opening<'static> =
    Opening { check: Check::Whole, max_pages: None, complete: &|_, _| Ok(()), verify: &nothing };

fn nothing(_: &Connection, _: Check) -> Result<(), StoreError> {
    Ok(())
}

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
