//! What the controller says of itself and of its sessions: plain data, turned into reply bodies by `api`.

mod audit;
mod spare;
mod tokens;

use std::collections::BTreeMap;

use rules::catalog::OperationInput;
use rules::operation::OperationId;
use rules::refusal::Refusal;
use rules::role::Roles;
use rules::standing::{CanaryReport, DaemonState, ServerStanding, SessionStanding};
use serde_json::Value;

pub use audit::{AuditEntry, AuditPage, BrokenLink, RefusedRequest, Verification};
pub use rules::standing::Finding;
pub use spare::SpareView;
pub use tokens::{CreatedToken, TokenView};

/// Who asks: a name for the record, and what it may do.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Name of the token, `owner` for the owner's.
    pub name: String,
    /// The roles its token carries.
    pub roles: Roles,
}

/// A request for a new session.
#[derive(Debug, Clone)]
pub struct CreateSession {
    /// Directory the agent works in, as the client wrote it.
    pub workspace: String,
    /// Title shown in lists, at most 200 characters.
    pub title: Option<String>,
    /// First prompt, sent once the session stands.
    pub prompt: Option<String>,
    /// Client-chosen identifier: the same one again is the same session.
    pub session_id: Option<String>,
}

/// A request to take up a conversation the server already has.
#[derive(Debug, Clone)]
pub struct AttachSession {
    /// Directory whose server holds the conversation.
    pub workspace: String,
    /// The server's conversation id.
    pub conversation_id: String,
}

/// A line of the session list.
#[derive(Debug, Clone)]
pub struct SessionSummary {
    /// Canonical UUID, the same as the server's conversation id.
    pub session_id: String,
    /// Resolved directory.
    pub workspace: String,
    /// Title, when one was given.
    pub title: Option<String>,
    /// Where it stands.
    pub state: SessionStanding,
    /// The server's execution status, as last seen.
    pub status: String,
    /// Number of pending actions that wait for a decision.
    pub pending_actions: usize,
    /// Why the session takes no step, if it takes none.
    pub blocked_reason: Option<Refusal>,
    /// RFC 3339.
    pub created_at: String,
}

/// An operation that the snapshot offers now.
#[derive(Debug, Clone)]
pub struct AdvertisedOperation {
    /// Which operation.
    pub operation_id: OperationId,
    /// Whether the request must carry the current capability generation.
    pub needs_generation: bool,
}

/// Where a session may be taken back to.
#[derive(Debug, Clone)]
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

/// Why the tripwire blocked a session, and what acknowledges it.
#[derive(Debug, Clone)]
pub struct BlockChoice {
    /// 64 lower-case hexadecimal digits over what was observed.
    pub block_id: String,
    /// Observations of actions that nobody accepted, in log order.
    pub observation_ids: Vec<String>,
}

/// Everything a client needs to decide what to do with a session next.
#[derive(Debug, Clone)]
pub struct SessionSnapshot {
    /// The list's line.
    pub summary: SessionSummary,
    /// Moves when what may be done changes.
    pub capability_generation: u64,
    /// RFC 3339 time of the read behind this snapshot.
    pub observed_at: String,
    /// RFC 3339 time until which it may be shown without asking again.
    pub valid_until: String,
    /// What may be done now.
    pub advertised_operations: Vec<AdvertisedOperation>,
    /// Safe points, newest last.
    pub rewind_choices: Vec<RewindChoice>,
    /// Models reviewed for `session.model.set`.
    pub model_choices: Vec<String>,
    /// The session's own canaries.
    pub canaries: Vec<CanaryReport>,
    /// The block that `session.block.acknowledge` would lift; one at most.
    pub acknowledge_choices: Vec<BlockChoice>,
    /// Current values: `model`, `title`, `policy`, `agent_kind`, `server_start_id`, `queued_prompts`, `event_stream`, `confinement_level`;
    /// `quiet`: the last step is known to have begun and ended, which a terminal status alone never says.
    pub values: BTreeMap<String, Value>,
    /// Where the event stream stands.
    pub cursor: String,
}

/// One action of a pending batch.
#[derive(Debug, Clone)]
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
    /// Its accept was sent and no answer is known: only rejectable.
    pub in_doubt: bool,
}

/// A file of the workspace that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Relative to the workspace.
    pub path: String,
    /// SHA-256 of its content, lower-case hexadecimal; `None` when it is larger than 16 MiB or cannot be read.
    pub sha256: Option<String>,
    /// It is not as it was when the batch was first seen: the batch can only be rejected.
    pub changed: bool,
}

/// A process in the server's tree that an earlier command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundProcess {
    /// Process id.
    pub pid: u32,
    /// Its name, chosen by itself, at most 15 bytes.
    pub name: String,
}

/// The batch that waits, whole.
#[derive(Debug, Clone)]
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
    /// Whether this reply left anything out.
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

/// A request for an operation, already parsed.
#[derive(Debug, Clone)]
pub struct ActionRequest {
    /// `None` for operations without a session.
    pub session_id: Option<String>,
    /// Validated input.
    pub input: OperationInput,
    /// The caller's idempotency key.
    pub client_action_id: String,
    /// Generation the caller decided on, where the operation needs one.
    pub capability_generation: Option<u64>,
}

