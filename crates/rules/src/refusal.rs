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
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $status:literal $again:ident $remedy:literal;)+) => {
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

            /// What is to be done about it: the same words as in docs/operations.md.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)+ }
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
    UnknownOperation "unknown_operation" 422 No "take one of `GET /v1/catalog`";
    /// The input has a field that the operation does not know.
    UnknownField "unknown_field" 422 No "leave it out; the catalog lists the fields";
    /// The input lacks a field that the operation needs.
    MissingField "missing_field" 422 No "send it";
    /// A field has another type than the catalog says.
    WrongType "wrong_type" 422 No "send it as the catalog says: every input field is a string";
    /// A field is longer than the catalog allows.
    TooLong "too_long" 422 No "shorten it";
    /// A field that must say something is empty.
    Empty "empty" 422 No "say something";
    /// A field has a value that the catalog does not allow.
    InvalidValue "invalid_value" 422 No "the detail names the values";
    /// The body is not JSON.
    MalformedJson "malformed_json" 400 No "send one JSON object, without repeated keys, at most 32 levels deep";
    /// The body is larger than a request may be.
    BodyTooLarge "body_too_large" 413 No "at most 1 MiB";
    /// The body's content type is not JSON.
    UnsupportedMediaType "unsupported_media_type" 415 No "`Content-Type: application/json`, UTF-8, not encoded";
    /// Nothing stands at this path.
    NotFound "not_found" 404 No "see the paths in openapi.json";
    /// The path does not take this method.
    MethodNotAllowed "method_not_allowed" 405 No "`Allow` names the methods";
    /// The idempotency header and the client action id differ.
    IdempotencyKeyConflict "idempotency_key_conflict" 400 No "send one of the two, or both the same";
    /// The cursor cannot be read.
    CursorInvalid "cursor_invalid" 400 No "use a cursor as it was given out, or none";
    /// The request breaks HTTP in some other way.
    BadRequest "bad_request" 400 No "the detail says what";
    /// The request did not arrive in time.
    RequestTimeout "request_timeout" 408 Later "send it whole, sooner";

    // Who asks.
    /// No token, or none that is known.
    Unauthenticated "unauthenticated" 401 No "the token of this state directory: `--token-file`, `--state-dir`";
    /// The token's roles do not allow this.
    NotPermitted "not_permitted" 403 No "a token with the role that the detail names";
    /// The connection comes from another user or from the agent's own processes.
    PeerRefused "peer_refused" 403 No
        "not sent as a reply: such a connection is closed unread. `gatepost status` counts them (`refused_peers`) with the last reason, the daemon's log names the process";

    // What it is about.
    /// There is no such session.
    SessionNotFound "session_not_found" 404 No "`gatepost session list`; a closed session is not there any more";
    /// There is no receipt of that client action id.
    ActionNotFound "action_not_found" 404 No "the whole id; a refused request leaves no receipt";
    /// The conversation is not on the server.
    ConversationNotFound "conversation_not_found" 404 No
        "check workspace and id; it may have been deleted on the server";
    /// No token has that name.
    TokenNotFound "token_not_found" 404 No "`gatepost token list`";
    /// A token of that name was made already.
    TokenExists "token_exists" 409 No "another name: names are never used again, also those of revoked tokens";
    /// As many tokens were made as there may be.
    TooManyTokens "too_many_tokens" 409 No "256 with the revoked ones; go on with those there are";
    /// A session of that identifier stands already, with another workspace.
    SessionExists "session_exists" 409 No "another `session_id`; or `gatepost session attach`";
    /// The session was closed.
    SessionClosed "session_closed" 409 No
        "start another; `gatepost session attach` takes the conversation up again if it was not deleted";

    // Approvals.
    /// No batch of that approval id was ever offered.
    ApprovalNotFound "approval_not_found" 404 No "`gatepost approvals ID`";
    /// The batch changed since it was shown.
    ApprovalSuperseded "approval_superseded" 409 No "look again, then decide again";
    /// The batch was offered too long ago to be accepted.
    ApprovalExpired "approval_expired" 410 No "look again: it is offered anew. `[approval] expires_min`";
    /// The batch was shown cut or redacted, and this token has not fetched it in full.
    ApprovalNotShownInFull "approval_not_shown_in_full" 409 No
        "`gatepost approvals ID --full` with the same token, then decide";
    /// The batch holds a live secret and can only be rejected.
    ApprovalHoldsSecret "approval_holds_secret" 409 No "reject it";
    /// A file that the batch names changed since the batch was first seen.
    NamedFileChanged "named_file_changed" 409 No "reject it and prompt again";
    /// Actions wait for a decision.
    ApprovalPending "approval_pending" 409 No "decide it; or prompt with `--on-pending reject`";
    /// An accept was sent for a pending action and its outcome is unknown: it can only be rejected.
    ApprovalInDoubt "approval_in_doubt" 409 No "find out whether it ran, then reject it";
    /// No action waits for a decision.
    NothingPending "nothing_pending" 409 No "nothing to decide; it was decided or withdrawn";

    // The session's state.
    /// The capability generation is older than the session's.
    GenerationStale "generation_stale" 409 No "look again, then decide again";
    /// The operation needs the capability generation that the caller decided on.
    GenerationMissing "generation_missing" 422 No "send the snapshot's `capability_generation`";
    /// The client action id was used for something else.
    ClientActionIdReused "client_action_id_reused" 422 No "another id for another request";
    /// The first call with this client action id has not been recorded yet.
    ActionInFlight "action_in_flight" 409 Later "ask for the receipt in a moment";
    /// The agent runs.
    SessionRunning "session_running" 409 Later "wait, or `gatepost interrupt ID`";
    /// The last step has not been seen to begin and end.
    SessionNotQuiet "session_not_quiet" 409 Later "wait a moment, or `gatepost interrupt ID`";
    /// The session takes no step until its owner has looked at it.
    SessionBlocked "session_blocked" 409 No "`gatepost session show ID` names the reason";
    /// The event is not a safe point of the active branch.
    NotASafePoint "not_a_safe_point" 422 No "one of the snapshot's `choices.rewind`";
    /// The operation is not offered in the session's present state.
    NotAdvertised "not_advertised" 409 No "`gatepost session show ID` lists what is offered";
    /// The model is not among the reviewed choices.
    ModelNotReviewed "model_not_reviewed" 422 No "add it to `[model] choices` and restart, or take one that is there";
    /// The server's event log does not form a readable branch.
    BranchUnreadable "branch_unreadable" 502 No "see `server.log`; close the session if it stays";

    // Outcomes of recorded actions.
    /// An interrupt cancelled it before it was sent.
    Interrupted "interrupted" 409 No "send it again if it is still wanted";
    /// The daemon stopped before this step was sent; it never will be.
    StoppedBeforeStep "stopped_before_step" 409 No "send it again under a new id if it is still wanted";
    /// It was sent, and whether it took effect cannot be known.
    OutcomeUnknown "outcome_unknown" 504 No "look at the events and the workspace before anything else";
    /// The server answered success and the effect was not seen in time.
    NoEvidence "no_evidence" 504 No "look at the events and the workspace before anything else";

    // Canaries and what they guard.
    /// A canary failed or could not be read.
    CanaryFailed "canary_failed" 409 No "`gatepost status`, or for one of a session `gatepost session show ID`, says what it saw";
    /// The server is not the reviewed version.
    VersionMismatch "version_mismatch" 409 No
        "`gatepost server install`; for an own executable, the version of `[agent_server] version`";
    /// The server listens elsewhere than on the inherited socket.
    ListenerNotInherited "listener_not_inherited" 409 No
        "the server was ended; it starts again when needed. If it stays: `gatepost server verify`";
    /// The start-up module does not report what it must.
    StartupModuleMissing "startup_module_missing" 409 No
        "the server was ended; it starts again when needed. If it stays: `gatepost server verify`";
    /// The server answers without the right key.
    AuthenticationOpen "authentication_open" 409 No
        "the server was ended; it starts again when needed. If it stays: `gatepost server verify`";
    /// The server's initialisation route is open.
    InitOpen "init_open" 409 No
        "the server was ended; it starts again when needed. If it stays: `gatepost server verify`";
    /// Installed files differ from their recorded hashes.
    InstallationAltered "installation_altered" 409 No
        "`gatepost server verify` names the files; remove that install and install again";
    /// The confirmation policy is not to ask always.
    PolicyWeak "policy_weak" 409 No "`gatepost session close ID`, attach again: the policy is set anew";
    /// The conversation's agent is of a kind that asks nobody.
    AgentKindRefused "agent_kind_refused" 409 No "such a conversation cannot be supervised; start another";
    /// The conversation has a tool that is not configured, or is never allowed.
    ToolNotConfigured "tool_not_configured" 409 No
        "start another session, or add the tool to `[model] tools` if it may be";
    /// The conversation has hooks.
    HooksPresent "hooks_present" 409 No "start another session";
    /// The conversation has MCP servers.
    McpPresent "mcp_present" 409 No "start another session";
    /// The conversation has plugins.
    PluginsPresent "plugins_present" 409 No "start another session";
    /// The conversation was launched from another agent profile or revision.
    ProfileMismatch "profile_mismatch" 409 No "conversations of another profile cannot be supervised; start another";
    /// The workspace holds content that would run by being there.
    WorkspaceContent "workspace_content" 409 No
        "remove the named file, or, having read it, list its digest in `[approval] reviewed_content`: \"Common situations\" in docs/operations.md";
    /// The workspace stands outside the configured roots.
    WorkspaceOutsideRoots "workspace_outside_roots" 422 No
        "a directory within `[workspaces] roots`; links are followed first";
    /// The workspace does not exist or is not a directory.
    WorkspaceNotFound "workspace_not_found" 422 No "create it, or correct the path or the root";
    /// The conversation's workspace is not a local directory.
    WorkspaceNotLocal "workspace_not_local" 409 No "start another session";
    /// The conversation works in another directory than the session was bound to.
    WorkspaceMismatch "workspace_mismatch" 409 No "start another session";
    /// An action ran that nobody accepted.
    UnreviewedAction "unreviewed_action" 409 No
        "an incident: look at what ran (`gatepost events ID`), then `gatepost acknowledge ID`: \"Common situations\" in docs/operations.md";
    /// The proved confinement is weaker than the configuration accepts.
    ConfinementTooWeak "confinement_too_weak" 409 No
        "do what the detail says is missing, or accept less in `[confinement] level`";

    // Bounds.
    /// As many prompts wait as may wait.
    QueueFull "queue_full" 503 Later "wait for the turn, or interrupt, which cancels them";
    /// As many servers run as may run, and none is idle.
    ServerLimit "server_limit" 503 Later "wait until one is idle; `[agent_server] max_servers`";
    /// As many connections stand as may stand.
    TooManyConnections "too_many_connections" 503 Later "close some; `Retry-After`";
    /// As many polls wait as may wait.
    TooManyWaiting "too_many_waiting" 503 Later "fewer polls and streams at a time";

    // The server and the daemon.
    /// The reviewed server is not installed.
    ServerNotInstalled "server_not_installed" 503 No "`gatepost server install`";
    /// The server did not come up.
    ServerStartFailed "server_start_failed" 503 Later "the detail ends with its last words; `server.log` has all";
    /// The server failed again and again; it is not started before its next try.
    ServerCrashLooping "server_crash_looping" 503 Later
        "mend what the last reason says; the detail names the next try, or from when on a request tries again";
    /// The server is not up.
    ServerUnavailable "server_unavailable" 503 Later "try again: it is started when needed";
    /// The server refused the call.
    UpstreamRefused "upstream_refused" 502 No "the detail has the server's reason";
    /// The server could not be reached.
    UpstreamUnreachable "upstream_unreachable" 502 Later "try again; `gatepost status`";
    /// The server did not answer in time.
    UpstreamTimeout "upstream_timeout" 504 Later "try again; for an operation, ask for its receipt first";
    /// The server answered something outside its contract.
    UpstreamMalformed "upstream_malformed" 502 No "see `server.log`; not the reviewed behaviour";
    /// The configuration is wrong.
    ConfigurationInvalid "configuration_invalid" 503 No "the detail says where";
    /// The daemon is stopping.
    ShuttingDown "shutting_down" 503 Later "wait for the next start";
    /// The daemon has begun and checks its records.
    RecordsChecking "records_checking" 503 Later "wait";
    /// The ledger is damaged, or its chain of receipts is broken.
    LedgerDamaged "ledger_damaged" 503 No
        "put back a copy of the whole state directory, or `gatepost ledger set-aside`; read \"Damaged files\" in docs/operations.md first";
    /// No space is left for the daemon's records.
    DiskFull "disk_full" 503 Later "make room; what was refused was not half written";
    /// The daemon's records, or their directory, are read-only.
    RecordsReadOnly "records_read_only" 503 No "permissions, mount options";
    /// The daemon's records cannot be written.
    StoreFailed "store_failed" 500 Later "the detail and the daemon's log say why";
    /// The daemon met something it should not have.
    Internal "internal" 500 No "a defect: keep the daemon's log";
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
