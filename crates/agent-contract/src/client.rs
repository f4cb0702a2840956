//! The calls of a session. Reads are here; changes that cause no step, and steps, have a file each.

mod changes;
mod steps;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use host::Secret;
use rules::passage::Watch;
use serde_json::Value;

use crate::route::{PathValue, RouteName};
use crate::transport::{Call, KeyKind, Scope, Transport};
use crate::wire::{ConversationInfo, EventsPage, ServerInfo};
use crate::{Contract, ContractError, EventId, SessionId};

pub use changes::{Created, NewConversation};

/// A client of one started Agent Server. Clones share connections and counts.
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Arc<Transport>,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("port", &self.transport.port()).finish_non_exhaustive()
    }
}

impl Client {
    /// A client for the server on 127.0.0.1:`port` that was started with this session key.
    pub fn new(contract: &'static Contract, port: u16, session_key: Arc<Secret>) -> Self {
        Self::watched(contract, port, session_key, Watch::default())
    }

    /// The same, with each of its calls watched.
    pub fn watched(contract: &'static Contract, port: u16, session_key: Arc<Secret>, watch: Watch) -> Self {
        Self { transport: Arc::new(Transport::new(contract, port, session_key, Scope::Sessions, watch)) }
    }

    /// The contract it keeps to.
    pub fn contract(&self) -> &'static Contract {
        self.transport.contract()
    }

    /// How many requests have left through this client and its clones, by route name.
    pub fn requests_sent(&self) -> BTreeMap<&'static str, u64> {
        self.transport.requests_sent()
    }

    /// Title, versions, capabilities. Sent without the key, so that it may be asked before the server is trusted.
    ///
    /// # Errors
    /// Any [`ContractError`] of a read.
    pub async fn server_info(&self) -> Result<ServerInfo, ContractError> {
        let reply = self.transport.call(Call::new(RouteName::ServerInfo, PathValue::None)).await?;
        ServerInfo::parse(&reply.value)
    }

    /// The status with which the server answers a read that needs a key, when given this one.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn auth_probe(&self, key: KeyKind) -> Result<u16, ContractError> {
        let mut call = Call::new(RouteName::AuthProbe, PathValue::None);
        call.key = key;
        self.transport.probe(call).await
    }

    /// The status with which the server answers an attempt to initialise it without a key. The body is one that can
    /// initialise nothing, whatever the server's state: 401, 403, 404 or 405 mean that the endpoint is closed; a 422
    /// means that it read the body and so is open, as any 2xx does.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn init_probe(&self) -> Result<u16, ContractError> {
        let mut call = Call::new(RouteName::InitProbe, PathValue::None);
        call.key = KeyKind::Missing;
        self.transport.probe(call).await
    }

    /// A conversation's state.
    ///
    /// # Errors
    /// [`ContractError::Status`] with 404 when there is none; any other of a read.
    pub async fn conversation(&self, id: &SessionId) -> Result<ConversationInfo, ContractError> {
        let route = RouteName::Conversation;
        let reply = self.transport.call(Call::new(route, PathValue::Session(id))).await?;
        ConversationInfo::parse(route, id, &reply.value)
    }

    /// The events after `after`, or from the beginning, in append order; at most 100 a page.
    ///
    /// # Errors
    /// [`ContractError::Malformed`] when `after` is not in the log or an event cannot be read; any other of a read.
    pub async fn events_page(&self, id: &SessionId, after: Option<&str>) -> Result<EventsPage, ContractError> {
        let mut call = Call::new(RouteName::EventsPage, PathValue::Session(id));
        if let Some(after) = after {
            call.query = vec![("page_id", Value::from(EventId::parse(after)?.as_str()))];
        }
        let reply = self.transport.call(call).await?;
        EventsPage::parse(after, &reply.value)
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod once_tests;
#[cfg(test)]
mod route_tests;
