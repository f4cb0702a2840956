//! From a request to its receipt: look up, authorise, carry out on a task of its own.

use std::sync::Arc;
use std::time::Duration;

use rules::canary::CanaryScope;
use rules::catalog::OperationInput;
use rules::operation::OperationScope;
use rules::receipt::{Unfinished, fingerprint};
use rules::refusal::{Refusal, RefusalCode};
use rules::role::authorize_operation;
use store::{ReceiptRecord, ReceiptState};

use crate::evidence::input_text;
use crate::operations::{Ask, read_provider};
use crate::records::{self, OpenReceipt};
use crate::request;
use crate::server::{CANARY_EXPIRY_MS, VerifiedServer};
use crate::session::Session;
use crate::state::OpenDecision;
use crate::supervisor::{Claim, Supervisor};
use crate::view::{ActionRequest, Caller, ReceiptView};

/// How long a reply waits for a final state.
const REPLY_WAIT: Duration = Duration::from_secs(20);

impl Supervisor {
    /// Carries out an operation, waiting a bounded time for its end. A client that hangs up cancels nothing.
    ///
    /// # Errors
    /// A refusal before the intent; it does not use the key up.
    pub async fn act(&self, caller: &Caller, request: ActionRequest) -> Result<ReceiptView, Refusal> {
        rules::catalog::validate_client_action_id(&request.client_action_id)?;
        let operation = request.input.operation();
        let canonical = request.input.canonical();
        let print = fingerprint(request.session_id.as_deref(), operation, &canonical);
        // First, so that one look-up tells: nobody else records the key meanwhile. A caller who may not ask claims none.
        let claim =
            authorize_operation(caller.roles, &request.input).and_then(|()| self.claim(&request.client_action_id));
        if let Some(record) = self.known(&request.client_action_id, &print).await? {
            return Ok(records::view(&record, true));
        }
        let claim = claim?;
        if request.input.needs_generation() && request.capability_generation.is_none() {
            let detail = "send the `capability_generation` of the snapshot that this was decided on";
            return Err(Refusal::new(RefusalCode::GenerationMissing, detail));
        }
        if self.is_stopping() {
            return Err(Refusal::new(RefusalCode::ShuttingDown, "the daemon is stopping"));
        }
        let ask = Ask {
            caller: caller.clone(),
            client_action_id: request.client_action_id,
            fingerprint: print,
            input: request.input,
            capability_generation: request.capability_generation,
            request_id: request::current(),
        };
        let id = ask.client_action_id.clone();
        let supervisor = self.clone();
        let session_id = request.session_id;
        let task = request::spawn(async move { supervisor.perform(session_id, ask, claim).await });
        let performed = match task.await {
            Ok(performed) => performed,
            Err(error) => Err(Refusal::new(RefusalCode::Internal, error.to_string())),
        };
        if let Err(refusal) = performed {
            match self.open_decision(&id) {
                // Its accept never left, and is being taken back.
                Some(OpenDecision { not_sent: Some(_), .. }) => return Err(refusal),
                // The evidence closes it.
                Some(OpenDecision { not_sent: None, .. }) => {}
                None => match self.close_failed(&id, &refusal).await {
                    Ok(true) => tracing::warn!(action = id, %refusal, "the operation failed after its intent"),
                    Ok(false) => return Err(refusal),
                    Err(why) => {
                        tracing::warn!(action = id, %refusal, %why, "a failed operation is to be closed later");
                        self.note_unclosed(&id, &refusal);
                        return Err(why);
                    }
                },
            }
        }
        self.await_final(&id).await
    }

    fn open_decision(&self, client_action_id: &str) -> Option<OpenDecision> {
        let of = |session: &Arc<Session>| {
            let state = session.current();
            state.open_decisions.iter().find(|open| open.client_action_id == client_action_id).cloned()
        };
        self.shared().sessions().iter().find_map(of)
    }

