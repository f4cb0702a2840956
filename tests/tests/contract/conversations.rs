//! Creating, naming and deleting conversations, and what their state shows.

use super::stage::{Stage, TOOLS};
use agent_contract::{AgentInfo, ContractError, EventId, NewConversation, SessionId};
use rules::log::ExecutionStatus;
use serde_json::json;
use std::sync::Arc;

pub(crate) async fn creating_is_idempotent_by_id(stage: Arc<Stage>) {
    let directory = stage.new_directory();
    let new = stage.new_conversation(&directory);
    let first = stage.client.create_conversation(&new).await.unwrap();
    assert!(first.is_new);
    assert_eq!(first.info.id, new.id);
    stage.client.set_title(&new.id, "mine").await.unwrap();
    let elsewhere = stage.new_directory().to_string_lossy().into_owned();
    let again = NewConversation { workspace_dir: elsewhere, ..new.clone() };
    let second = stage.client.create_conversation(&again).await.unwrap();
    assert!(!second.is_new);
    assert_eq!(second.info.title.as_deref(), Some("mine"), "it was made anew");
    assert_eq!(second.info.workspace_dir, new.workspace_dir, "it was moved");
    let unknown =
        NewConversation { profile_id: uuid::Uuid::new_v4().to_string(), ..stage.new_conversation(&directory) };
    let refused = stage.client.create_conversation(&unknown).await;
    assert_eq!(refused.unwrap_err().refused_status(), Some(404));
}

pub(crate) async fn the_state_shows_what_the_canaries_read(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let info = talk.info().await;
    assert_eq!(info.status, ExecutionStatus::Idle);
    assert_eq!(info.policy_kind, "AlwaysConfirm");
    assert_eq!((info.agent_kind.as_str(), info.workspace_kind.as_str()), ("Agent", "LocalWorkspace"));
    assert_eq!(info.workspace_dir, talk.directory.to_string_lossy());
    assert!(!info.hook_config_present && info.client_tools.is_empty() && info.parent_conversation_id.is_none());
    assert_eq!(info.profile_id.as_deref(), Some(stage.profile_id()));
    assert!(info.profile_revision.is_some());
    let AgentInfo::Native { tools, default_tools, mcp_servers, marketplaces, model } = info.agent else {
        panic!("the agent is not the server's own");
    };
    assert_eq!(tools, TOOLS);
    assert_eq!(default_tools, ["FinishTool", "ThinkTool"]);
    assert_eq!((mcp_servers.len(), marketplaces, model.as_str()), (0, 0, "openai/scripted"));
    stage.client.set_policy(&talk.id).await.unwrap();
    assert_eq!(talk.info().await.policy_kind, "AlwaysConfirm");
    let weaker = json!({"policy": {"kind": "NeverConfirm"}});
    talk.post("/confirmation_policy", &weaker).await.ok();
    assert_eq!(talk.info().await.policy_kind, "NeverConfirm", "a weaker policy does not show");
}

pub(crate) async fn what_is_not_there_is_answered_so(stage: Arc<Stage>) {
    let id = SessionId::parse(&uuid::Uuid::new_v4().to_string()).unwrap();
    let event = EventId::parse(&uuid::Uuid::new_v4().to_string()).unwrap();
    let client = &stage.client;
    let status = |error: ContractError| error.refused_status();
    assert_eq!(client.conversation(&id).await.map_err(status).unwrap_err(), Some(404));
    assert_eq!(client.events_page(&id, None).await.map_err(status).unwrap_err(), Some(404));
    assert_eq!(client.set_policy(&id).await.map_err(status).unwrap_err(), Some(404));
    assert_eq!(client.navigate(&id, &event).await.map_err(status).unwrap_err(), Some(404));
    assert_eq!(client.reject(&id, None).await.map_err(status).unwrap_err(), Some(404));
    assert_eq!(client.interrupt(&id).await.map_err(status).unwrap_err(), Some(400));
    assert_eq!(client.delete(&id).await.map_err(status).unwrap_err(), Some(400));
    let declined = client.set_title(&id, "title").await.unwrap_err();
    assert!(matches!(declined, ContractError::Declined { .. }), "{declined}");
    assert!(stage.control().settled(id.as_str()).await.unwrap(), "a run of nothing is under way");
}

pub(crate) async fn a_title_has_at_most_200_characters(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let longest = "é".repeat(200);
    stage.client.set_title(&talk.id, &longest).await.unwrap();
    assert_eq!(talk.info().await.title.as_deref(), Some(longest.as_str()));
    let too_long = stage.client.set_title(&talk.id, &"é".repeat(201)).await.unwrap_err();
    assert_eq!(too_long.refused_status(), Some(422));
    assert_eq!(talk.info().await.title.as_deref(), Some(longest.as_str()));
}

pub(crate) async fn a_deleted_one_is_gone(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    talk.propose("run: true").await;
    stage.client.delete(&talk.id).await.unwrap();
    let gone = stage.client.conversation(&talk.id).await.unwrap_err();
    assert_eq!(gone.refused_status(), Some(404));
    let mut stream = stage.client.open_stream(&talk.id).await.unwrap();
    assert!(matches!(stream.next().await, agent_contract::StreamItem::Closed(_)));
}
