//! `session.fork`: a new session from the last safe point, so that nothing pending goes with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_contract::SessionId;
use rules::branch::active_branch;
use rules::evidence::Evidence;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};
use store::{ReceiptState, SessionOrigin, SessionRecord, StepState};

use super::Ask;
use crate::clock;
use crate::records::OpenReceipt;
use crate::server::{VerifiedServer, event_id};
use crate::session::Session;
use crate::upstream;

impl Session {
    pub(crate) async fn fork(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        title: Option<&str>,
        chosen: Option<&str>,
    ) -> Result<(), Refusal> {
        let point = {
            let state = self.state();
            let branch = state.branch()?;
            let point = branch.last_safe_point().ok_or_else(|| {
                Refusal::new(RefusalCode::NotASafePoint, "the conversation has no safe point to fork from yet")
            })?;
            point.event_id.clone()
        };
        let fork_id = chosen.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
        if self.shared().session(&fork_id).is_some() {
            return Err(Refusal::new(RefusalCode::SessionExists, format!("session {fork_id} stands already")));
        }
        let parsed =
            SessionId::parse(&fork_id).map_err(|error| Refusal::new(RefusalCode::InvalidValue, error.to_string()))?;
        self.check_fork_id_is_free(server, &parsed, chosen.is_some()).await?;
        let from = event_id(&point)?;
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let mut receipt = OpenReceipt::begin(&self.shared().records, record);
        let evidence = Evidence::Fork { session_id: fork_id.clone(), from_event_id: point.clone() };
        receipt.step_intent("fork", &evidence).await?;
        if let Err(error) = server.client().fork(self.id(), &parsed, &from, title).await {
            return self.settle_failure(server, receipt, &error).await;
        }
        // Recorded before the step is done: a fork that nobody knew of could not be found again.
        let fork = self.enter_fork(parsed, &point, title, &ask.caller.name).await?;
        receipt.step_outcome(StepState::Done, None).await?;
        receipt.step_intent("set_policy", &evidence).await?;
        match fork.bind(server).await {
            Ok(()) => receipt.done(json!({"session_id": fork_id, "from_event_id": point})).await,
            Err(refusal) => {
                // The fork stands and is blocked until it can be read.
                receipt.close_unknown(&refusal, Value::Null).await
            }
        }
    }

    /// A fork that is found under its id later must be this one.
    async fn check_fork_id_is_free(
        &self,
        server: &VerifiedServer,
        fork_id: &SessionId,
        chosen: bool,
    ) -> Result<(), Refusal> {
        // Nobody else has drawn the number that was drawn here.
        if !chosen {
            return Ok(());
        }
        let taken = || Refusal::new(RefusalCode::SessionExists, format!("{} was used before", fork_id.as_str()));
        let key = fork_id.as_str().to_owned();
        if self.shared().records.ledger(move |ledger| ledger.session(&key)).await?.is_some() {
            return Err(taken());
        }
        match server.client().conversation(fork_id).await {
            Ok(_) => Err(taken()),
            Err(error) if error.refused_status() == Some(404) => Ok(()),
            Err(error) => Err(upstream::refusal(&error)),
        }
    }

    /// Records the fork of this session that was taken at an event, and knows it from here on.
    ///
    /// # Errors
    /// `branch_unreadable`, `store_failed`.
    pub(crate) async fn enter_fork(
        self: &Arc<Self>,
        fork_id: SessionId,
        from_event_id: &str,
        title: Option<&str>,
        caller: &str,
    ) -> Result<Arc<Self>, Refusal> {
        let copied: BTreeSet<String> = {
            let state = self.state();
            let branch = active_branch(state.log.mirror.events(), Some(from_event_id)).map_err(Refusal::from)?;
            branch.events().iter().map(|event| event.event_id.clone()).collect()
        };
        let now_ms = clock::now_ms();
        let record = SessionRecord {
            session_id: fork_id.as_str().to_owned(),
            workspace: self.workspace().to_string_lossy().into_owned(),
            title: title.map(str::to_owned),
            origin: SessionOrigin::Forked,
            parent_session_id: Some(self.id().as_str().to_owned()),
            baseline_event_id: Some(from_event_id.to_owned()),
            created_at_ms: now_ms,
            closed_at_ms: None,
            changed_by: caller.to_owned(),
            changed_at_ms: now_ms,
        };
        let stored = record.clone();
        self.shared().records.write("put_session", move |ledger| ledger.put_session(stored)).await?;
        let fork = Session::new(self.shared(), fork_id, record, BTreeSet::new());
        fork.state().log.baseline = copied;
        Ok(self.shared().enter(fork))
    }
}
