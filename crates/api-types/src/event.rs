//! Events of a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A prompt.
    UserMessage,
    /// Text of the agent.
    AgentMessage,
    /// A proposed action: tool, full arguments, the agent's own risk and summary.
    ToolCall,
    /// What came back: text, exit code, `is_error`.
    ToolResult,
    /// A batch waits for a decision.
    ApprovalRequested,
    /// A batch was decided or is gone.
    ApprovalResolved,
    /// The execution status moved.
    Status,
    /// Tokens and cost.
    Usage,
    /// Server started, crashed, restarted; session blocked; operation refused.
    Lifecycle,
    /// Anything else the server wrote.
    Other,
}

impl EventKind {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UserMessage => "user_message",
            Self::AgentMessage => "agent_message",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::ApprovalRequested => "approval_requested",
            Self::ApprovalResolved => "approval_resolved",
            Self::Status => "status",
            Self::Usage => "usage",
            Self::Lifecycle => "lifecycle",
            Self::Other => "other",
        }
    }
}

/// One redacted event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Opaque position to go on from.
    pub cursor: String,
    /// Gapless within an epoch, from 1.
    pub seq: u64,
    /// Session.
    pub session_id: String,
    /// The server's event id, or gatepost's own for `lifecycle` and approvals.
    pub event_id: String,
    /// Time as the source gave it.
    pub at: String,
    /// What it is about.
    pub kind: EventKind,
    /// Redacted content.
    pub payload: Value,
}

/// Why a reader must start over. On the event stream it is one `resync` frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resync {
    /// Stable word.
    pub reason: String,
    /// Where to start.
    pub first_cursor: String,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    /// In order; empty when nothing came within `wait_ms`.
    pub events: Vec<Event>,
    /// Where to go on.
    pub next_cursor: String,
    /// Set when the given cursor does not belong to this epoch; the events then start at its `first_cursor`.
    pub resync: Option<Resync>,
}
