//! Durable records, reached from asynchronous code.

use std::sync::Arc;

use rules::evidence::Evidence;
use rules::passage::{Kind, Passage, Side, Watch};
use rules::receipt::{self, Unfinished};
use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};
use store::{
    AcceptState, Journal, Ledger, ReceiptRecord, ReceiptState, SessionRecord, StepRecord, StepState, StoreError,
    Trouble,
};

use crate::clock;
use crate::room::Room;
use crate::view::{ReceiptStep, ReceiptView};

/// The two record files. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Records {
    ledger: Arc<Ledger>,
    journal: Arc<Journal>,
    room: Room,
    watch: Watch,
}

impl Records {
    pub(crate) fn new(ledger: Ledger, journal: Journal, room: Room, watch: Watch) -> Self {
        Self { ledger: Arc::new(ledger), journal: Arc::new(journal), room, watch }
    }

    /// Whether the last writes found room.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// Runs blocking work on the ledger.
    pub(crate) async fn ledger<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Ledger) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let ledger = Arc::clone(&self.ledger);
        settle(tokio::task::spawn_blocking(move || work(&ledger)).await, RefusalCode::LedgerDamaged)
    }

    /// Runs blocking work on the journal.
    pub(crate) async fn journal<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Journal) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let journal = Arc::clone(&self.journal);
        settle(tokio::task::spawn_blocking(move || work(&journal)).await, RefusalCode::StoreFailed)
    }

    /// A write to the ledger, of that name where it is watched: durable once this answers.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Ledger) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.watched(Kind::Ledger, name, self.ledger(work)).await
    }

    /// A write to the journal, of that name where it is watched.
    pub(crate) async fn write_journal<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Journal) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.watched(Kind::Journal, name, self.journal(work)).await
    }

    async fn watched<T>(
        &self,
        kind: Kind,
        name: &'static str,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        // There is no connection that could be cut.
        let (Passage::GoOn | Passage::Cut) = self.watch.pass(Side::Before, kind, name);
        let done = work.await;
        if let Err(refusal) = &done {
            self.room.note(refusal);
        }
        let (Passage::GoOn | Passage::Cut) = self.watch.pass(Side::After, kind, name);
        done
    }

    /// What became of accepts of a session, one after the other.
    pub(crate) async fn set_accept_states(
        &self,
        session_id: &str,
        states: Vec<(String, AcceptState)>,
    ) -> Result<(), Refusal> {
        let id = session_id.to_owned();
        self.write("set_accept_state", move |ledger| {
            states
                .iter()
                .try_for_each(|(event_id, state)| ledger.set_accept_state(&id, event_id, *state, clock::now_ms()))
        })
        .await
    }

    /// The receipt of a key, if there is one.
    pub(crate) async fn receipt(&self, client_action_id: &str) -> Result<Option<ReceiptRecord>, Refusal> {
        let id = client_action_id.to_owned();
        self.ledger(move |ledger| ledger.receipt(&id)).await
    }
}

pub(crate) fn settle<T>(
    joined: Result<Result<T, StoreError>, tokio::task::JoinError>,
    damaged: RefusalCode,
) -> Result<T, Refusal> {
    match joined {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Refusal::new(code_of(&error, damaged), error.to_string())),
        Err(error) => Err(Refusal::new(RefusalCode::Internal, error.to_string())),
    }
}

/// The code of a record that could not be read or written.
fn code_of(error: &StoreError, damaged: RefusalCode) -> RefusalCode {
    match error.trouble() {
        Trouble::Damaged => damaged,
        Trouble::DiskFull => RefusalCode::DiskFull,
        Trouble::NotWritable => RefusalCode::RecordsReadOnly,
        Trouble::InUse | Trouble::Other => RefusalCode::StoreFailed,
    }
}

/// Field of an open receipt's result that holds what would show its last step.
const SOUGHT: &str = "evidence_sought";

/// What would show that the last step of an open receipt took effect.
pub(crate) fn evidence_sought(record: &ReceiptRecord) -> Evidence {
    let result: Option<Value> = record.result_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let sought = result.and_then(|mut result| serde_json::from_value(result[SOUGHT].take()).ok());
    sought.unwrap_or(Evidence::Nothing)
}

/// A receipt while its operation is carried out: every change is durable before the next thing happens.
pub(crate) struct OpenReceipt {
    records: Records,
    record: ReceiptRecord,
    is_stored: bool,
}

impl OpenReceipt {
    /// Writes the intent. From here on the key is used.
    ///
    /// # Errors
    /// `store_failed`; nothing was recorded then.
    pub(crate) async fn create(records: &Records, record: ReceiptRecord) -> Result<Self, Refusal> {
        let mut receipt = Self::begin(records, record);
        receipt.write().await?;
        Ok(receipt)
    }

    /// A receipt that is stored, and its key used, with the intent of its first step: in one write.
    pub(crate) fn begin(records: &Records, record: ReceiptRecord) -> Self {
        Self { records: records.clone(), record, is_stored: false }
    }

    /// Takes up a receipt that is stored already.
    pub(crate) fn resume(records: &Records, record: ReceiptRecord) -> Self {
        Self { records: records.clone(), record, is_stored: true }
    }

    /// A step is about to be sent: durable before it is, and with it what would show that it took effect.
    pub(crate) async fn step_intent(&mut self, name: &str, evidence: &Evidence) -> Result<(), Refusal> {
        let step = StepRecord { name: name.to_owned(), state: StepState::Intent, code: None, detail: None };
        self.record.steps.push(step);
        self.record.state = ReceiptState::InFlight;
        self.record.result_json = Some(json!({ SOUGHT: evidence }).to_string());
        self.save().await
    }

