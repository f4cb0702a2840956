//! The daemon, its servers, and what is wrong with them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::Reason;
use crate::session::SessionSummary;

/// The daemon answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always true: a daemon that is not alive does not answer.
    pub alive: bool,
}

/// Whether the daemon can take a session. Sent with 503 when it cannot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// The daemon can take a session.
    pub ready: bool,
    /// Empty when ready.
    pub reasons: Vec<Reason>,
}

/// The verdict of one canary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Canary {
    /// Stable id.
    pub canary: String,
    /// `installation`, `server` or `session`.
    pub scope: String,
    /// Whether what it guards may go on.
    pub passed: bool,
    /// Stable code of the failure.
    pub code: Option<String>,
    /// What was seen.
    pub detail: String,
}

/// Where an owned server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// No process; started again when a session needs it.
    Stopped,
    /// Launched, not yet proved.
    Starting,
    /// All server canaries passed.
    Ready,
    /// Could not be started, ended by itself, or a canary failed. `next_try_at` says when it is started again by itself.
    Failed,
    /// Failed so often in a row that requests are refused until `next_try_at`.
    CrashLooping,
    /// Being ended.
    Stopping,
}

/// One owned server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Server {
    /// Resolved workspace it serves.
    pub workspace: String,
    /// Where it stands.
    pub state: ServerState,
    /// Version proved by the canary.
    pub version: Option<String>,
    /// Random for each start.
    pub server_start_id: Option<String>,
    /// SHA-256 over binary, version and launch shape, hexadecimal.
    pub launch_config_digest: Option<String>,
    /// Process id of the server.
    pub pid: Option<u32>,
    /// Installation and server canaries of this server.
    pub canaries: Vec<Canary>,
    /// Why it is not ready: the last failure, with how the server ended and its last words, redacted.
    pub reason: Option<Reason>,
    /// How often it failed in a row; a server that stays ready for 30 s begins a new row.
    pub failures_in_a_row: u32,
    /// RFC 3339 time from which on it is started by itself if a session needs it. Null while it runs, and when only a
    /// request starts it.
    pub next_try_at: Option<String>,
}

/// The whole in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverallState {
    /// Nothing is wrong.
    Ready,
    /// Something is wrong, and some sessions can go on.
    Degraded,
    /// No session can take a step.
    Blocked,
    /// The daemon has begun and checks its records.
    Starting,
}

/// Something wrong and what mends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// Stable code.
    pub code: String,
    /// What was seen.
    pub detail: String,
    /// What mends it.
    pub remedy: String,
}

/// One look at everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The whole in one word.
    pub state: OverallState,
    /// Version of gatepost.
    pub gatepost_version: String,
    /// Process id of the daemon.
    pub pid: u32,
    /// The reviewed contract's version.
    pub contract_version: String,
    /// Where the managed server is installed, if it is.
    pub installed: Option<String>,
    /// Servers by workspace.
    pub servers: Vec<Server>,
    /// Sessions.
    pub sessions: Vec<SessionSummary>,
    /// The proved level of confinement: `full`, `partial` or `weak`.
    pub confinement_level: String,
    /// What the level lacks, in words.
    pub confinement_missing: Vec<String>,
    /// What is wrong, each with its remedy.
    pub findings: Vec<Finding>,
    /// What happened at the start that a person should know, and that needs no remedy.
    pub notes: Vec<String>,
}

/// A set-up action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetupAction {
    /// Stable word.
    pub id: String,
    /// The command line that does it.
    pub command: String,
    /// Whether it is needed now.
    pub needed: bool,
}

/// Availability, cheaper than status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Probe {
    /// Whether a session could be started now.
    pub available: bool,
    /// Why not.
    pub reasons: Vec<Reason>,
    /// What can be done about it.
    pub setup_actions: Vec<SetupAction>,
}
