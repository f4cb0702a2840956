//! Moving the head, and copies.

use super::stage::Stage;
use super::talk::Talk;
use agent_contract::{EventId, SessionId};
use rules::log::{ExecutionStatus, LogEventKind};
use serde_json::json;
use std::sync::Arc;

pub(crate) async fn navigate_moves_the_head_and_writes_nothing(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    talk.turn("say: one", ExecutionStatus::Finished).await;
    let head = talk.info().await.leaf_event_id.unwrap();
    talk.turn("say: two", ExecutionStatus::Finished).await;
    let before = talk.log().await;
    talk.navigate(&head).await;
    assert_eq!(talk.info().await.leaf_event_id.as_deref(), Some(head.as_str()));
    assert_eq!(talk.log().await, before);
    let unknown = EventId::parse(&uuid::Uuid::new_v4().to_string()).unwrap();
    let refused = stage.client.navigate(&talk.id, &unknown).await.unwrap_err();
    assert_eq!(refused.refused_status(), Some(404));
    talk.turn("say: three", ExecutionStatus::Finished).await;
    let events = talk.events().await;
    let asked = LogEventKind::UserMessage { text: "say: three".to_owned() };
    let third = events.iter().find(|event| event.kind == asked).unwrap();
    assert_eq!(third.parent_id.as_deref(), Some(head.as_str()), "the new turn is on the old branch");
}

async fn fork(talk: &Talk, body: serde_json::Value) -> Talk {
    let id = SessionId::parse(&uuid::Uuid::new_v4().to_string()).unwrap();
    let mut body = body;
    body["id"] = json!(id.as_str());
    talk.post("/fork", &body).await.ok();
    Talk::new(Arc::clone(&talk.stage), id, talk.directory.clone())
}

pub(crate) async fn a_fork_from_a_parent_carries_nothing_pending(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let marker = talk.marker();
    let pending = talk.propose(&marker.directive()).await;
    let events = talk.events().await;
    let action = events.iter().find(|event| event.event_id == pending[0]).unwrap();
    let parent = EventId::parse(action.parent_id.as_ref().unwrap()).unwrap();
    let id = SessionId::parse(&uuid::Uuid::new_v4().to_string()).unwrap();
    let info = stage.client.fork(&talk.id, &id, &parent, Some("a copy")).await.unwrap();
    assert_eq!((info.leaf_event_id.as_deref(), info.title.as_deref()), (Some(parent.as_str()), Some("a copy")));
    assert_eq!((info.policy_kind.as_str(), info.status), ("AlwaysConfirm", ExecutionStatus::Idle));
    assert_eq!(info.profile_id.as_deref(), Some(stage.profile_id()), "a fork forgets its profile");
    let copy = Talk::new(Arc::clone(&stage), id.clone(), talk.directory.clone());
    assert_eq!(copy.pending().await, Vec::<String>::new());
    let copied: Vec<String> = copy.events().await.into_iter().map(|event| event.event_id).collect();
    assert!(copied.contains(&parent.as_str().to_owned()), "a fork has other ids: {copied:?}");
    assert!(!copied.contains(&pending[0]), "the pending action was copied");
    assert_eq!(talk.pending().await, pending, "the original changed");
    let again = stage.client.fork(&talk.id, &id, &parent, None).await.unwrap_err();
    assert_eq!(again.refused_status(), Some(409));
    let unknown = EventId::parse(&uuid::Uuid::new_v4().to_string()).unwrap();
    let new = SessionId::parse(&uuid::Uuid::new_v4().to_string()).unwrap();
    let refused = stage.client.fork(&talk.id, &new, &unknown, None).await.unwrap_err();
    assert_eq!(refused.refused_status(), Some(404));
    copy.turn("say: apart", ExecutionStatus::Finished).await;
    marker.stays_absent().await;
}

pub(crate) async fn a_whole_fork_carries_what_is_pending(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let pending = talk.propose(&talk.marker().directive()).await;
    let copy = fork(&talk, json!({})).await;
    assert_eq!(copy.pending().await, pending, "the copy has other pending actions");
    copy.answer(false).await;
    assert_eq!(copy.pending().await, Vec::<String>::new());
    assert_eq!(talk.pending().await, pending, "a rejection in the copy reached the original");
    talk.marker().stays_absent().await;
}

/// The server sees the new command as pending: an older answer to a call of the same id does not answer it.
pub(crate) async fn a_reused_tool_call_id_hides_nothing(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let marker = talk.marker();
    talk.turn("reuse-id call_again bad-args\nthen say: oh", ExecutionStatus::Finished).await;
    let pending = talk.propose(&format!("reuse-id call_again {}", marker.directive())).await;
    assert_eq!(pending.len(), 1);
    talk.say("say: wait").await;
    marker.stays_absent().await;
    assert_eq!(marker.runs(), 0);
}
