//! Every reason for a "no", as a stable code.

use serde::{Deserialize, Serialize};

/// Whether the very same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// The state it met may change by itself: try again.
    Later,
    /// Something must change first: the request, the token, the configuration or a decision.
    No,
}

macro_rules! refusal_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $status:literal $again:ident;)+) => {
        /// Stable code of a refusal. Clients decide by it; its spelling never changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum RefusalCode {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl RefusalCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The code as clients see it, in snake case.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The HTTP status of a reply that carries it.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            fn again(self) -> Again {
                match self { $(Self::$variant => Again::$again,)+ }
            }

            /// What it means, in one sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

refusal_codes! {
    // The request itself.
    /// The operation is not in the catalog.
    UnknownOperation "unknown_operation" 422 No;
    /// The input has a field that the operation does not know.
    UnknownField "unknown_field" 422 No;
    /// The input lacks a field that the operation needs.
    MissingField "missing_field" 422 No;
    /// A field has another type than the catalog says.
    WrongType "wrong_type" 422 No;
    /// A field is longer than the catalog allows.
    TooLong "too_long" 422 No;
    /// A field that must say something is empty.
    Empty "empty" 422 No;
    /// A field has a value that the catalog does not allow.
    InvalidValue "invalid_value" 422 No;
    /// The body is not JSON.
    MalformedJson "malformed_json" 400 No;
    /// The body is larger than a request may be.
    BodyTooLarge "body_too_large" 413 No;
    /// The body's content type is not JSON.
    UnsupportedMediaType "unsupported_media_type" 415 No;
    /// Nothing stands at this path.
    NotFound "not_found" 404 No;
    /// The path does not take this method.
    MethodNotAllowed "method_not_allowed" 405 No;
    /// The idempotency header and the client action id differ.
    IdempotencyKeyConflict "idempotency_key_conflict" 400 No;
    /// The cursor cannot be read.
    CursorInvalid "cursor_invalid" 400 No;
    /// The request breaks HTTP in some other way.
    BadRequest "bad_request" 400 No;
    /// The request did not arrive in time.
    RequestTimeout "request_timeout" 408 Later;

    // Who asks.
    /// No token, or none that is known.
    Unauthenticated "unauthenticated" 401 No;
    /// The token's roles do not allow this.
    NotPermitted "not_permitted" 403 No;
    /// The connection comes from another user or from the agent's own processes.
    PeerRefused "peer_refused" 403 No;

    // What it is about.
    /// There is no such session.
    SessionNotFound "session_not_found" 404 No;
    /// There is no receipt of that client action id.
    ActionNotFound "action_not_found" 404 No;
    /// The conversation is not on the server.
    ConversationNotFound "conversation_not_found" 404 No;
    /// A session of that identifier stands already, with another workspace.
    SessionExists "session_exists" 409 No;
    /// The session was closed.
    SessionClosed "session_closed" 409 No;

    // Approvals.
    /// No batch of that approval id was ever offered.
    ApprovalNotFound "approval_not_found" 404 No;
    /// The batch changed since it was shown.
    ApprovalSuperseded "approval_superseded" 409 No;
    /// The batch was offered too long ago to be accepted.
    ApprovalExpired "approval_expired" 410 No;
    /// The batch was shown cut or redacted, and this token has not fetched it in full.
    ApprovalNotShownInFull "approval_not_shown_in_full" 409 No;
    /// The batch holds a live secret and can only be rejected.
    ApprovalHoldsSecret "approval_holds_secret" 409 No;
    /// A file that the batch names changed since the batch was first seen.
    NamedFileChanged "named_file_changed" 409 No;
    /// Actions wait for a decision.
    ApprovalPending "approval_pending" 409 No;
    /// An accept was sent for a pending action and its outcome is unknown: it can only be rejected.
    ApprovalInDoubt "approval_in_doubt" 409 No;
    /// No action waits for a decision.
    NothingPending "nothing_pending" 409 No;

    // The session's state.
    /// The capability generation is older than the session's.
    GenerationStale "generation_stale" 409 No;
    /// The operation needs the capability generation that the caller decided on.
    GenerationMissing "generation_missing" 422 No;
    /// The client action id was used for something else.
    ClientActionIdReused "client_action_id_reused" 422 No;
    /// The first call with this client action id has not been recorded yet.
    ActionInFlight "action_in_flight" 409 Later;
    /// The agent runs.
    SessionRunning "session_running" 409 Later;
    /// The last step has not been seen to begin and end.
    SessionNotQuiet "session_not_quiet" 409 Later;
    /// The session takes no step until its owner has looked at it.
    SessionBlocked "session_blocked" 409 No;
    /// The event is not a safe point of the active branch.
    NotASafePoint "not_a_safe_point" 422 No;
    /// The operation is not offered in the session's present state.
    NotAdvertised "not_advertised" 409 No;
    /// The model is not among the reviewed choices.
    ModelNotReviewed "model_not_reviewed" 422 No;
    /// The server's event log does not form a readable branch.
    BranchUnreadable "branch_unreadable" 502 No;

    // Outcomes of recorded actions.
    /// An interrupt cancelled it before it was sent.
    Interrupted "interrupted" 409 No;
    /// The daemon stopped before this step was sent; it never will be.
    StoppedBeforeStep "stopped_before_step" 409 No;
    /// It was sent, and whether it took effect cannot be known.
    OutcomeUnknown "outcome_unknown" 504 No;
    /// The server answered success and the effect was not seen in time.
    NoEvidence "no_evidence" 504 No;

    // Canaries and what they guard.
    /// A canary failed or could not be read.
    CanaryFailed "canary_failed" 409 No;
    /// The server is not the reviewed version.
    VersionMismatch "version_mismatch" 409 No;
    /// The server listens elsewhere than on the inherited socket.
    ListenerNotInherited "listener_not_inherited" 409 No;
    /// The start-up module does not report what it must.
    StartupModuleMissing "startup_module_missing" 409 No;
    /// The server answers without the right key.
    AuthenticationOpen "authentication_open" 409 No;
    /// The server's initialisation route is open.
    InitOpen "init_open" 409 No;
    /// Installed files differ from their recorded hashes.
    InstallationAltered "installation_altered" 409 No;
    /// The confirmation policy is not to ask always.
    PolicyWeak "policy_weak" 409 No;
    /// The conversation's agent is of a kind that asks nobody.
    AgentKindRefused "agent_kind_refused" 409 No;
    /// The conversation has a tool that is not configured, or is never allowed.
    ToolNotConfigured "tool_not_configured" 409 No;
    /// The conversation has hooks.
    HooksPresent "hooks_present" 409 No;
    /// The conversation has MCP servers.
    McpPresent "mcp_present" 409 No;
    /// The conversation has plugins.
    PluginsPresent "plugins_present" 409 No;
    /// The conversation was launched from another agent profile or revision.
    ProfileMismatch "profile_mismatch" 409 No;
    /// The workspace holds content that would run by being there.
    WorkspaceContent "workspace_content" 409 No;
    /// The workspace stands outside the configured roots.
    WorkspaceOutsideRoots "workspace_outside_roots" 422 No;
    /// The workspace does not exist or is not a directory.
    WorkspaceNotFound "workspace_not_found" 422 No;
    /// The conversation's workspace is not a local directory.
    WorkspaceNotLocal "workspace_not_local" 409 No;
    /// The conversation works in another directory than the session was bound to.
    WorkspaceMismatch "workspace_mismatch" 409 No;
    /// An action ran that nobody accepted.
    UnreviewedAction "unreviewed_action" 409 No;
    /// The proved confinement is weaker than the configuration accepts.
    ConfinementTooWeak "confinement_too_weak" 409 No;

    // Bounds.
    /// As many prompts wait as may wait.
    QueueFull "queue_full" 503 Later;
    /// As many servers run as may run, and none is idle.
    ServerLimit "server_limit" 503 Later;
    /// As many connections stand as may stand.
    TooManyConnections "too_many_connections" 503 Later;
    /// As many polls wait as may wait.
    TooManyWaiting "too_many_waiting" 503 Later;

    // The server and the daemon.
    /// The reviewed server is not installed.
    ServerNotInstalled "server_not_installed" 503 No;
    /// The server did not come up.
    ServerStartFailed "server_start_failed" 503 Later;
    /// The server failed again and again; it is not started before its next try.
    ServerCrashLooping "server_crash_looping" 503 Later;
    /// The server is not up.
    ServerUnavailable "server_unavailable" 503 Later;
    /// The server refused the call.
    UpstreamRefused "upstream_refused" 502 No;
    /// The server could not be reached.
    UpstreamUnreachable "upstream_unreachable" 502 Later;
    /// The server did not answer in time.
    UpstreamTimeout "upstream_timeout" 504 Later;
    /// The server answered something outside its contract.
    UpstreamMalformed "upstream_malformed" 502 No;
    /// The configuration is wrong.
    ConfigurationInvalid "configuration_invalid" 503 No;
    /// The daemon is stopping.
    ShuttingDown "shutting_down" 503 Later;
    /// The daemon has begun and checks its records.
    RecordsChecking "records_checking" 503 Later;
    /// The ledger is damaged, or its chain of receipts is broken.
    LedgerDamaged "ledger_damaged" 503 No;
    /// No space is left for the daemon's records.
    DiskFull "disk_full" 503 Later;
    /// The daemon's records, or their directory, are read-only.
    RecordsReadOnly "records_read_only" 503 No;
    /// The daemon's records cannot be written.
    StoreFailed "store_failed" 500 Later;
    /// The daemon met something it should not have.
    Internal "internal" 500 No;
}

impl RefusalCode {
    /// The code of that exact spelling.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }

    /// Whether the very same request may succeed later without anyone changing anything.
    pub fn retryable(self) -> bool {
        self.again() == Again::Later
    }
}

impl std::fmt::Display for RefusalCode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A "no": the code for programs, the detail for people. The detail never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {detail}")]
#[must_use]
pub struct Refusal {
    /// Stable code.
    pub code: RefusalCode,
    /// What was met and what to do next.
    pub detail: String,
}

impl Refusal {
    /// A refusal of this code.
    pub fn new(code: RefusalCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

#[cfg(test)]
mod tests;
