//! `session.fork`: a new session from the last safe point, so that nothing pending goes with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_contract::SessionId;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};
use store::{ReceiptState, SessionOrigin, SessionRecord, StepState};

use super::Ask;
use crate::clock;
use crate::records::OpenReceipt;
use crate::server::{VerifiedServer, event_id};
use crate::session::Session;

impl Session {
    pub(crate) async fn fork(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        title: Option<&str>,
        chosen: Option<&str>,
    ) -> Result<(), Refusal> {
        let (point, copied) = {
            let state = self.state();
            let branch = state.branch()?;
            let point = branch.last_safe_point().ok_or_else(|| {
                Refusal::new(RefusalCode::NotASafePoint, "the conversation has no safe point to fork from yet")
            })?;
            let events = branch.events();
            let end = events.iter().position(|event| event.event_id == point.event_id).map_or(0, |at| at + 1);
            let copied: BTreeSet<String> = events.iter().take(end).map(|event| event.event_id.clone()).collect();
            (point.event_id.clone(), copied)
        };
        let fork_id = chosen.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
        if self.shared().session(&fork_id).is_some() {
            return Err(Refusal::new(RefusalCode::SessionExists, format!("session {fork_id} stands already")));
        }
        let parsed =
            SessionId::parse(&fork_id).map_err(|error| Refusal::new(RefusalCode::InvalidValue, error.to_string()))?;
        let from = event_id(&point)?;
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        let mut receipt = OpenReceipt::create(&self.shared().records, record).await?;
        receipt.step_intent("fork").await?;
        if let Err(error) = server.client().fork(self.id(), &parsed, &from, title).await {
            return self.settle_failure(&mut receipt, &error).await;
        }
        receipt.step_outcome(StepState::Done, None).await?;
        let now_ms = clock::now_ms();
        let record = SessionRecord {
            session_id: fork_id.clone(),
            workspace: self.workspace().to_string_lossy().into_owned(),
            title: title.map(str::to_owned),
            origin: SessionOrigin::Forked,
            parent_session_id: Some(self.id().as_str().to_owned()),
            baseline_event_id: Some(point.clone()),
            created_at_ms: now_ms,
            closed_at_ms: None,
            changed_by: ask.caller.name.clone(),
            changed_at_ms: now_ms,
        };
        let stored = record.clone();
        self.shared().records.write("put_session", move |ledger| ledger.put_session(stored)).await?;
        let fork = Session::new(self.shared(), parsed, record, BTreeSet::new());
        fork.state().baseline = copied;
        let fork = self.shared().enter(fork);
        receipt.step_intent("set_policy").await?;
        let result = json!({"session_id": fork_id, "from_event_id": point});
        match fork.bind(server).await {
            Ok(()) => {
                receipt.step_outcome(StepState::Done, None).await?;
                receipt.finish(ReceiptState::Applied, None, result).await
            }
            Err(refusal) => {
                // The fork stands and is blocked until it can be read.
                receipt.step_outcome(StepState::Unknown, Some(&refusal)).await?;
                receipt.finish(ReceiptState::OutcomeUnknown, Some(&refusal), Value::Null).await
            }
        }
    }
}
