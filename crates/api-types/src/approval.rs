//! The pending batch, whole.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One action of a pending batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingAction {
    /// The server's event id.
    pub event_id: String,
    /// Tool that would run.
    pub tool: String,
    /// Its arguments as they would run, redacted and bounded as flagged.
    pub arguments: Value,
    /// The agent's own risk word, never ours.
    pub agent_risk: Option<String>,
    /// The agent's own summary, never ours.
    pub agent_summary: Option<String>,
    /// Something was replaced by a mark.
    pub redacted: bool,
    /// Something was cut.
    pub truncated: bool,
    /// Control, bidirectional or invisible characters were made visible.
    pub deceptive_text: bool,
    /// Its accept was sent and no answer is known: it can only be rejected.
    pub in_doubt: bool,
}

/// A file of the workspace that a command names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamedFile {
    /// Relative to the workspace.
    pub path: String,
    /// SHA-256 of its content, lower-case hexadecimal; null when it is larger than 16 MiB or cannot be read.
    pub sha256: Option<String>,
    /// It is not as it was when the batch was first seen: the batch can only be rejected.
    pub changed: bool,
}

/// A process that an earlier command left running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackgroundProcess {
    /// Process id.
    pub pid: u32,
    /// Its name, chosen by itself, at most 15 bytes.
    pub name: String,
}

/// All pending actions of a session: decided whole, by the digest of their full content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Approval {
    /// 64 lower-case hexadecimal digits over the batch's content.
    pub approval_id: String,
    /// Session it belongs to.
    pub session_id: String,
    /// RFC 3339.
    pub expires_at: String,
    /// Every action, in order.
    pub actions: Vec<PendingAction>,
    /// A live secret stands in it: it can only be rejected.
    pub holds_secret: bool,
    /// False where this reply left anything out; then accepting needs a full read first.
    pub complete: bool,
    /// The proved level of confinement.
    pub confinement_level: String,
    /// Files of the workspace that the commands name, as they are now; one that changed since the batch was first seen refuses the accept.
    pub named_files: Vec<NamedFile>,
    /// Processes that earlier approvals left running.
    pub background_processes: Vec<BackgroundProcess>,
    /// What approval cannot promise, in words for the person who decides.
    pub notes: Vec<String>,
}

/// What waits for a decision: nothing, or one batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalList {
    /// Empty when nothing is pending.
    pub approvals: Vec<Approval>,
}
