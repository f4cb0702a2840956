//! The chain of receipts: read, verified, and added to where there is no receipt.

use rules::refusal::{Refusal, RefusalCode};

use crate::clock;
use crate::supervisor::Supervisor;
use crate::view::{AuditPage, RefusedRequest, Verification};

impl Supervisor {
    /// The links after number `after`, oldest first, at most `limit`.
    ///
    /// # Errors
    /// `ledger_damaged`, `store_failed`.
    pub async fn audit(&self, after: u64, limit: usize) -> Result<AuditPage, Refusal> {
        let page = self.shared().records.ledger(move |ledger| ledger.audit(after, limit)).await?;
        Ok(AuditPage::of(page, after, &self.shared().signing_key.public_key()))
    }

    /// Walks the whole chain. One at a time: it reads all that the ledger holds.
    ///
    /// # Errors
    /// `too_many_waiting` while another one is under way; `ledger_damaged`, `store_failed`. A broken chain is an answer.
    pub async fn verify_audit(&self) -> Result<Verification, Refusal> {
        let Ok(_only) = self.inner.verifying.try_lock() else {
            return Err(Refusal::new(RefusalCode::TooManyWaiting, "a verification is under way: try again shortly"));
        };
        let verdict = self.shared().records.ledger(store::Ledger::verify).await?;
        if let Some(broken) = &verdict.broken {
            tracing::error!(%broken, "the chain of receipts does not hold");
        }
        Ok(Verification::of(verdict))
    }

    /// Enters a refusal. The refusal stands whether it can be entered or not.
    pub async fn note_refusal(&self, refused: RefusedRequest) {
        let code = refused.code;
        let entry = store::RefusedRequest {
            request: refused.request,
            caller: refused.caller,
            client_action_id: refused.client_action_id,
            session_id: refused.session_id,
            operation_id: refused.operation_id,
            code: code.as_str().to_owned(),
            at_ms: clock::now_ms(),
        };
        let write = move |ledger: &store::Ledger| ledger.note_refusal(entry);
        if let Err(error) = self.shared().records.write("note_refusal", write).await {
            tracing::error!(%error, refused = code.as_str(), "a refusal could not be entered into the chain of receipts");
        }
    }
}
