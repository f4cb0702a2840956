//! Carrying out an operation: the receipt first, then one reviewed call after the other.

mod acknowledge;
mod decide;
mod fork;
mod interrupt;
mod prompt;
mod provider;
mod simple;
mod step;

use std::sync::Arc;
use std::time::Duration;

use rules::catalog::{Decision, OperationInput};
use rules::refusal::{Refusal, RefusalCode};
use rules::request_id::RequestId;
use store::{ReceiptRecord, ReceiptState};

use crate::clock;
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::view::Caller;

pub(crate) use provider::read as read_provider;

/// How long an operation waits for the one before it in the same session.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// What is asked, by whom, under which key.
pub(crate) struct Ask {
    pub(crate) caller: Caller,
    pub(crate) client_action_id: String,
    pub(crate) fingerprint: String,
    pub(crate) input: OperationInput,
    pub(crate) capability_generation: Option<u64>,
    pub(crate) request_id: Option<RequestId>,
}

impl Ask {
    /// The receipt as it begins.
    pub(crate) fn record(&self, session_id: Option<&str>, state: ReceiptState) -> ReceiptRecord {
        let now_ms = clock::now_ms();
        ReceiptRecord {
            client_action_id: self.client_action_id.clone(),
            session_id: session_id.map(str::to_owned),
            operation_id: self.input.operation().as_str().to_owned(),
            fingerprint: self.fingerprint.clone(),
            caller: self.caller.name.clone(),
            state,
            code: None,
            detail: None,
            input_json: self.input.canonical().to_string(),
            result_json: None,
            steps: Vec::new(),
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            request_id: self.request_id.as_ref().map(|id| id.as_str().to_owned()),
        }
    }
}

impl Session {
    /// Carries out a session operation, unless an interrupt came since they were counted. An error means that nothing was recorded; whatever comes later stands in the
    /// receipt.
    ///
    /// # Errors
    /// The refusal that came before the intent.
    pub(crate) async fn carry_out(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        interrupts: u64,
    ) -> Result<(), Refusal> {
        // These do not wait for whatever holds the session, and need no canary but the server's own.
        match &ask.input {
            OperationInput::TurnInterrupt => return self.interrupt(server, ask).await,
            OperationInput::ApprovalDecide { approval_id, decision: Decision::Reject { reason } } => {
                return self.reject(server, ask, approval_id, reason.as_deref()).await;
            }
            OperationInput::ApprovalDecide { decision: Decision::Accept, .. }
            | OperationInput::PromptSend { .. }
            | OperationInput::Fork { .. }
            | OperationInput::Rewind { .. }
            | OperationInput::Resume
            | OperationInput::Compact
            | OperationInput::ModelSet { .. }
            | OperationInput::TitleSet { .. }
            | OperationInput::BlockAcknowledge { .. }
            | OperationInput::ProviderAuthRead { .. }
            | OperationInput::ProviderConfigRead { .. }
            | OperationInput::ProviderUsageRead { .. }
            | OperationInput::ProviderDiagnosticsRead { .. } => {}
        }
        let _lock = tokio::time::timeout(LOCK_WAIT, self.lock.lock()).await.map_err(|_elapsed| {
            Refusal::new(
                RefusalCode::SessionRunning,
                "another operation of this session is being carried out; try again",
            )
        })?;
        // Before the read, not only before the call: what the server was still ending shows in it then.
        let ended = {
            let state = self.state();
            state.quiet.is_quiet() && state.status.is_terminal()
        };
        if ended {
            self.wait_settled(server).await?;
        }
        self.observe(server).await?;
        let ends_now = {
            let state = self.state();
            !ended && state.quiet.is_quiet() && state.status.is_terminal()
        };
        if ends_now {
            // It ended between the two: what it was still writing counts.
            self.wait_settled(server).await?;
            self.observe(server).await?;
        }
        if let OperationInput::BlockAcknowledge { block_id } = &ask.input {
            return self.acknowledge(ask, block_id).await;
        }
        self.check_generation(ask.capability_generation)?;
        self.check_unblocked()?;
        match &ask.input {
            OperationInput::PromptSend { text, on_pending } => {
                self.prompt(server, ask, text, *on_pending, interrupts).await
            }
            OperationInput::ApprovalDecide { approval_id, decision: Decision::Accept } => {
                self.accept(server, ask, approval_id, interrupts).await
            }
            OperationInput::Fork { title, session_id } => {
                self.fork(server, ask, title.as_deref(), session_id.as_deref()).await
            }
            OperationInput::Rewind { event_id } => self.rewind(server, ask, event_id).await,
            OperationInput::Resume => self.resume(server, ask, interrupts).await,
            OperationInput::Compact => self.compact(server, ask, interrupts).await,
            OperationInput::ModelSet { model } => self.set_model(server, ask, model).await,
            OperationInput::TitleSet { title } => self.set_title(server, ask, title).await,
            OperationInput::TurnInterrupt
            | OperationInput::ApprovalDecide { decision: Decision::Reject { .. }, .. }
            | OperationInput::BlockAcknowledge { .. }
            | OperationInput::ProviderAuthRead { .. }
            | OperationInput::ProviderConfigRead { .. }
            | OperationInput::ProviderUsageRead { .. }
            | OperationInput::ProviderDiagnosticsRead { .. } => {
                Err(Refusal::new(RefusalCode::Internal, "this operation is not carried out under a session's lock"))
            }
        }
    }

    /// INVARIANT I10: while a canary fails, nothing that is guarded is sent.
    pub(crate) fn check_unblocked(&self) -> Result<(), Refusal> {
        let state = self.state();
        if state.closed {
            return Err(Refusal::new(RefusalCode::SessionClosed, "the session was closed"));
        }
        match state.block() {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }
}
