//! Model and agent profiles.

use super::stage::{Stage, TOOLS, profile_name};
use std::sync::Arc;

pub(crate) async fn a_model_profile_never_shows_its_key(stage: Arc<Stage>) {
    stage.put_model_profile("shown", "openai/shown").await;
    let status = stage.set_up.llm_profile_status(&profile_name("shown")).await.unwrap().unwrap();
    assert!(status.api_key_set, "{status:?}");
    assert_eq!(status.model, "openai/shown");
    let raw = stage.upstream.get("/api/profiles/shown").await.ok();
    assert!(!raw.to_string().contains("model-key-of-the-contract-suite"), "{raw}");
    assert!(stage.set_up.llm_profile_status(&profile_name("absent")).await.unwrap().is_none());
}

pub(crate) async fn an_agent_profile_keeps_its_id_and_counts_revisions(stage: Arc<Stage>) {
    let (name, model) = (profile_name("counted"), profile_name("gatepost"));
    assert!(stage.set_up.find_agent_profile(&name).await.unwrap().is_none());
    let tools = TOOLS.map(str::to_owned);
    let mut seen = Vec::new();
    for tools in [&tools[..], &tools[..1]] {
        stage.set_up.put_agent_profile(&name, &model, tools).await.unwrap();
        let profile = stage.set_up.find_agent_profile(&name).await.unwrap().unwrap();
        assert_eq!(profile.tools.as_deref(), Some(tools));
        assert!(!profile.enable_sub_agents && !profile.enable_switch_llm_tool, "{profile:?}");
        seen.push((profile.id, profile.revision));
    }
    assert_eq!(seen[0].0, seen[1].0, "its id changed");
    assert_eq!(seen[0].1 + 1, seen[1].1, "its revision did not go up by one");
    let found = stage.set_up.materialize(&name).await.unwrap();
    assert!(found.valid && found.llm_profile_resolved && found.mcp_servers.is_empty(), "{found:?}");
}

/// Only while profiles are stored below `$HOME/.openhands` does the conversation find them.
pub(crate) async fn the_model_can_be_switched_to_another_profile(stage: Arc<Stage>) {
    stage.put_model_profile("other", "openai/other").await;
    let talk = stage.talk().await;
    assert_eq!(talk.info().await.model(), Some("openai/scripted"));
    stage.client.switch_profile(&talk.id, &profile_name("other")).await.unwrap();
    assert_eq!(talk.info().await.model(), Some("openai/other"));
    let absent = stage.client.switch_profile(&talk.id, &profile_name("absent")).await;
    assert_eq!(absent.unwrap_err().refused_status(), Some(404));
    assert_eq!(talk.info().await.model(), Some("openai/other"));
}
