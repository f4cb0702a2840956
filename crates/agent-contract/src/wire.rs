//! From the server's JSON to what the decisions need. Pure, and strict wherever a guess could let an action pass: an
//! event that cannot be placed or whose answer cannot be attributed is an error, never a shrug.

mod event;
mod fields;
mod info;
mod setup;

pub use event::{EventsPage, WireEvent, is_transient};
pub use info::{AgentInfo, ConversationInfo, ServerInfo};
pub use setup::{AgentProfile, LlmProfileStatus, ProfileDiagnostics};

pub(crate) use fields::Fields;
