//! The reviewed contract of one Agent Server version, and the client that can express nothing else.
//!
//! [`Contract`] is data: identity, locked requirements, and every route with its bounds. [`Client`] makes the calls of a
//! session, [`SetupClient`] those that set a server up; both build each request from the contract, send it to
//! 127.0.0.1 only, and send no mutation twice. A call that can make the agent take a step consumes a
//! [`rules::gate::StepGrant`]. [`EventStream`] only listens. [`wire`] reads the answers, and reads them strictly.

mod client;
mod connection;
mod contract;
mod error;
mod ids;
mod reason;
mod route;
mod setup;
mod stream;
mod transport;
pub mod wire;

#[cfg(test)]
mod testing;

pub use client::{Client, Created, NewConversation};
pub use contract::{Contract, ContractDataError, MAX_REPLY_BYTES, StartupFiles};
pub use error::ContractError;
pub use ids::{EventId, MAX_EVENT_ID_CHARS, MAX_PROFILE_NAME_CHARS, ProfileName, SessionId};
pub use route::{Route, RouteName, TimeoutClass};
pub use setup::{LlmProfile, SetupClient};
pub use stream::{CloseReason, EventStream, StreamItem};
pub use transport::KeyKind;
pub use wire::{AgentInfo, ConversationInfo, EventsPage, ServerInfo, WireEvent};
