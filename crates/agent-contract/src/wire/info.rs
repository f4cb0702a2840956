//! The server about itself, and about one conversation.

use rules::log::ExecutionStatus;
use serde_json::Value;

use super::Fields;
use crate::{ContractError, RouteName, SessionId};

/// What the server says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its title.
    pub title: String,
    /// The version of `openhands-agent-server`.
    pub version: String,
    /// The version of `openhands-sdk`.
    pub sdk_version: String,
    /// The version of `openhands-tools`.
    pub tools_version: String,
    /// The version of `openhands-workspace`.
    pub workspace_version: String,
    /// Capabilities it names.
    pub capabilities: Vec<String>,
    /// Tools it could give to an agent.
    pub usable_tools: Vec<String>,
}

impl ServerInfo {
    pub(crate) fn parse(reply: &Value) -> Result<Self, ContractError> {
        let info = Fields::of(RouteName::ServerInfo, "server_info", reply)?;
        let text = |name: &str| info.full_text(name).map(str::to_owned);
        Ok(Self {
            title: text("title")?,
            version: text("version")?,
            sdk_version: text("sdk_version")?,
            tools_version: text("tools_version")?,
            workspace_version: text("workspace_version")?,
            capabilities: info.texts("capabilities")?,
            usable_tools: info.texts("usable_tools")?,
        })
    }
}

/// The agent of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentInfo {
    /// The server's own agent, whose actions wait for confirmation.
    Native {
        /// Its tools, by name.
        tools: Vec<String>,
        /// Tools that come with it, by the name of their kind.
        default_tools: Vec<String>,
        /// Its MCP servers, by name.
        mcp_servers: Vec<String>,
        /// Plugin sources registered with it.
        marketplaces: usize,
        /// Its model.
        model: String,
    },
    /// Any other kind, whose tools and confirmations are not ours to see.
    Foreign,
}

/// The state of one conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationInfo {
    /// Whose state it is.
    pub id: SessionId,
    /// The head of the active branch; none when the log is empty.
    pub leaf_event_id: Option<String>,
    /// What it is doing.
    pub status: ExecutionStatus,
    /// The kind of its confirmation policy.
    pub policy_kind: String,
    /// Whether hooks are configured for it.
    pub hook_config_present: bool,
    /// The kind of its security analyser, when it has one.
    pub security_analyzer: Option<String>,
    /// The directory it works in.
    pub workspace_dir: String,
    /// The kind of its workspace; `LocalWorkspace` is a directory of this machine.
    pub workspace_kind: String,
    /// The kind of its agent, in the server's words.
    pub agent_kind: String,
    /// The agent itself.
    pub agent: AgentInfo,
    /// Tools that a client would run, by name.
    pub client_tools: Vec<String>,
    /// Its title, when it has one.
    pub title: Option<String>,
    /// The agent profile that it was launched from.
    pub profile_id: Option<String>,
    /// That profile's revision at the launch.
    pub profile_revision: Option<u64>,
    /// The conversation that owns it, when it is a sub-agent's.
    pub parent_conversation_id: Option<String>,
}

impl ConversationInfo {
    /// The tools of a native agent; none for any other, whose tools are not known.
    pub fn tools(&self) -> Option<&[String]> {
        match &self.agent {
            AgentInfo::Native { tools, .. } => Some(tools),
            AgentInfo::Foreign => None,
        }
    }

    /// The model of a native agent.
    pub fn model(&self) -> Option<&str> {
        match &self.agent {
            AgentInfo::Native { model, .. } => Some(model),
            AgentInfo::Foreign => None,
        }
    }

    pub(crate) fn parse(route: RouteName, expected: &SessionId, reply: &Value) -> Result<Self, ContractError> {
        let info = Fields::of(route, "conversation", reply)?;
        let id = SessionId::parse(info.text("id")?).map_err(|_error| info.fault("id", "a canonical UUID"))?;
        if id != *expected {
            return Err(info.fault("id", "the one asked for"));
        }
        // Null is an empty log; absent would be an answer that hides the branch.
        info.present("leaf_event_id")?;
        info.present("hook_config")?;
        let workspace = info.object("workspace", "workspace")?;
        let agent = info.object("agent", "agent")?;
        let agent_kind = agent.full_text("kind")?;
        let profile = info.optional_object("launched_agent_profile", "launched_agent_profile")?;
        let analyzer = info.optional_object("security_analyzer", "security_analyzer")?;
        Ok(Self {
            leaf_event_id: info.optional_text("leaf_event_id")?.map(str::to_owned),
            status: ExecutionStatus::parse(info.full_text("execution_status")?),
            policy_kind: info.object("confirmation_policy", "confirmation_policy")?.full_text("kind")?.to_owned(),
            hook_config_present: info.optional("hook_config").is_some(),
            security_analyzer: analyzer.map(|fields| fields.full_text("kind").map(str::to_owned)).transpose()?,
            workspace_dir: workspace.full_text("working_dir")?.to_owned(),
            workspace_kind: workspace.full_text("kind")?.to_owned(),
            agent: if agent_kind == "Agent" { native(agent)? } else { AgentInfo::Foreign },
            agent_kind: agent_kind.to_owned(),
            client_tools: info.names_in("client_tools")?,
            title: info.optional_text("title")?.map(str::to_owned),
            profile_id: profile.map(|fields| fields.full_text("agent_profile_id").map(str::to_owned)).transpose()?,
            profile_revision: profile.map(|fields| fields.integer("revision")).transpose()?,
            parent_conversation_id: info.optional_text("parent_conversation_id")?.map(str::to_owned),
            id,
        })
    }
}

fn native(agent: Fields<'_>) -> Result<AgentInfo, ContractError> {
    let context = agent.optional_object("agent_context", "agent_context")?;
    let marketplaces = match context {
        None => 0,
        Some(context) => context.array("registered_marketplaces")?.len(),
    };
    Ok(AgentInfo::Native {
        tools: agent.names_in("tools")?,
        default_tools: agent.texts("include_default_tools")?,
        mcp_servers: agent.object("mcp_config", "mcp_config")?.names(),
        marketplaces,
        model: agent.object("llm", "llm")?.full_text("model")?.to_owned(),
    })
}

#[cfg(test)]
#[path = "info_tests.rs"]
mod tests;
