//! Asking the gate, and sending one step-causing call.

use std::sync::Arc;
use std::time::Duration;

use agent_contract::ContractError;
use rules::approval::AcceptRequest;
use rules::gate::{GateInput, StepGrant, StepRequest, gate};
use rules::quiet::QuietState;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::Value;
use store::StepState;

use crate::clock;
use crate::records::OpenReceipt;
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::state::State;
use crate::upstream::{self, Failure};

/// How long the server may take to wind the last run down once its status is terminal.
const SETTLE_WAIT: Duration = Duration::from_secs(10);
const SETTLE_POLL: Duration = Duration::from_millis(25);

/// How long the run of a call that got no answer may take to be seen to begin.
const BEGIN_WAIT: Duration = Duration::from_secs(5);
const BEGIN_POLL: Duration = Duration::from_millis(100);

/// Which call the gate is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'a> {
    Message,
    Run,
    Condense,
    Accept { approval_id: &'a str, token_name: &'a str },
}

impl State {
    /// Why what was decided when the interrupts were counted does not go out any more, if it does not.
    pub(crate) fn stopped_since(&self, interrupts: u64) -> Option<Refusal> {
        if self.closed || self.closing {
            return Some(Refusal::new(RefusalCode::SessionClosed, "the session was closed before this was sent"));
        }
        let detail = "an interrupt came before this was sent";
        (self.interrupts != interrupts).then(|| Refusal::new(RefusalCode::Interrupted, detail))
    }
}

impl Session {
    /// Asks the gate on what was just read.
    ///
    /// # Errors
    /// Whatever speaks against it.
    pub(crate) fn ask_gate(&self, server: &VerifiedServer, step: Step<'_>) -> Result<StepGrant, Refusal> {
        let mut state = self.state();
        state.judge(self.id().as_str());
        let branch = state.branch()?;
        let info = state
            .info
            .as_ref()
            .ok_or_else(|| Refusal::new(RefusalCode::ServerUnavailable, "the conversation was not read yet"))?;
        let request = match step {
            Step::Message => StepRequest::Message,
            Step::Run => StepRequest::Run,
            Step::Condense => StepRequest::Condense,
            Step::Accept { approval_id, token_name } => StepRequest::Accept(AcceptRequest {
                approval_id,
                token_name,
                server_start_id: server.start_id(),
                workdir: &state.record.workspace,
                policy: &info.policy_kind,
                now_ms: u64::try_from(clock::steady_ms()).unwrap_or(0),
                book: &state.book,
                redactor: server.redactor(),
            }),
        };
        let canaries = state.all_canaries();
        gate(&GateInput {
            session_id: self.id().as_str(),
            request,
            branch: &branch,
            status: state.status,
            quiet: state.quiet.state(),
            sent: &state.sent,
            blocked: state.tripped.as_ref().map(|tripped| &tripped.refusal),
            canaries: &canaries,
        })
    }

    /// Waits until the server has wound its last run down: before that it answers success and does nothing.
    ///
    /// # Errors
    /// `session_not_quiet` when it takes too long, `server_unavailable` when it cannot be asked.
    pub(crate) async fn wait_settled(&self, server: &VerifiedServer) -> Result<(), Refusal> {
        let control = server.owned().control();
        let deadline = tokio::time::Instant::now() + SETTLE_WAIT;
        loop {
            let settled = control
                .settled(self.id().as_str())
                .await
                .map_err(|error| Refusal::new(RefusalCode::ServerUnavailable, error.to_string()))?;
            if settled {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(Refusal::new(RefusalCode::SessionNotQuiet, "the server is still ending its last run"));
            }
            tokio::time::sleep(SETTLE_POLL).await;
        }
    }

    /// A step-causing call that got no answer may be carried out at any later time, and would then run what is pending by
    /// then. Unless its run is seen to begin, the server it was sent to is ended: nothing else makes sure that it never is.
    ///
    /// To be called under the session's lock, so that nothing else declares the step over meanwhile.
    pub(crate) async fn end_unless_begun(self: &Arc<Self>, server: &Arc<VerifiedServer>, error: &ContractError) {
        if !error.may_have_been_sent() || error.was_answered() {
            return;
        }
        let deadline = tokio::time::Instant::now() + BEGIN_WAIT;
        while tokio::time::Instant::now() < deadline && !server.is_gone() {
            // A read that fails says nothing; the next one may.
            if self.pull(server).await.is_ok() && self.state().quiet.state() != QuietState::AwaitingStart {
                return;
            }
            tokio::time::sleep(BEGIN_POLL).await;
        }
        let session = self.id().as_str();
        tracing::error!(session, %error, "a step got no answer and was not seen to begin; its server is ended");
        server.kill().await;
    }

    /// What a decision that is about to go out is compared with, see [`Self::check_not_stopped`].
    pub(crate) fn interrupts(&self) -> u64 {
        self.state().interrupts
    }

    /// Whether the session was neither interrupted nor closed since the interrupts were counted.
    ///
    /// # Errors
    /// `interrupted` or `session_closed`.
    pub(crate) fn check_not_stopped(&self, interrupts: u64) -> Result<(), Refusal> {
        self.state().stopped_since(interrupts).map_or(Ok(()), Err)
    }

    /// A record that was stored while the session was being closed opened it again.
    pub(crate) async fn close_again_if_closed(&self, caller: &str) -> Result<(), Refusal> {
        if !self.state().closed {
            return Ok(());
        }
        let (id, by) = (self.id().as_str().to_owned(), caller.to_owned());
        self.shared()
            .records
            .write("close_session", move |ledger| ledger.close_session(&id, clock::now_ms(), &by))
            .await
    }

    /// Once the server has answered an interrupt, or a step-causing call in whatever way, a run that is neither under way nor
    /// was seen to begin will not begin: without this, a session whose last call did nothing would never be quiet again.
    pub(crate) async fn note_nothing_begins(self: &Arc<Self>, server: &Arc<VerifiedServer>) {
        if self.wait_settled(server).await.is_err() || self.observe(server).await.is_err() {
            return;
        }
        let ended = {
            let mut state = self.state();
            let ended = state.status.is_terminal();
            if ended {
                state.quiet.note_step_over();
            }
            ended
        };
        if ended && let Err(refusal) = self.after_change(server).await {
            tracing::warn!(session = self.id().as_str(), %refusal, "what follows from it could not be recorded");
        }
        self.mark_stale();
    }

    /// Records what came of a call, and closes the receipt with it.
    pub(crate) async fn settle_call(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        mut receipt: OpenReceipt,
        outcome: Result<(), ContractError>,
        result: Value,
    ) -> Result<(), Refusal> {
        match outcome {
            Ok(()) => receipt.done(result).await,
            Err(error) => self.settle_failure(server, receipt, &error).await,
        }
    }

    /// The same for a call that did not answer well. Where it may have taken effect, the conversation is read for what
    /// shows it: now, or when the session is on a server again.
    pub(crate) async fn settle_failure(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        mut receipt: OpenReceipt,
        error: &ContractError,
    ) -> Result<(), Refusal> {
        let reason = upstream::refusal(error);
        match upstream::failure(error) {
            Failure::NotSent => receipt.close_not_sent(&reason).await,
            Failure::Refused => receipt.close_failed(&reason, Value::Null).await,
            Failure::Unknown => {
                receipt.step_outcome(StepState::Unknown, Some(&reason)).await?;
                self.leave_unresolved(receipt.into_record());
                if let Err(refusal) = self.observe(server).await {
                    tracing::debug!(session = self.id().as_str(), %refusal, "what came of a step is looked for later");
                }
                Ok(())
            }
        }
    }
}
