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

/// Whether the daemon takes sessions: exactly when its state is `ready` or `degraded`. Sent with 503 when it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// The daemon takes sessions.
    pub ready: bool,
    /// Empty when ready.
    pub reasons: Vec<Reason>,
}

/// Where a canary stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CanaryState {
    /// Not read yet of what is being started.
    Starting,
    /// What it guards holds.
    Ready,
    /// It held, and the newest read got no answer: it is read again at once.
    Degraded,
    /// What it guards does not hold, or could not be read.
    Blocked,
    /// It fails at start after start of its server, whose `next_try_at` says when it is read again.
    CrashLooping,
    /// There is nothing that it could be read of.
    Stopped,
}

/// What is known of one canary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Canary {
    /// Stable id.
    pub canary: String,
    /// `installation`, `server` or `session`.
    pub scope: String,
    /// Where it stands.
    pub state: CanaryState,
    /// What is to be done; null when it is ready.
    pub remedy: Option<String>,
    /// Whether what it guards held when it was read last; false also where it was not read.
    pub passed: bool,
    /// Stable code of the failure; null where nothing wrong was seen.
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
    /// What is to be done; null when it is ready.
    pub remedy: Option<String>,
    /// Version proved by the canary.
    pub version: Option<String>,
    /// Random for each start.
    pub server_start_id: Option<String>,
    /// SHA-256 over binary, version and launch shape, hexadecimal.
    pub launch_config_digest: Option<String>,
    /// Process id of the server.
    pub pid: Option<u32>,
    /// Installation and server canaries of this server, all of them; those that are not read yet, too.
    pub canaries: Vec<Canary>,
    /// Why it is not ready: the last failure, with how the server ended and its last words, redacted.
    pub reason: Option<Reason>,
    /// How often it failed in a row; a server that stays ready for 30 s begins a new row.
    pub failures_in_a_row: u32,
    /// RFC 3339 time from which on it is started by itself if a session needs it. Null while it runs, and when only a
    /// request starts it.
    pub next_try_at: Option<String>,
}

/// Where the spare stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpareState {
    /// None: one is made some seconds after a server became ready.
    None,
    /// It imports.
    Starting,
    /// It waits for the next server that is needed.
    Waiting,
    /// The last one could not be made or used, or ended. `next_try_at` says when another is made.
    Failed,
}

/// The process that waits, everything imported, to become the next server. It belongs to no workspace and holds no key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Spare {
    /// Where it stands.
    pub state: SpareState,
    /// What is to be done; null when it waits.
    pub remedy: Option<String>,
    /// Process id of one that waits.
    pub pid: Option<u32>,
    /// Why the last one failed; null unless it is `failed`.
    pub reason: Option<Reason>,
    /// RFC 3339 time from which on another is made. Null unless the last one failed, and when none is made any more.
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
    /// The daemon was asked to stop and ends its servers.
    Stopping,
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

/// Connections that were closed unread because of who made them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RefusedPeers {
    /// How many since the daemon began.
    pub count: u64,
    /// Why the last one was: `not_identified`, `other_user`, `descendant`, `descent_unknown`, `ancestry_lost` or `check_failed`.
    pub last_code: Option<String>,
    /// RFC 3339 time of the last one.
    pub last_at: Option<String>,
}

/// One look at everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The whole in one word.
    pub state: OverallState,
    /// What is to be done; null when it is ready.
    pub remedy: Option<String>,
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
    /// The spare server. Null unless `[agent_server] standby` asks for one.
    pub spare: Option<Spare>,
    /// Sessions.
    pub sessions: Vec<SessionSummary>,
    /// The proved level of confinement: `full`, `partial` or `weak`.
    pub confinement_level: String,
    /// What the level lacks, in words.
    pub confinement_missing: Vec<String>,
    /// What else is to be known of what the agent's processes may reach: further directories that the configuration grants,
    /// what was passed over, and whether git can be used.
    pub confinement_notes: Vec<String>,
    /// Connections that were closed unread because of who made them.
    pub refused_peers: RefusedPeers,
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