/// One upstream mutation of a receipt.
#[derive(Debug, Clone)]
pub struct ReceiptStep {
    /// Name of the upstream call.
    pub name: String,
    /// `intent`, `done`, `failed`, `unknown` or `not_sent`.
    pub state: String,
    /// Code of a failure.
    pub code: Option<String>,
}

/// What was asked and what came of it.
#[derive(Debug, Clone)]
pub struct ReceiptView {
    /// The caller's key.
    pub client_action_id: String,
    /// Session, if the operation has one.
    pub session_id: Option<String>,
    /// Operation.
    pub operation_id: String,
    /// `queued`, `in_flight`, `applied`, `rejected` or `outcome_unknown`.
    pub state: String,
    /// Stable code of a rejection or doubt.
    pub code: Option<String>,
    /// The same for people.
    pub detail: Option<String>,
    /// Upstream mutations in order.
    pub steps: Vec<ReceiptStep>,
    /// What the operation returned (a fork's `session_id`, a read's content).
    pub result: Value,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
    /// The request that it was first asked by: the same as in that reply's `X-Request-Id` and in the log.
    pub request_id: Option<String>,
    /// This reply repeats an earlier one.
    pub replayed: bool,
}

/// One redacted event.
#[derive(Debug, Clone)]
pub struct EventView {
    /// Position to go on from.
    pub cursor: String,
    /// Gapless within an epoch, from 1.
    pub seq: u64,
    /// Session.
    pub session_id: String,
    /// The server's event id, or ours for `lifecycle` and approvals.
    pub event_id: String,
    /// Time as the source gave it.
    pub at: String,
    /// `user_message`, `agent_message`, `tool_call`, `tool_result`, `approval_requested`, `approval_resolved`, `status`, `usage`, `lifecycle`, `other`.
    pub kind: String,
    /// Redacted content.
    pub payload: Value,
}

/// Why a reader must start over.
#[derive(Debug, Clone)]
pub struct Resync {
    /// Stable word.
    pub reason: String,
    /// Where to start.
    pub first_cursor: String,
}

/// A page of events.
#[derive(Debug, Clone)]
pub struct EventPage {
    /// In order.
    pub events: Vec<EventView>,
    /// Where to go on.
    pub next_cursor: String,
    /// Set when the given cursor does not belong to this epoch.
    pub resync: Option<Resync>,
}

/// A signed list of passed and failed canaries.
#[derive(Debug, Clone)]
pub struct Attestation {
    /// The signed document, exactly as signed (canonical JSON).
    pub document: Value,
    /// Ed25519 signature over the canonical JSON of `document`, base64.
    pub signature: String,
    /// Public key, base64.
    pub public_key: String,
}

/// Readiness, with reasons when it is not.
#[derive(Debug, Clone)]
pub struct Readiness {
    /// The daemon can take a session.
    pub ready: bool,
    /// Empty when ready.
    pub reasons: Vec<Finding>,
}

/// One owned server, as status shows it.
#[derive(Debug, Clone)]
pub struct ServerView {
    /// Resolved workspace it serves.
    pub workspace: String,
    /// Where it stands.
    pub state: ServerStanding,
    /// Version proved by the canary.
    pub version: Option<String>,
    /// Random for each start.
    pub server_start_id: Option<String>,
    /// SHA-256 over binary, version and launch shape, hexadecimal.
    pub launch_config_digest: Option<String>,
    /// Process id of the server, for people.
    pub pid: Option<u32>,
    /// Installation and server canaries of this server.
    pub canaries: Vec<CanaryReport>,
    /// Why it is not ready.
    pub reason: Option<Refusal>,
    /// How often it failed in a row; a server that stays ready begins a new row.
    pub failures_in_a_row: u32,
    /// RFC 3339 time from which on it is started by itself if a session needs it; `None` while it runs, and when only a
    /// request starts it.
    pub next_try_at: Option<String>,
}

/// One look at everything.
#[derive(Debug, Clone)]
pub struct StatusView {
    /// The whole in one word.
    pub state: DaemonState,
    /// Version of gatepost.
    pub gatepost_version: String,
    /// Process id of the daemon.
    pub pid: u32,
    /// The reviewed contract's version.
    pub contract_version: String,
    /// Where the managed server is installed, if it is.
    pub installed: Option<String>,
    /// Servers by workspace.
    pub servers: Vec<ServerView>,
    /// The spare; `None` when none is asked for.
    pub spare: Option<SpareView>,
    /// Sessions.
    pub sessions: Vec<SessionSummary>,
    /// `weak` until confinement is proved.
    pub confinement_level: String,
    /// What the level lacks, in words.
    pub confinement_missing: Vec<String>,
    /// What else is to be known of what the agent's processes may reach.
    pub confinement_notes: Vec<String>,
    /// What is wrong, each with its remedy.
    pub findings: Vec<Finding>,
    /// What happened at the start that a person should know, and that needs no remedy.
    pub notes: Vec<String>,
}

/// A set-up action that the probe offers.
#[derive(Debug, Clone)]
pub struct SetupAction {
    /// Stable word.
    pub id: String,
    /// The command line that does it.
    pub command: String,
    /// Whether it is needed now.
    pub needed: bool,
}

/// Availability, cheaper than status.
#[derive(Debug, Clone)]
pub struct ProbeView {
    /// Whether a session could be started now.
    pub available: bool,
    /// Why not.
    pub reasons: Vec<Finding>,
    /// What can be done about it.
    pub setup_actions: Vec<SetupAction>,
}
