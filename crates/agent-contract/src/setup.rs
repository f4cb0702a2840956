//! The calls that set a server up. A type of its own: whoever holds only a [`crate::Client`] cannot reach a profile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use host::Secret;
use rules::passage::Watch;
use serde_json::{Map, Value};

use crate::route::{PathValue, RouteName};
use crate::transport::{Call, Scope, Transport};
use crate::wire::{AgentProfile, LlmProfileStatus, ProfileDiagnostics};
use crate::{Contract, ContractError, ProfileName};

/// A model profile to be stored.
#[derive(Clone, Copy)]
pub struct LlmProfile<'a> {
    /// The model, as `provider/name`.
    pub model: &'a str,
    /// The endpoint, when it is not the provider's own.
    pub base_url: Option<&'a str>,
    /// The key for it, when it needs one.
    pub api_key: Option<&'a Secret>,
}

/// A client of one started Agent Server that stores and reads profiles, and nothing else.
pub struct SetupClient {
    transport: Transport,
}

impl fmt::Debug for SetupClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SetupClient").field("port", &self.transport.port()).finish_non_exhaustive()
    }
}

impl SetupClient {
    /// A client for the server on 127.0.0.1:`port` that was started with this session key.
    pub fn new(contract: &'static Contract, port: u16, session_key: Arc<Secret>) -> Self {
        Self { transport: Transport::new(contract, port, session_key, Scope::SetUp, Watch::default()) }
    }

    /// How many requests have left through this client, by route name.
    pub fn requests_sent(&self) -> BTreeMap<&'static str, u64> {
        self.transport.requests_sent()
    }

    /// Stores a model profile, over one of the same name.
    ///
    /// # Errors
    /// Any [`ContractError`] of a mutation; none ever repeats the key.
    pub async fn put_llm_profile(&self, name: &ProfileName, profile: &LlmProfile<'_>) -> Result<(), ContractError> {
        let mut llm = Map::new();
        llm.insert("model".to_owned(), Value::from(profile.model));
        llm.insert("usage_id".to_owned(), Value::from("agent"));
        if let Some(base_url) = profile.base_url {
            llm.insert("base_url".to_owned(), Value::from(base_url));
        }
        if let Some(api_key) = profile.api_key {
            llm.insert("api_key".to_owned(), Value::from(api_key.expose()));
        }
        let call = Call::new(RouteName::PutLlmProfile, PathValue::Name(name));
        let mut call = call.with_body(vec![("llm", Value::Object(llm))]);
        call.secrets.extend(profile.api_key);
        self.transport.call(call).await.map(|_reply| ())
    }

    /// A stored model profile; none when there is none of that name.
    ///
    /// # Errors
    /// Any [`ContractError`] of a read.
    pub async fn llm_profile_status(&self, name: &ProfileName) -> Result<Option<LlmProfileStatus>, ContractError> {
        let call = Call::new(RouteName::LlmProfileStatus, PathValue::Name(name));
        found(self.transport.call(call).await)?.map(|reply| LlmProfileStatus::parse(name, &reply.value)).transpose()
    }

    /// Stores an agent profile with exactly these tools, without sub-agents, MCP servers or a choice of models of its
    /// own. Over one of the same name: its id stays, its revision goes up by one.
    ///
    /// # Errors
    /// Any [`ContractError`] of a mutation.
    pub async fn put_agent_profile(
        &self,
        name: &ProfileName,
        llm_profile: &ProfileName,
        tools: &[String],
    ) -> Result<(), ContractError> {
        let tools = tools.iter().map(|tool| serde_json::json!({"name": tool})).collect();
        let call = Call::new(RouteName::PutAgentProfile, PathValue::Name(name))
            .with_body(vec![("llm_profile_ref", Value::from(llm_profile.as_str())), ("tools", Value::Array(tools))]);
        self.transport.call(call).await.map(|_reply| ())
    }

    /// A stored agent profile; none when there is none of that name.
    ///
    /// # Errors
    /// Any [`ContractError`] of a read.
    pub async fn find_agent_profile(&self, name: &ProfileName) -> Result<Option<AgentProfile>, ContractError> {
        let call = Call::new(RouteName::FindAgentProfile, PathValue::Name(name));
        found(self.transport.call(call).await)?.map(|reply| AgentProfile::parse(name, &reply.value)).transpose()
    }

    /// What a launch from an agent profile would meet, without launching.
    ///
    /// # Errors
    /// [`ContractError::Status`] with 404 when there is none of that name; any other.
    pub async fn materialize(&self, name: &ProfileName) -> Result<ProfileDiagnostics, ContractError> {
        let reply = self.transport.call(Call::new(RouteName::Materialize, PathValue::Name(name))).await?;
        ProfileDiagnostics::parse(&reply.value)
    }
}

fn found<T>(outcome: Result<T, ContractError>) -> Result<Option<T>, ContractError> {
    match outcome {
        Err(ContractError::Status { status: 404, .. }) => Ok(None),
        outcome => outcome.map(Some),
    }
}
