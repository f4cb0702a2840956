//! Sessions: creating, attaching, listing, and the snapshot.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::problem::Reason;
use crate::status::Canary;

/// Asks for a new session. Never attaches to a conversation that gatepost does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSessionRequest {
    /// Absolute directory the agent works in, inside a configured root; at most 4096 bytes.
    #[schema(max_length = 4096, pattern = "^/[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$")]
    pub workspace: String,
    /// Title shown in lists, 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*[^\\s\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029][^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$"
    )]
    pub title: Option<String>,
    /// First prompt, sent once the session stands; at most 200,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200_000, pattern = "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$")]
    pub prompt: Option<String>,
    /// Canonical UUID chosen by the client: the same one again is the same session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    pub session_id: Option<String>,
}

/// Asks to take up a conversation the server already has: one read, nothing is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachSessionRequest {
    /// Absolute directory whose server holds the conversation; at most 4096 bytes.
    #[schema(max_length = 4096, pattern = "^/[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$")]
    pub workspace: String,
    /// The server's conversation id, a canonical UUID.
    #[schema(pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    pub conversation_id: String,
}

/// Where a session stands; what its agent does is its `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Its server is being started.
    Starting,
    /// It is on a server that is up, and takes steps.
    Ready,
    /// It takes no step; `blocked_reason` says why.
    Blocked,
    /// Its server fails again and again.
    CrashLooping,
    /// It is on no server, since nobody needed it; asked for, it is put on one.
    Stopped,
}

/// A line of the session list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionSummary {
    /// Canonical UUID, the same as the server's conversation id.
    pub session_id: String,
    /// Resolved directory.
    pub workspace: String,
    /// Title, when one was given.
    pub title: Option<String>,
    /// Where it stands.
    pub state: SessionState,
    /// What is to be done; null when it is ready.
    pub remedy: Option<String>,
    /// The server's execution status, as last seen.
    pub status: String,
    /// Number of pending actions that wait for a decision.
    pub pending_actions: usize,
    /// Why the session takes no step, if it takes none.
    pub blocked_reason: Option<Reason>,
    /// RFC 3339.
    pub created_at: String,
}

/// All sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// Oldest first.
    pub sessions: Vec<SessionSummary>,
}

/// An operation that may be asked for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdvertisedOperation {
    /// Which operation.
    pub operation_id: String,
    /// Whether the request must carry the current capability generation.
    pub needs_generation: bool,
}

/// Where a session may be taken back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RewindChoice {
    /// One-based number of the user turn.
    pub turn: u32,
    /// The event that becomes the head.
    pub event_id: String,
    /// First characters of the turn's prompt.
    pub text: String,
    /// RFC 3339, or the server's own words when it cannot be read.
    pub at: String,
}

/// Why the tripwire blocked a session: actions ran that nobody accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockChoice {
    /// Digest over what was observed: 64 lower-case hexadecimal digits. More observed is another block.
    pub block_id: String,
    /// Event ids of the observations of those actions, in log order.
    pub observation_ids: Vec<String>,
}

/// Values that an operation's input may take now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Choices {
    /// Safe points for `session.rewind`, newest last.
    pub rewind: Vec<RewindChoice>,
    /// Models reviewed for `session.model.set`.
    pub model: Vec<String>,
    /// What `session.block.acknowledge` would lift; one at most.
    #[serde(default)]
    pub acknowledge: Vec<BlockChoice>,
}

/// Everything a client needs to decide what to do with a session next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionSnapshot {
    /// Canonical UUID, the same as the server's conversation id.
    pub session_id: String,
    /// Resolved directory.
    pub workspace: String,
    /// Title, when one was given.
    pub title: Option<String>,
    /// Where it stands.
    pub state: SessionState,
    /// What is to be done; null when it is ready.
    pub remedy: Option<String>,
    /// The server's execution status at `observed_at`.
    pub status: String,
    /// Number of pending actions that wait for a decision.
    pub pending_actions: usize,
    /// RFC 3339.
    pub created_at: String,
    /// Moves when what may be done changes, not with every event.
    pub capability_generation: u64,
    /// RFC 3339 time of the read behind this snapshot.
    pub observed_at: String,
    /// RFC 3339 time until which it may be shown without asking again.
    pub valid_until: String,
    /// What may be done now.
    pub advertised_operations: Vec<AdvertisedOperation>,
    /// Values that an operation's input may take now.
    pub choices: Choices,
    /// Current values, such as `model`, `title`, `policy`, `agent_kind`, `queued_prompts`, `event_stream` and `confinement_level`; `quiet` says
    /// that the last step is known to have begun and ended, which a terminal `status` alone never does.
    pub values: BTreeMap<String, Value>,
    /// The session's own canaries, all of them; those that are not read yet, too. Those of its server stand in the status.
    #[serde(default)]
    pub canaries: Vec<Canary>,
    /// Why the session takes no step, if it takes none.
    pub blocked_reason: Option<Reason>,
    /// Where the event stream stands.
    pub cursor: String,
}

/// A session was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Closed {
    /// Canonical UUID.
    pub session_id: String,
    /// Whether the conversation was removed from the server as well.
    pub deleted: bool,
}
