//! The log: order, pages, the tree, what a turn leaves in it.

use super::stage::Stage;
use super::talk::{Talk, statuses};
use agent_contract::ContractError;
use rules::log::{ExecutionStatus, LogEventKind};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

async fn two_turns(stage: &Arc<Stage>) -> Talk {
    let talk = stage.talk().await;
    talk.turn("say: one two", ExecutionStatus::Finished).await;
    let pending = talk.propose("run: echo three").await;
    talk.accept(&pending, ExecutionStatus::Finished).await;
    talk
}

fn ids(items: &Value) -> Vec<String> {
    items.as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

pub(crate) async fn pages_come_in_append_order_and_begin_with_the_page_id(stage: Arc<Stage>) {
    let talk = two_turns(&stage).await;
    let before: Vec<String> = talk.events().await.into_iter().map(|event| event.event_id).collect();
    let mut found: Vec<String> = Vec::new();
    let mut page_id: Option<String> = None;
    for _ in 0..200 {
        let from = page_id.as_ref().map(|id| format!("&page_id={id}")).unwrap_or_default();
        let page = talk.get(&format!("/events/search?limit=3&sort_order=TIMESTAMP{from}")).await.ok();
        let items = ids(&page["items"]);
        assert!(items.len() <= 3, "{items:?}");
        if let Some(page_id) = &page_id {
            assert_eq!(items.first(), Some(page_id), "the page id is not inclusive");
        }
        found.extend(items);
        page_id = page["next_page_id"].as_str().map(str::to_owned);
        if page_id.is_none() {
            break;
        }
    }
    assert_eq!(found, before, "small pages give another order than large ones");
    let last = found.last().unwrap();
    let page = talk.get(&format!("/events/search?limit=100&sort_order=TIMESTAMP&page_id={last}")).await.ok();
    assert_eq!(ids(&page["items"]), std::slice::from_ref(last), "the last event is not resumed from");
    // What comes later is appended: everything read before stands before it, unchanged.
    talk.turn("say: later", ExecutionStatus::Finished).await;
    let after: Vec<String> = talk.events().await.into_iter().map(|event| event.event_id).collect();
    assert!(after.len() > before.len() && after.starts_with(&before), "the log is not append-only");
}

pub(crate) async fn an_unknown_page_id_starts_from_the_beginning(stage: Arc<Stage>) {
    let talk = two_turns(&stage).await;
    let first = talk.events().await[0].event_id.clone();
    let unknown = uuid::Uuid::new_v4().to_string();
    let page = talk.get(&format!("/events/search?limit=100&sort_order=TIMESTAMP&page_id={unknown}")).await.ok();
    assert_eq!(ids(&page["items"]).first(), Some(&first));
    let error = stage.client.events_page(&talk.id, Some(&unknown)).await.unwrap_err();
    assert!(matches!(error, ContractError::Malformed { .. }), "the client takes it for a page: {error}");
}

pub(crate) async fn parents_form_one_tree_and_state_updates_hang_off_it(stage: Arc<Stage>) {
    let talk = two_turns(&stage).await;
    let events = talk.events().await;
    let position: HashMap<&str, usize> =
        events.iter().enumerate().map(|(at, event)| (event.event_id.as_str(), at)).collect();
    assert_eq!(position.len(), events.len(), "an id stands twice");
    let on_branch: Vec<_> = events.iter().filter(|event| !event.is_state_update()).collect();
    let roots: Vec<_> = on_branch.iter().filter(|event| event.parent_id.is_none()).collect();
    assert_eq!(roots.len(), 1, "{roots:?}");
    for event in &events {
        if let Some(parent) = &event.parent_id {
            let parent_at = position.get(parent.as_str()).copied();
            assert!(parent_at.is_some_and(|at| !events[at].is_state_update()), "{event:?} hangs off nothing");
        }
    }
    let leaf = talk.info().await.leaf_event_id.unwrap();
    assert_eq!(leaf, on_branch.last().unwrap().event_id, "a state update moved the head");
    assert!(events.iter().any(|event| event.is_state_update()));
    let raw = talk.log().await;
    assert!(
        raw.iter()
            .filter(|event| event["kind"] != "ConversationStateUpdateEvent")
            .skip(1)
            .all(|event| event["parent_id"].is_string())
    );
}

pub(crate) async fn a_turn_shows_running_and_then_a_terminal_status(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    for (text, last) in
        [("say: hello", ExecutionStatus::Finished), ("run: true", ExecutionStatus::WaitingForConfirmation)]
    {
        let before = talk.events().await.len();
        talk.turn(text, last).await;
        let seen = statuses(&talk.events().await[before..]);
        let running = seen.iter().position(|status| *status == ExecutionStatus::Running).unwrap();
        assert_eq!(seen[running + 1..], [last], "{text}: {seen:?}");
        assert_eq!(talk.status().await, last);
    }
}

pub(crate) async fn a_text_stands_in_the_message(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    talk.turn("say: a text of its own", ExecutionStatus::Finished).await;
    let kinds: Vec<LogEventKind> = talk.events().await.into_iter().map(|event| event.kind).collect();
    let said = |text: &str| LogEventKind::AgentMessage { text: text.to_owned() };
    let asked = |text: &str| LogEventKind::UserMessage { text: text.to_owned() };
    assert!(kinds.contains(&asked("say: a text of its own")), "{kinds:?}");
    assert!(kinds.contains(&said("a text of its own")), "{kinds:?}");
}

/// Where a log ends is told for many at once, and is where a read of it ends, whatever was appended and wherever the head is.
pub(crate) async fn the_ends_of_many_logs_are_where_reads_of_them_end(stage: Arc<Stage>) {
    let (talk, other) = (two_turns(&stage).await, stage.talk().await);
    let unknown = uuid::Uuid::new_v4().to_string();
    let ends = async || stage.control().log_ends(&[talk.id.as_str(), &unknown, other.id.as_str()]).await.unwrap();
    let end_of = async |talk: &Talk| talk.events().await.last().map(|event| event.event_id.clone());
    let expected = async || [end_of(&talk).await, None, end_of(&other).await];
    let events = talk.events().await;
    assert!(events.last().unwrap().is_state_update(), "the head would tell as much: {}", talk.told().await);
    let before = ends().await;
    assert_eq!(before, expected().await);
    let head = events.iter().find(|event| matches!(event.kind, LogEventKind::AgentMessage { .. })).unwrap();
    talk.navigate(&head.event_id).await;
    assert_eq!(ends().await, before, "a head that moved appended nothing");
    talk.store("stored, not run").await;
    let stored = ends().await;
    assert_ne!(stored[0], before[0]);
    assert_eq!(stored, expected().await);
    let pending = talk.propose("run: true").await;
    let waiting = ends().await;
    assert_eq!(waiting, expected().await);
    talk.accept(&pending, ExecutionStatus::Finished).await;
    assert_ne!(ends().await[0], waiting[0], "an observation does not show");
    assert_eq!(ends().await, expected().await);
    stage.client.delete(&other.id).await.unwrap();
    assert_eq!(ends().await[2], None, "the log of a deleted conversation ends somewhere");
}
