//! What the step-causing calls do.

use super::stage::Stage;
use rules::log::{ExecutionStatus, LogEventKind};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) async fn a_step_call_answers_before_the_status_moves(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let before = talk.events().await.len();
    let begun = Instant::now();
    talk.say("slow 2500: say: late").await;
    assert!(begun.elapsed() < Duration::from_millis(2300), "the message waited for its turn: {:?}", begun.elapsed());
    talk.turn_ends(before, ExecutionStatus::Finished).await;
    assert!(begun.elapsed() >= Duration::from_millis(2500), "the model was not waited for");
}

pub(crate) async fn one_accept_runs_every_call_of_a_reply(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let (one, two) = (talk.directory.join("one"), talk.directory.join("two"));
    let text = format!("run all: echo x >> {} ;; echo x >> {}", one.display(), two.display());
    let pending = talk.propose(&text).await;
    assert_eq!(pending.len(), 2, "{pending:?}");
    let events = talk.events().await;
    let second = events.iter().find(|event| event.event_id == pending[1]).unwrap();
    assert_eq!(second.parent_id.as_ref(), Some(&pending[0]), "the second is not below the first");
    talk.accept(&pending, ExecutionStatus::Finished).await;
    assert!(one.exists() && two.exists());
    assert_eq!(talk.pending().await, Vec::<String>::new());
    let answered: Vec<String> = talk
        .events()
        .await
        .into_iter()
        .filter_map(
            |event| if let LogEventKind::Observation { action_id } = event.kind { Some(action_id) } else { None },
        )
        .collect();
    assert_eq!(answered, pending);
    let observation = &talk.of_kind("ObservationEvent").await[0];
    assert_eq!(observation["observation"]["exit_code"], 0, "{observation}");
}

pub(crate) async fn a_run_on_a_finished_conversation_does_nothing(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    talk.turn("say: done", ExecutionStatus::Finished).await;
    let before = talk.log().await.len();
    talk.run().await.ok();
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert!(talk.settled().await);
    assert_eq!(talk.status().await, ExecutionStatus::Finished);
    assert_eq!(talk.log().await.len(), before, "{}", talk.told().await);
}

pub(crate) async fn a_run_while_running_is_refused(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let before = talk.events().await.len();
    talk.say("slow 2500: say: late").await;
    talk.until_running().await;
    talk.run().await.refused(409);
    assert!(!talk.settled().await);
    talk.turn_ends(before, ExecutionStatus::Finished).await;
}

/// Answered with success, without effect: that is why an accept waits until the last run has ended.
pub(crate) async fn an_accept_while_running_does_nothing(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let before = talk.events().await.len();
    talk.say("slow 2000: say: once").await;
    talk.until_running().await;
    talk.answer(true).await;
    talk.turn_ends(before, ExecutionStatus::Finished).await;
    assert_eq!(talk.agent_texts().await, ["once"]);
}

pub(crate) async fn an_accept_with_nothing_pending_starts_a_turn(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    talk.propose("run: true").await;
    talk.answer(false).await;
    talk.until(ExecutionStatus::Idle).await;
    let before = talk.events().await.len();
    talk.answer(true).await;
    talk.turn_ends(before, ExecutionStatus::Finished).await;
}

pub(crate) async fn a_lone_finish_or_think_never_waits(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    talk.turn("finish: all done", ExecutionStatus::Finished).await;
    talk.turn("think: hm\nthen say: thought", ExecutionStatus::Finished).await;
    assert_eq!(talk.pending().await, Vec::<String>::new());
    let observed: Vec<_> =
        talk.of_kind("ObservationEvent").await.iter().map(|event| event["tool_name"].clone()).collect();
    assert_eq!(observed, ["finish", "think"]);
}

pub(crate) async fn bad_arguments_are_answered_by_tool_call_id(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    talk.turn("reuse-id call_bad bad-args\nthen say: oh", ExecutionStatus::Finished).await;
    let events = talk.events().await;
    let action = events
        .iter()
        .find_map(|event| if let LogEventKind::Action(action) = &event.kind { Some(action.clone()) } else { None });
    let action = action.unwrap();
    assert_eq!((action.tool_call_id.as_str(), action.action), ("call_bad", None), "it could run");
    let error = LogEventKind::AgentError { tool_call_id: "call_bad".to_owned() };
    assert!(events.iter().any(|event| event.kind == error), "{events:#?}");
    assert_eq!(talk.pending().await, Vec::<String>::new());
}

pub(crate) async fn a_message_while_the_last_step_runs_is_stored_and_not_read(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let before = talk.events().await.len();
    talk.say("slow 2500: say: first").await;
    talk.until_running().await;
    talk.say("say: second").await;
    talk.turn_ends(before, ExecutionStatus::Finished).await;
    let said = talk.agent_texts().await;
    assert_eq!(said, ["first"], "the turn read the message");
    assert!(talk.of_kind("MessageEvent").await.iter().any(|event| event.to_string().contains("say: second")));
    talk.store("say: third").await;
    talk.run().await.ok();
    talk.until_said("third").await;
}

/// It takes its step before it answers, and the status stays what it was.
pub(crate) async fn condense_answers_when_it_is_done_and_leaves_the_status(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    for number in 0..3 {
        talk.turn(&format!("say: reply {number}"), ExecutionStatus::Finished).await;
    }
    let before = talk.log().await.len();
    talk.post("/condense", &json!({})).await.ok();
    assert_eq!(talk.status().await, ExecutionStatus::Finished);
    let new = talk.log().await.split_off(before);
    let kinds: Vec<_> = new.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert!(kinds.iter().any(|kind| kind.starts_with("Condensation")), "{kinds:?}");
    assert!(kinds.contains(&"Condensation"), "it was not done: {kinds:?}");
}

pub(crate) async fn a_failing_model_ends_in_error_and_silence_in_stuck(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    talk.turn("fail 401", ExecutionStatus::Error).await;
    assert_eq!(talk.of_kind("ConversationErrorEvent").await.len(), 1);
    let silent = stage.talk().await;
    silent.turn("empty", ExecutionStatus::Stuck).await;
    silent.turn("say: awake", ExecutionStatus::Finished).await;
}
