//! The agent profile that every session is launched from, made from `[model]`.

use agent_contract::{ContractError, LlmProfile, SetupClient};
use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};
use settings::{Model, ModelSource};

use crate::server::profile_name;
use crate::shared::Shared;
use crate::upstream;

/// Name of the model profile and of the agent profile.
const PROFILE: &str = "gatepost";

/// The agent profile that sessions must be launched from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReviewedProfile {
    /// The server's id of it.
    pub(crate) id: String,
    /// Its revision, where the daemon made it; the owner's own profile may be of any.
    pub(crate) revision: Option<i64>,
}

/// Name of the model profile of one further reviewed model.
pub(crate) fn choice_profile(position: usize) -> String {
    format!("{PROFILE}-choice-{position}")
}

/// The configured model, or why there is no session without one.
pub(crate) fn configured(shared: &Shared) -> Result<&Model, Refusal> {
    shared.settings.model.as_ref().ok_or_else(|| {
        Refusal::new(RefusalCode::ConfigurationInvalid, "no model is configured; add [model] to the configuration")
    })
}

/// Stores model and agent profile. An agent profile that is as wanted is left alone: storing it again would raise its
/// revision, and sessions are held to the revision they were launched from.
pub(crate) async fn set_up(shared: &Shared, setup: &SetupClient) -> Result<ReviewedProfile, Refusal> {
    let model = configured(shared)?;
    let (name, base_url) = match &model.source {
        ModelSource::Named { name, base_url, .. } => (name, base_url.as_deref()),
        // It is held to its id; what it gives an agent is held to the configuration by the session's own canaries.
        ModelSource::Profile { profile_id } => return Ok(ReviewedProfile { id: profile_id.clone(), revision: None }),
    };
    let api_key = shared.model_key.as_deref();
    store(setup, PROFILE, &LlmProfile { model: name, base_url, api_key }).await?;
    for (position, choice) in model.choices.iter().enumerate() {
        store(setup, &choice_profile(position), &LlmProfile { model: choice, base_url, api_key }).await?;
    }
    let agent = profile_name(PROFILE)?;
    let stored = setup.find_agent_profile(&agent).await.map_err(failed)?;
    let as_wanted = stored.as_ref().is_some_and(|profile| {
        profile.agent_kind == "openhands"
            && profile.llm_profile_ref.as_deref() == Some(PROFILE)
            && profile.tools.as_ref() == Some(&model.tools)
            && profile.mcp_server_refs.as_ref().is_some_and(Vec::is_empty)
            && !profile.enable_sub_agents
            && !profile.enable_switch_llm_tool
    });
    let profile = match stored {
        Some(profile) if as_wanted => profile,
        Some(_) | None => {
            setup.put_agent_profile(&agent, &agent, &model.tools).await.map_err(failed)?;
            setup.find_agent_profile(&agent).await.map_err(failed)?.ok_or_else(|| {
                Refusal::new(RefusalCode::ProfileMismatch, "the agent profile was stored and is not there")
            })?
        }
    };
    let revision = i64::try_from(profile.revision)
        .map_err(|_| Refusal::new(RefusalCode::UpstreamMalformed, "the agent profile's revision is out of range"))?;
    Ok(ReviewedProfile { id: profile.id, revision: Some(revision) })
}

async fn store(setup: &SetupClient, name: &str, profile: &LlmProfile<'_>) -> Result<(), Refusal> {
    setup.put_llm_profile(&profile_name(name)?, profile).await.map_err(failed)
}

fn failed(error: ContractError) -> Refusal {
    upstream::refusal(&error)
}

/// Reads of what was set up. The only part of set-up that outlives a server's start.
pub(crate) struct Provider {
    setup: SetupClient,
}

impl Provider {
    pub(crate) fn new(setup: SetupClient) -> Self {
        Self { setup }
    }

    /// Whether the model's key is stored.
    pub(crate) async fn auth(&self) -> Result<Value, Refusal> {
        let status = self.setup.llm_profile_status(&profile_name(PROFILE)?).await.map_err(failed)?;
        Ok(match status {
            None => json!({"configured": false}),
            Some(status) => json!({
                "configured": true,
                "model": status.model,
                "base_url": status.base_url,
                "api_key_set": status.api_key_set,
            }),
        })
    }

    /// The agent profile that sessions are launched from.
    pub(crate) async fn config(&self) -> Result<Value, Refusal> {
        let profile = self.setup.find_agent_profile(&profile_name(PROFILE)?).await.map_err(failed)?;
        Ok(match profile {
            None => json!({"configured": false}),
            Some(profile) => json!({
                "configured": true,
                "profile_id": profile.id,
                "revision": profile.revision,
                "agent_kind": profile.agent_kind,
                "tools": profile.tools,
                "sub_agents": profile.enable_sub_agents,
            }),
        })
    }

    /// What a launch would meet.
    pub(crate) async fn diagnostics(&self) -> Result<Value, Refusal> {
        let found = self.setup.materialize(&profile_name(PROFILE)?).await.map_err(failed)?;
        Ok(json!({
            "valid": found.valid,
            "errors": found.errors,
            "model_profile_resolved": found.llm_profile_resolved,
            "api_key_set": found.llm_api_key_set,
            "mcp_servers": found.mcp_servers,
        }))
    }
}
