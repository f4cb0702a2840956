//! Ends: settled runs, rejections, interrupts.

use super::stage::Stage;
use rules::log::{ExecutionStatus, LogEventKind};
use std::sync::Arc;
use std::time::Duration;

/// The status turns terminal before the run's task has ended; only then does an accept do what it says.
pub(crate) async fn a_run_is_settled_only_once_its_task_has_ended(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    assert!(talk.settled().await);
    let before = talk.events().await.len();
    talk.say("slow 1500: run: true").await;
    talk.until_running().await;
    assert!(!talk.settled().await, "a run that is under way counts as settled");
    talk.turn_ends(before, ExecutionStatus::WaitingForConfirmation).await;
    for _ in 0..5 {
        let pending = talk.pending().await;
        // Sent the moment the run is settled, an accept is never lost.
        talk.accept(&pending, ExecutionStatus::Finished).await;
        talk.propose("run: true").await;
    }
}

pub(crate) async fn a_reject_answers_each_action_and_leaves_idle(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let marker = talk.marker();
    let pending = talk.propose(&format!("run all: {0} ;; {0}", marker.command())).await;
    stage.client.reject(&talk.id, Some("not like this")).await.unwrap();
    talk.until(ExecutionStatus::Idle).await;
    let rejected = talk.of_kind("UserRejectObservation").await;
    let answered: Vec<&str> = rejected.iter().filter_map(|event| event["action_id"].as_str()).collect();
    assert_eq!(answered, pending);
    assert!(rejected.iter().all(|event| event["rejection_reason"] == "not like this"), "{rejected:#?}");
    assert_eq!(talk.pending().await, Vec::<String>::new());
    let before = talk.events().await.len();
    talk.run().await.ok();
    talk.turn_ends(before, ExecutionStatus::Finished).await;
    marker.stays_absent().await;
}

pub(crate) async fn a_reject_with_nothing_pending_does_nothing(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    talk.turn("say: done", ExecutionStatus::Finished).await;
    let before = talk.log().await;
    stage.client.reject(&talk.id, None).await.unwrap();
    assert_eq!((talk.log().await, talk.status().await), (before, ExecutionStatus::Finished));
}

pub(crate) async fn an_interrupt_pauses_and_answers_by_tool_call_id(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let pending = talk.propose("reuse-id call_long run: sleep 30").await;
    talk.grant(&pending).await;
    let before = talk.events().await.len();
    talk.answer(true).await;
    talk.until_running().await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    talk.interrupt().await;
    talk.turn_ends(before, ExecutionStatus::Paused).await;
    let error = LogEventKind::AgentError { tool_call_id: "call_long".to_owned() };
    assert!(talk.events().await.iter().any(|event| event.kind == error), "{}", talk.told().await);
    assert!(!talk.of_kind("InterruptEvent").await.is_empty());
    assert_eq!(talk.pending().await, Vec::<String>::new());
    talk.turn("say: on we go", ExecutionStatus::Finished).await;
}

pub(crate) async fn an_interrupt_of_what_is_over_writes_nothing(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    talk.turn("say: done", ExecutionStatus::Finished).await;
    let before = talk.log().await;
    talk.interrupt().await;
    assert_eq!((talk.log().await, talk.status().await), (before, ExecutionStatus::Finished));
    let pending = talk.propose("run: true").await;
    let before = talk.log().await;
    talk.interrupt().await;
    assert_eq!(talk.log().await, before, "an interrupt while waiting is seen in the log");
    assert_eq!((talk.pending().await, talk.status().await), (pending, ExecutionStatus::WaitingForConfirmation));
}