    /// A failure after the intent belongs to the receipt; one before it is the caller's alone: then there is none.
    ///
    /// # Errors
    /// `store_failed`; the receipt is to be closed later.
    pub(crate) async fn close_failed(&self, client_action_id: &str, refusal: &Refusal) -> Result<bool, Refusal> {
        let Some(record) = self.shared().records.receipt(client_action_id).await? else { return Ok(false) };
        if record.state == ReceiptState::InFlight {
            self.close_interrupted(record, refusal).await?;
        }
        Ok(true)
    }

    /// The receipt of a key, when it is of the same content.
    async fn known(&self, client_action_id: &str, print: &str) -> Result<Option<ReceiptRecord>, Refusal> {
        let Some(record) = self.shared().records.receipt(client_action_id).await? else { return Ok(None) };
        if record.fingerprint != print {
            let detail = format!("action {client_action_id} was something else; use a new client_action_id");
            return Err(Refusal::new(RefusalCode::ClientActionIdReused, detail));
        }
        Ok(Some(record))
    }

    async fn perform(&self, session_id: Option<String>, ask: Ask, _claim: Claim) -> Result<(), Refusal> {
        match (ask.input.operation().scope(), session_id) {
            (OperationScope::Provider, None) => self.read_provider(&ask).await,
            (OperationScope::Session, Some(session_id)) => {
                let session = self.find(&session_id)?;
                // Before the server is started, which takes its time.
                let interrupts = session.interrupts();
                if ask.input == OperationInput::TurnInterrupt
                    && self.inner.servers.running(session.workspace()).is_none()
                {
                    return session.interrupt_stopped(&ask).await;
                }
                let server = self.server_of(&session).await?;
                session.carry_out(&server, &ask, interrupts).await
            }
            (OperationScope::Provider, Some(_)) => {
                Err(Refusal::new(RefusalCode::InvalidValue, "this operation is of no session; send it to /v1/actions"))
            }
            (OperationScope::Session, None) => {
                Err(Refusal::new(RefusalCode::InvalidValue, "this operation needs a session"))
            }
        }
    }

    /// The server a session is on, started and bound when need be.
    pub(crate) async fn server_of(&self, session: &Arc<Session>) -> Result<Arc<VerifiedServer>, Refusal> {
        if session.state().closed {
            return Err(Refusal::new(RefusalCode::SessionClosed, "the session was closed"));
        }
        let server = self.inner.servers.ensure(session.workspace()).await?;
        if crate::clock::steady_ms().saturating_sub(server.canaries().read_at_ms) >= CANARY_EXPIRY_MS {
            self.inner.servers.prove_again(&server).await?;
        }
        fit_for_sessions(&server)?;
        session.bind(&server).await?;
        Ok(server)
    }

    async fn read_provider(&self, ask: &Ask) -> Result<(), Refusal> {
        let server = match provider_workspace(&ask.input) {
            Some(workspace) => {
                let workspace = crate::supervisor::resolve_workspace(self.shared(), workspace)?;
                self.inner.servers.ensure(&workspace).await?
            }
            None => self.inner.servers.any().ok_or_else(|| {
                let detail = "no server is up; name a `workspace`, or start a session";
                Refusal::new(RefusalCode::ServerUnavailable, detail)
            })?,
        };
        let result = read_provider(self.shared(), &server, &ask.input).await?;
        let record = ask.record(None, ReceiptState::InFlight);
        let mut receipt = OpenReceipt::create(&self.shared().records, record).await?;
        receipt.finish(ReceiptState::Applied, None, result).await
    }

    /// Waits for the receipt to be final, or to be one that waits for the agent.
    async fn await_final(&self, client_action_id: &str) -> Result<ReceiptView, Refusal> {
        let deadline = tokio::time::Instant::now() + REPLY_WAIT;
        loop {
            let record = self
                .shared()
                .records
                .receipt(client_action_id)
                .await?
                .ok_or_else(|| Refusal::new(RefusalCode::Internal, "the operation ended without a receipt"))?;
            let changes = record
                .session_id
                .as_deref()
                .and_then(|session_id| self.shared().session(session_id))
                .map(|session| session.watch_changes());
            let (false, true, Some(mut changes)) =
                (record.state.is_final(), record.state == ReceiptState::InFlight, changes)
            else {
                return Ok(records::view(&record, false));
            };
            // A decision's evidence comes with the events.
            let poll = tokio::time::Instant::now() + Duration::from_millis(250);
            match tokio::time::timeout_at(poll.min(deadline), changes.changed()).await {
                Ok(_) => {}
                Err(_) if tokio::time::Instant::now() >= deadline => return Ok(records::view(&record, false)),
                Err(_) => {}
            }
        }
    }

