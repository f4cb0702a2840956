//! Profiles.

use serde_json::Value;

use super::Fields;
use crate::{ContractError, ProfileName, RouteName};

/// A stored model profile, without its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlmProfileStatus {
    /// The model.
    pub model: String,
    /// The endpoint, when it is not the provider's own.
    pub base_url: Option<String>,
    /// Whether a key is stored.
    pub api_key_set: bool,
}

impl LlmProfileStatus {
    pub(crate) fn parse(name: &ProfileName, reply: &Value) -> Result<Self, ContractError> {
        let reply = Fields::of(RouteName::LlmProfileStatus, "profile", reply)?;
        if reply.text("name")? != name.as_str() {
            return Err(reply.fault("name", "the one asked for"));
        }
        let config = reply.object("config", "config")?;
        Ok(Self {
            model: config.full_text("model")?.to_owned(),
            base_url: config.optional_text("base_url")?.map(str::to_owned),
            api_key_set: reply.boolean("api_key_set")?,
        })
    }
}

/// A stored agent profile: everything that says what an agent launched from it can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProfile {
    /// The server's lasting id of it.
    pub id: String,
    /// Goes up by one with each save.
    pub revision: u64,
    /// `openhands`, or `acp`.
    pub agent_kind: String,
    /// The model profile it names; none for an ACP agent.
    pub llm_profile_ref: Option<String>,
    /// Its tools; none means the server's standard set, sub-agents included.
    pub tools: Option<Vec<String>>,
    /// Its MCP servers; none means all that are configured.
    pub mcp_server_refs: Option<Vec<String>>,
    /// Whether it may start sub-agents.
    pub enable_sub_agents: bool,
    /// Whether the model may choose another model.
    pub enable_switch_llm_tool: bool,
}

impl AgentProfile {
    pub(crate) fn parse(name: &ProfileName, reply: &Value) -> Result<Self, ContractError> {
        let reply = Fields::of(RouteName::FindAgentProfile, "agent profile", reply)?;
        if reply.text("name")? != name.as_str() {
            return Err(reply.fault("name", "the one asked for"));
        }
        let profile = reply.object("profile", "profile")?;
        let agent_kind = profile.full_text("agent_kind")?;
        let is_native = agent_kind == "openhands";
        let some = |name: &str| is_native && profile.optional(name).is_some();
        Ok(Self {
            id: profile.full_text("id")?.to_owned(),
            revision: profile.integer("revision")?,
            agent_kind: agent_kind.to_owned(),
            llm_profile_ref: profile.optional_text("llm_profile_ref")?.map(str::to_owned),
            tools: some("tools").then(|| profile.names_in("tools")).transpose()?,
            mcp_server_refs: some("mcp_server_refs").then(|| profile.texts("mcp_server_refs")).transpose()?,
            enable_sub_agents: is_native && profile.boolean("enable_sub_agents")?,
            enable_switch_llm_tool: is_native && profile.boolean("enable_switch_llm_tool")?,
        })
    }
}

/// What a launch from an agent profile would meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileDiagnostics {
    /// Whether a launch would succeed.
    pub valid: bool,
    /// Why not.
    pub errors: Vec<String>,
    /// Whether the model profile was found.
    pub llm_profile_resolved: bool,
    /// Whether it holds a key.
    pub llm_api_key_set: bool,
    /// The MCP servers that a launched agent would get.
    pub mcp_servers: Vec<String>,
}

impl ProfileDiagnostics {
    pub(crate) fn parse(reply: &Value) -> Result<Self, ContractError> {
        let reply = Fields::of(RouteName::Materialize, "diagnostics", reply)?;
        Ok(Self {
            valid: reply.boolean("valid")?,
            errors: reply.texts("errors")?,
            llm_profile_resolved: reply.boolean("llm_profile_resolved")?,
            llm_api_key_set: reply.boolean("llm_api_key_set")?,
            mcp_servers: reply.texts("resolved_mcp_config_keys")?,
        })
    }
}
