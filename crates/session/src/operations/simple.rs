//! Operations of one call: rewind, resume, compact, model and title.

use std::sync::Arc;

use agent_contract::ContractError;
use rules::evidence::Evidence;
use rules::log::ExecutionStatus;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};
use store::ReceiptState;

use super::Ask;
use super::step::Step;
use crate::offer::can_resume;
use crate::profile::choice_profile;
use crate::records::OpenReceipt;
use crate::server::{VerifiedServer, event_id as checked_event_id, profile_name};
use crate::session::Session;

impl Session {
    fn open(&self, ask: &Ask) -> OpenReceipt {
        let record = ask.record(Some(self.id().as_str()), ReceiptState::InFlight);
        OpenReceipt::begin(&self.shared().records, record)
    }

    fn check_not_running(&self) -> Result<(), Refusal> {
        let state = self.state();
        if state.status == ExecutionStatus::Running || !state.quiet.is_quiet() {
            return Err(Refusal::new(RefusalCode::SessionRunning, "the agent runs; wait for it or interrupt it"));
        }
        Ok(())
    }

    pub(crate) async fn rewind(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        event_id: &str,
    ) -> Result<(), Refusal> {
        self.check_not_running()?;
        self.wait_settled(server).await?;
        let is_safe = self.state().branch()?.safe_points().iter().any(|event| event.event_id == event_id);
        if !is_safe {
            let detail = format!("{event_id} is no safe point of the active branch; choose one of choices.rewind");
            return Err(Refusal::new(RefusalCode::NotASafePoint, detail));
        }
        let target = checked_event_id(event_id)?;
        let mut receipt = self.open(ask);
        receipt.step_intent("navigate", &Evidence::Head { event_id: event_id.to_owned() }).await?;
        let outcome = server.client().navigate(self.id(), &target).await;
        if let Ok(info) = &outcome {
            let mut state = self.state();
            state.leaf.clone_from(&info.leaf_event_id);
            state.status = info.status;
            state.info = Some(info.clone());
        }
        if outcome.as_ref().is_ok_and(|info| info.leaf_event_id.as_deref() != Some(event_id)) {
            let reason = Refusal::new(RefusalCode::NoEvidence, "the server answered and its head is elsewhere");
            return receipt.close_unknown(&reason, Value::Null).await;
        }
        self.settle_call(server, receipt, outcome.map(|_| ()), json!({"event_id": event_id})).await?;
        self.after_change(server).await
    }

    pub(crate) async fn resume(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        interrupts: u64,
    ) -> Result<(), Refusal> {
        // A turn that runs may run for long: said at once, not after a wait.
        self.check_not_running()?;
        self.wait_settled(server).await?;
        let grant = self.ask_gate(server, Step::Run)?;
        if !can_resume(self.state().status) {
            return Err(Refusal::new(RefusalCode::NotAdvertised, "the turn has ended; send a prompt to begin another"));
        }
        let mut receipt = self.open(ask);
        let after_event_id = self.state().log.mirror.last_event_id().map(str::to_owned);
        receipt.step_intent("run", &Evidence::Run { after_event_id }).await?;
        if let Err(refusal) = self.check_not_stopped(interrupts) {
            return receipt.close_not_sent(&refusal).await;
        }
        self.state().quiet.note_step_call();
        let outcome = server.client().run(grant, self.id()).await;
        let answered_badly = outcome.as_ref().is_err_and(ContractError::was_answered);
        if let Err(error) = &outcome {
            self.end_unless_begun(server, error).await;
            if !error.may_have_been_sent() {
                self.state().quiet.note_step_over();
            }
        }
        self.mark_stale();
        self.settle_call(server, receipt, outcome, Value::Null).await?;
        if answered_badly {
            self.note_nothing_begins(server).await;
        }
        Ok(())
    }

    pub(crate) async fn compact(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        interrupts: u64,
    ) -> Result<(), Refusal> {
        // A turn that runs may run for long: said at once, not after a wait.
        self.check_not_running()?;
        self.wait_settled(server).await?;
        let grant = self.ask_gate(server, Step::Condense)?;
        let mut receipt = self.open(ask);
        receipt.step_intent("condense", &Evidence::Nothing).await?;
        if let Err(refusal) = self.check_not_stopped(interrupts) {
            return receipt.close_not_sent(&refusal).await;
        }
        self.state().quiet.note_step_call();
        let outcome = server.client().condense(grant, self.id()).await;
        let is_over = |error: &ContractError| error.was_answered() || !error.may_have_been_sent();
        if let Err(error) = &outcome {
            self.end_unless_begun(server, error).await;
        }
        if outcome.is_ok() || outcome.as_ref().is_err_and(is_over) {
            // It takes its step before it answers, well or not.
            self.state().quiet.note_step_over();
        }
        self.mark_stale();
        self.settle_call(server, receipt, outcome, Value::Null).await
    }

    pub(crate) async fn set_model(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        model: &str,
    ) -> Result<(), Refusal> {
        self.check_not_running()?;
        let choices = self.shared().settings.model.as_ref().map(|model| model.choices.clone()).unwrap_or_default();
        let position = choices.iter().position(|choice| choice == model).ok_or_else(|| {
            Refusal::new(RefusalCode::ModelNotReviewed, format!("{model} is not among [model] choices"))
        })?;
        let profile = profile_name(&choice_profile(position))?;
        let mut receipt = self.open(ask);
        receipt.step_intent("switch_profile", &Evidence::Model { model: model.to_owned() }).await?;
        let outcome = server.client().switch_profile(self.id(), &profile).await;
        self.settle_call(server, receipt, outcome, json!({"model": model})).await?;
        self.observe(server).await
    }

    pub(crate) async fn set_title(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        ask: &Ask,
        title: &str,
    ) -> Result<(), Refusal> {
        let mut receipt = self.open(ask);
        receipt.step_intent("set_title", &Evidence::Title { title: title.to_owned() }).await?;
        if let Err(error) = server.client().set_title(self.id(), title).await {
            return self.settle_failure(server, receipt, &error).await;
        }
        let record = {
            let mut state = self.state();
            state.record.title = Some(title.to_owned());
            state.record.changed_by.clone_from(&ask.caller.name);
            state.record.changed_at_ms = crate::clock::now_ms();
            state.record.clone()
        };
        receipt.done_with_session(record, json!({"title": title})).await?;
        self.close_again_if_closed(&ask.caller.name).await
    }
}