    /// What came of the last step, where the receipt is not closed with it.
    pub(crate) async fn step_outcome(&mut self, state: StepState, reason: Option<&Refusal>) -> Result<(), Refusal> {
        self.set_outcome(state, reason);
        self.save().await
    }

    fn set_outcome(&mut self, state: StepState, reason: Option<&Refusal>) {
        if let Some(step) = self.record.steps.last_mut() {
            step.state = state;
            step.code = reason.map(|reason| reason.code.as_str().to_owned());
            step.detail = reason.map(|reason| reason.detail.clone());
        }
    }

    /// Closes the receipt with what came of its last step, in one write: no crash leaves the one without the other.
    async fn close(
        &mut self,
        step: StepState,
        state: ReceiptState,
        reason: Option<&Refusal>,
        result: Value,
    ) -> Result<(), Refusal> {
        self.set_outcome(step, reason);
        self.finish(state, reason, result).await
    }

    /// Closes the receipt with its last step done.
    pub(crate) async fn done(&mut self, result: Value) -> Result<(), Refusal> {
        self.close(StepState::Done, ReceiptState::Applied, None, result).await
    }

    /// The same with what it made of a session, in one write.
    pub(crate) async fn done_with_session(&mut self, session: SessionRecord, result: Value) -> Result<(), Refusal> {
        self.set_outcome(StepState::Done, None);
        self.set_end(ReceiptState::Applied, None, &result);
        let record = self.record.clone();
        let write = move |ledger: &Ledger| ledger.put_session_with_receipt(session, record);
        self.records.write("put_session_with_receipt", write).await
    }

    /// Closes the receipt: its last step was not sent and never will be.
    pub(crate) async fn close_not_sent(&mut self, reason: &Refusal) -> Result<(), Refusal> {
        self.close(StepState::NotSent, ReceiptState::Rejected, Some(reason), Value::Null).await
    }

    /// Closes the receipt: its last step took no effect.
    pub(crate) async fn close_failed(&mut self, reason: &Refusal, result: Value) -> Result<(), Refusal> {
        self.close(StepState::Failed, ReceiptState::Rejected, Some(reason), result).await
    }

    /// Closes the receipt: what came of its last step cannot be told.
    pub(crate) async fn close_unknown(&mut self, reason: &Refusal, result: Value) -> Result<(), Refusal> {
        self.close(StepState::Unknown, ReceiptState::OutcomeUnknown, Some(reason), result).await
    }

    /// The receipt as it is stored now.
    pub(crate) fn into_record(self) -> ReceiptRecord {
        self.record
    }

    /// Closes the receipt; its steps stay as they are.
    pub(crate) async fn finish(
        &mut self,
        state: ReceiptState,
        reason: Option<&Refusal>,
        result: Value,
    ) -> Result<(), Refusal> {
        self.set_end(state, reason, &result);
        self.write().await
    }

    fn set_end(&mut self, state: ReceiptState, reason: Option<&Refusal>, result: &Value) {
        self.record.state = state;
        self.record.code = reason.map(|reason| reason.code.as_str().to_owned());
        self.record.detail = reason.map(|reason| reason.detail.clone());
        self.record.result_json = (!result.is_null()).then(|| result.to_string());
        self.record.updated_at_ms = clock::now_ms();
    }

    async fn save(&mut self) -> Result<(), Refusal> {
        self.record.updated_at_ms = clock::now_ms();
        self.write().await
    }

    async fn write(&mut self) -> Result<(), Refusal> {
        let record = self.record.clone();
        if self.is_stored {
            return self.records.write("update_receipt", move |ledger| ledger.update_receipt(record)).await;
        }
        self.records.write("insert_receipt", move |ledger| ledger.insert_receipt(record)).await?;
        self.is_stored = true;
        Ok(())
    }
}

/// What becomes of a stored receipt whose operation will not go on.
pub(crate) fn unfinished(record: &ReceiptRecord) -> Unfinished {
    // The words are the same on both sides; one that were not would count as sent.
    let state = receipt::ReceiptState::parse(record.state.as_str()).unwrap_or(receipt::ReceiptState::InFlight);
    let steps: Vec<(&str, receipt::StepState)> = record
        .steps
        .iter()
        .map(|step| {
            let state = receipt::StepState::parse(step.state.as_str()).unwrap_or(receipt::StepState::Unknown);
            (step.name.as_str(), state)
        })
        .collect();
    receipt::unfinished(state, &steps)
}

/// A receipt as clients see it.
pub(crate) fn view(record: &ReceiptRecord, replayed: bool) -> ReceiptView {
    ReceiptView {
        client_action_id: record.client_action_id.clone(),
        session_id: record.session_id.clone(),
        operation_id: record.operation_id.clone(),
        state: record.state.as_str().to_owned(),
        code: record.code.clone(),
        detail: record.detail.clone(),
        steps: record
            .steps
            .iter()
            .map(|step| ReceiptStep {
                name: step.name.clone(),
                state: step.state.as_str().to_owned(),
                code: step.code.clone(),
            })
            .collect(),
        result: record.result_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null),
        created_at: clock::rfc3339(record.created_at_ms),
        updated_at: clock::rfc3339(record.updated_at_ms),
        request_id: record.request_id.clone(),
        replayed,
    }
}
