//! The latch of the start-up module: each way to run an action without a decision is held.

use super::stage::Stage;
use super::talk::Talk;
use agent_contract::SessionId;
use process::launch::Held;
use rules::log::ExecutionStatus;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;

/// A conversation with a pending command, and what the latch reports from then on.
struct Waiting {
    talk: Talk,
    pending: Vec<String>,
    held: Receiver<Held>,
}

async fn waiting(stage: &Arc<Stage>) -> Waiting {
    let talk = stage.talk().await;
    let pending = talk.propose(&talk.marker().directive()).await;
    Waiting { talk, pending, held: stage.control().held() }
}

impl Waiting {
    /// The latch told of it, the status says that it waits, nothing ran, and it is still pending.
    async fn is_held(&mut self, id: &SessionId) {
        let report = tokio::time::timeout(Duration::from_secs(20), self.held.recv()).await;
        let report = report.expect("the latch reports in time").unwrap();
        assert_eq!((report.conversation_id.as_str(), &report.event_ids), (id.as_str(), &self.pending));
        let there = Talk::new(Arc::clone(&self.talk.stage), id.clone(), self.talk.directory.clone());
        there.until(ExecutionStatus::WaitingForConfirmation).await;
        self.talk.marker().stays_absent().await;
    }

    async fn still_waits(&mut self) {
        let id = self.talk.id.clone();
        self.is_held(&id).await;
        assert_eq!(self.talk.pending().await, self.pending);
    }
}

pub(crate) async fn a_message_with_run_is_held(stage: Arc<Stage>) {
    let mut waiting = waiting(&stage).await;
    waiting.talk.say("Wait, do NOT run that").await;
    waiting.still_waits().await;
}

pub(crate) async fn a_run_is_held(stage: Arc<Stage>) {
    let mut waiting = waiting(&stage).await;
    waiting.talk.run().await.ok();
    waiting.still_waits().await;
}

pub(crate) async fn an_accept_without_a_grant_is_held(stage: Arc<Stage>) {
    let mut waiting = waiting(&stage).await;
    waiting.talk.answer(true).await;
    waiting.still_waits().await;
    let pending = waiting.pending.clone();
    waiting.talk.accept(&pending, ExecutionStatus::Finished).await;
    assert_eq!(waiting.talk.marker().runs(), 1, "a held action can be accepted later");
}

pub(crate) async fn a_run_of_a_whole_fork_is_held(stage: Arc<Stage>) {
    let mut waiting = waiting(&stage).await;
    let id = SessionId::parse(&uuid::Uuid::new_v4().to_string()).unwrap();
    waiting.talk.post("/fork", &json!({"id": id.as_str()})).await.ok();
    stage.upstream.post(&format!("/api/conversations/{id}/run"), &json!({})).await.ok();
    waiting.is_held(&id).await;
}

pub(crate) async fn a_condense_is_held(stage: Arc<Stage>) {
    let mut waiting = waiting(&stage).await;
    waiting.talk.post("/condense", &json!({})).await.ok();
    waiting.still_waits().await;
}

pub(crate) async fn a_prompt_after_an_interrupt_is_held(stage: Arc<Stage>) {
    let mut waiting = waiting(&stage).await;
    waiting.talk.interrupt().await;
    waiting.talk.say("say: go on").await;
    waiting.still_waits().await;
}

pub(crate) async fn a_granted_accept_runs_once_and_not_again_after_a_rewind(stage: Arc<Stage>) {
    let Waiting { talk, pending, mut held } = waiting(&stage).await;
    talk.accept(&pending, ExecutionStatus::Finished).await;
    assert_eq!(talk.marker().runs(), 1);
    assert!(held.try_recv().is_err(), "a granted action was reported as held");
    // The executed action becomes the head again: to the server it is unanswered.
    talk.navigate(&pending[0]).await;
    assert_eq!(talk.pending().await, pending);
    talk.say("say: again").await;
    let report = tokio::time::timeout(Duration::from_secs(20), held.recv()).await.expect("held in time").unwrap();
    assert_eq!(report.event_ids, pending);
    talk.until(ExecutionStatus::WaitingForConfirmation).await;
    assert_eq!(talk.marker().runs(), 1, "it ran a second time");
}

pub(crate) async fn a_rejected_action_is_held_after_a_rewind(stage: Arc<Stage>) {
    let mut waiting = waiting(&stage).await;
    waiting.talk.answer(false).await;
    waiting.talk.until(ExecutionStatus::Idle).await;
    let action = waiting.pending[0].clone();
    waiting.talk.navigate(&action).await;
    waiting.talk.say("say: go on").await;
    waiting.still_waits().await;
}

pub(crate) async fn a_revoked_or_partial_grant_lets_nothing_run(stage: Arc<Stage>) {
    let mut waiting = waiting(&stage).await;
    waiting.talk.grant(&waiting.pending).await;
    let elsewhere = ["another".to_owned()];
    assert_eq!(stage.control().revoke(&elsewhere).await.unwrap(), 0);
    assert_eq!(stage.control().revoke(&waiting.pending).await.unwrap(), 1);
    waiting.talk.answer(true).await;
    waiting.still_waits().await;
    let talk = stage.talk().await;
    let command = talk.marker().command();
    let pending = talk.propose(&format!("run all: {command} ;; {command}")).await;
    talk.grant(&pending[..1]).await;
    talk.answer(true).await;
    talk.marker().stays_absent().await;
    assert_eq!(talk.pending().await, pending);
    assert_eq!(stage.control().revoke(&pending).await.unwrap(), 1, "half a grant was used up");
}