    /// Receipts that an earlier daemon left open: a step that was never sent never will be; what came of one that was sent
    /// and has no outcome, the conversation shows once it is read. Queued prompts wait on.
    pub(crate) async fn close_interrupted_receipts(&self) -> Result<(), Refusal> {
        let open = self.shared().records.ledger(store::Ledger::receipts_open).await?;
        for record in open {
            if records::unfinished(&record) == Unfinished::Deliver {
                self.queue_again(&record).await?;
                continue;
            }
            let stopped = Refusal::new(RefusalCode::StoppedBeforeStep, "the daemon stopped before this step was sent");
            self.close_interrupted(record, &stopped).await?;
        }
        Ok(())
    }

    /// Closes a receipt whose operation will not go on: what was not sent never will be, and for what was sent without an
    /// outcome the session looks for evidence; without a session nobody can.
    async fn close_interrupted(&self, record: ReceiptRecord, why: &Refusal) -> Result<(), Refusal> {
        match records::unfinished(&record) {
            Unfinished::Nothing | Unfinished::Deliver => Ok(()),
            Unfinished::Stopped { done } => {
                let result = serde_json::json!({"steps_done": done});
                let mut receipt = OpenReceipt::resume(&self.shared().records, record);
                receipt.finish(ReceiptState::Rejected, Some(why), result).await
            }
            Unfinished::SeekEvidence { steps } => {
                let session = record.session_id.as_deref().and_then(|session_id| self.shared().session(session_id));
                if let Some(session) = session {
                    session.leave_unresolved(record);
                    session.mark_stale();
                    return Ok(());
                }
                let detail = format!("{} was sent and its outcome is not known", steps.join(", "));
                let reason = Refusal::new(RefusalCode::OutcomeUnknown, detail);
                OpenReceipt::resume(&self.shared().records, record)
                    .close_unknown(&reason, serde_json::Value::Null)
                    .await
            }
        }
    }

    async fn queue_again(&self, record: &ReceiptRecord) -> Result<(), Refusal> {
        let session = record.session_id.as_deref().and_then(|session_id| self.shared().session(session_id));
        if let (Some(session), Some(text)) = (session, input_text(record, "text")) {
            session
                .state()
                .queue
                .push_back(crate::state::QueuedPrompt { client_action_id: record.client_action_id.clone(), text });
            return Ok(());
        }
        let reason = Refusal::new(RefusalCode::SessionClosed, "the session of this prompt is closed");
        let mut receipt = OpenReceipt::resume(&self.shared().records, record.clone());
        receipt.finish(ReceiptState::Rejected, Some(&reason), serde_json::Value::Null).await
    }
}

/// Whether sessions may be put on a server, by its canaries as last read.
pub(crate) fn fit_for_sessions(server: &VerifiedServer) -> Result<(), Refusal> {
    rules::canary::passed(&server.canaries().results, &[CanaryScope::Installation, CanaryScope::Server])
}

/// The workspace whose server is asked, when one is named.
fn provider_workspace(input: &OperationInput) -> Option<&str> {
    match input {
        OperationInput::ProviderAuthRead { workspace }
        | OperationInput::ProviderConfigRead { workspace }
        | OperationInput::ProviderUsageRead { workspace }
        | OperationInput::ProviderDiagnosticsRead { workspace } => workspace.as_deref(),
        OperationInput::PromptSend { .. }
        | OperationInput::TurnInterrupt
        | OperationInput::ApprovalDecide { .. }
        | OperationInput::Fork { .. }
        | OperationInput::Rewind { .. }
        | OperationInput::Resume
        | OperationInput::Compact
        | OperationInput::ModelSet { .. }
        | OperationInput::TitleSet { .. }
        | OperationInput::BlockAcknowledge { .. } => None,
    }
}
