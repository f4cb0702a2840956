//! Steps that got no answer: what a later read of the conversation shows of them.

use std::pin::Pin;
use std::sync::Arc;

use agent_contract::SessionId;
use rules::approval::accept_evidence;
use rules::evidence::{Evidence, Seen, is_shown};
use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};
use store::ReceiptRecord;

use crate::records::{OpenReceipt, evidence_sought};
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::state::OpenDecision;
use crate::upstream;

impl Session {
    /// Takes a receipt whose last step was sent and has no outcome, until the conversation is read again.
    pub(crate) fn leave_unresolved(&self, record: ReceiptRecord) {
        let Evidence::Observations { event_ids } = evidence_sought(&record) else {
            self.state().unresolved.push(record);
            return;
        };
        // An accept that a daemon before this one sent: closed as any that outlived its server.
        let decision = OpenDecision {
            approval_id: input_text(&record, "approval_id").unwrap_or_default(),
            client_action_id: record.client_action_id,
            event_ids,
            server_start_id: String::new(),
            not_sent: None,
        };
        self.state().open_decisions.push(decision);
    }

    /// Closes every receipt whose step got no answer, by what was read just now: applied when it is shown, unknown when it
    /// is not. What cannot be looked for yet waits for the next read, and hinders nothing else.
    pub(crate) async fn resolve_unanswered(self: &Arc<Self>, server: &Arc<VerifiedServer>) {
        if self.state().info.is_none() {
            return;
        }
        let waiting = std::mem::take(&mut self.state().unresolved);
        for record in waiting {
            if let Err(refusal) = self.resolve_by_evidence(server, record.clone()).await {
                let action = record.client_action_id.as_str();
                tracing::warn!(session = self.id().as_str(), action, %refusal, "what came of a step is looked for later");
                self.state().unresolved.push(record);
            }
        }
    }

    /// Closes what is open by what the conversation shows now, before the session is closed: nobody looks later.
    ///
    /// # Errors
    /// `store_failed`.
    pub(crate) async fn close_what_is_open(
        self: &Arc<Self>,
        server: Option<&Arc<VerifiedServer>>,
    ) -> Result<(), Refusal> {
        if let Some(server) = server
            && let Err(refusal) = self.observe(server).await
        {
            tracing::debug!(session = self.id().as_str(), %refusal, "what was read before must do");
        }
        let _one_at_a_time = self.consequences.lock().await;
        self.withdraw_not_sent().await?;
        let decisions = self.current().open_decisions.clone();
        for decision in decisions {
            let answers = self.answers(&decision.event_ids).unwrap_or_else(|_| vec![None; decision.event_ids.len()]);
            self.close_decision(&decision, &answers, accept_evidence(&answers)).await?;
        }
        let unresolved = std::mem::take(&mut self.state().unresolved);
        for record in unresolved {
            self.close_unknown(record).await?;
        }
        Ok(())
    }

    async fn close_unknown(&self, record: ReceiptRecord) -> Result<(), Refusal> {
        let step = record.steps.last().map(|step| step.name.clone()).unwrap_or_default();
        let detail = format!("{step} was sent and its outcome is not known; look at the events");
        let reason = Refusal::new(RefusalCode::OutcomeUnknown, detail);
        OpenReceipt::resume(&self.shared().records, record).close_unknown(&reason, Value::Null).await
    }

    async fn resolve_by_evidence(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        record: ReceiptRecord,
    ) -> Result<(), Refusal> {
        let evidence = evidence_sought(&record);
        let fork_id = if let Evidence::Fork { session_id, from_event_id } = &evidence {
            self.find_fork(server, session_id, from_event_id, &record).await?
        } else {
            None
        };
        let shown = {
            let state = self.state();
            let info = state.info.as_ref();
            let seen = Seen {
                events: state.log.mirror.events(),
                branch: &state.branch()?,
                title: info.and_then(|info| info.title.as_deref()),
                model: info.and_then(|info| info.model()),
                fork_is_there: fork_id.is_some(),
            };
            is_shown(&evidence, &seen)
        };
        if !shown {
            return self.close_unknown(record).await;
        }
        let mut result = json!({"evidence": "event_log"});
        if let Some(fork_id) = fork_id {
            result["session_id"] = json!(fork_id);
        }
        OpenReceipt::resume(&self.shared().records, record).done(result).await
    }

    /// Takes up the fork that a step made whose answer was lost, if it is there.
    async fn find_fork(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        session_id: &str,
        from_event_id: &str,
        record: &ReceiptRecord,
    ) -> Result<Option<String>, Refusal> {
        let id =
            SessionId::parse(session_id).map_err(|error| Refusal::new(RefusalCode::StoreFailed, error.to_string()))?;
        match server.client().conversation(&id).await {
            Ok(_) => {}
            Err(error) if error.refused_status() == Some(404) => return Ok(None),
            Err(error) => return Err(upstream::refusal(&error)),
        }
        let fork = self.enter_fork(id, from_event_id, input_text(record, "title").as_deref(), &record.caller).await?;
        // It stands either way, and is blocked until it can be read.
        if let Err(refusal) = bind(fork, Arc::clone(server)).await {
            tracing::warn!(session = session_id, %refusal, "a fork that was found could not be put on its server");
        }
        Ok(Some(session_id.to_owned()))
    }
}

/// Boxed: to be put on the server, the fork is read, and a read ends here.
fn bind(fork: Arc<Session>, server: Arc<VerifiedServer>) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send>> {
    Box::pin(async move { fork.bind(&server).await })
}

/// A text of what was asked.
pub(crate) fn input_text(record: &ReceiptRecord, name: &str) -> Option<String> {
    let input: Value = serde_json::from_str(&record.input_json).ok()?;
    input.get(name).and_then(Value::as_str).map(str::to_owned)
}
