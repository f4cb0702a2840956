//! How a fake server misbehaves. The default plan behaves like the real one.

use serde::{Deserialize, Serialize};

/// What the start-up protocol says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Announcement {
    /// The truth.
    #[default]
    Proper,
    /// Nothing: the server serves all the same.
    Never,
    /// A nonce of its own.
    WrongNonce,
    /// Another contract's version.
    WrongContract,
    /// Bytes that are no JSON.
    Garbage,
}

/// Which session keys are accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// The configured one.
    #[default]
    Configured,
    /// Any, and none.
    Open,
    /// None at all.
    Closed,
}

/// How one kind of request on the control channel is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAnswer {
    /// The truth.
    #[default]
    Truth,
    /// The opposite, or another count.
    Lie,
    /// Nothing, though what was asked for is done.
    Silence,
}

/// What happens on a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The proper reply, this many milliseconds late.
    StallMs(u64),
    /// The request takes effect, and this status is answered with a JSON body.
    StatusAfter(u16),
    /// The request takes no effect, and this status is answered with a JSON body.
    StatusInstead(u16),
    /// A redirect to this address, without effect.
    Redirect(String),
    /// A body of this many bytes.
    OversizeBytes(u64),
    /// A body that is no JSON.
    NotJson,
    /// The proper reply with another conversation's id in it.
    WrongConversation,
    /// The request takes effect, and the connection ends after this many bytes of the reply.
    CutAtByte(u64),
    /// The request takes no effect, and the connection ends without a reply.
    Drop,
    /// The process ends without a reply, the request without effect (a launched server only).
    Die,
    /// The request takes effect, and the process ends without a reply (a launched server only).
    DieAfter,
}

/// A fault on a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteFault {
    /// The route's name in the contract (`conversation`, `accept`, …); `*` is every route.
    pub route: String,
    /// The requests to it that are answered properly first.
    #[serde(default)]
    pub after: u64,
    /// How many requests fail then; `None` is all further ones.
    #[serde(default)]
    pub times: Option<u64>,
    /// What happens.
    pub fault: Fault,
}

/// What happens on the stream of a conversation's events. Numbers count the events of one connection, from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamPlan {
    /// Close with this code in place of the first frame.
    pub close_code: Option<u16>,
    /// Append this many state updates when a stream is opened, and publish them.
    pub appends_on_open: u64,
    /// Publish this many events when a stream is opened that are of another conversation and never appended here.
    pub strangers_on_open: u64,
    /// Send a message of this many bytes when a stream is opened.
    pub oversize_on_open_bytes: u64,
    /// Every so many events, one is not published.
    pub loses_every: Option<u64>,
    /// Every so many events, one is published before it that is never appended.
    pub invents_every: Option<u64>,
    /// Every so many events, one is published after the next.
    pub swaps_every: Option<u64>,
    /// A message's text is published as another.
    pub alters: bool,
    /// Milliseconds before each event is published.
    pub delay_ms: u64,
    /// The n-th connection, from 1, breaks after n - 1 bytes of its first event, as long as n is not more than this.
    pub breaks: u64,
}

/// The whole plan.
///
/// A launched server reads it again whenever its file changes; what belongs to a start (the announcement, the latch, an
/// early end, what it forgets, whether it keeps a journal) counts from the next start on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// The version that `/server_info` answers, when not the reviewed one.
    pub version: Option<String>,
    /// The title that `/server_info` answers, when not the proper one.
    pub title: Option<String>,
    /// What the start-up protocol says.
    pub announcement: Announcement,
    /// End with this exit code at once, before anything else, with a line on standard error.
    pub exit_at_once: Option<u8>,
    /// Milliseconds before the announcement.
    pub start_delay_ms: u64,
    /// Open a second listening socket, and report it.
    pub second_listener: bool,
    /// How a grant is acknowledged.
    pub grant_answer: ControlAnswer,
    /// How it is said whether a run has ended.
    pub settled_answer: ControlAnswer,
    /// How it is said where logs end; a lie is where they ended when the truth was last told.
    pub log_ends_answer: ControlAnswer,
    /// How an inspection is answered; a lie repeats another nonce.
    pub inspect_answer: ControlAnswer,
    /// Say that the latch is not in force.
    pub says_no_latch: bool,
    /// Say that what it starts is not confined.
    pub says_no_door: bool,
    /// What a process that it starts says that it could do.
    pub open_probes: Vec<String>,
    /// How a trial of the confinement is answered.
    pub probe_answer: ControlAnswer,
    /// Say nothing of it, but have no latch: pending actions run on any step.
    pub has_no_latch: bool,
    /// Ask of no action: without a latch each runs as soon as it is proposed.
    pub asks_nothing: bool,
    /// Say that the process is dumpable.
    pub says_dumpable: bool,
    /// Say that the workspace's content is loaded.
    pub says_plugins_loaded: bool,
    /// Which keys are accepted.
    pub keys: Keys,
    /// `POST /api/init` answers 200.
    pub init_open: bool,
    /// Faults by route, the first that matches counts.
    pub faults: Vec<RouteFault>,
    /// What happens on streams.
    pub stream: StreamPlan,
    /// The process ends without a reply at this request, counted from 1 (a launched server only).
    pub dies_at_request: Option<u64>,
    /// Bytes written to standard output at each request.
    pub log_flood_bytes: u64,
    /// The status that a conversation's information shows instead of its own.
    pub shown_status: Option<String>,
    /// The confirmation policy's kind that a conversation shows instead of `AlwaysConfirm`.
    pub policy: Option<String>,
    /// Show a hook configuration.
    pub hook_config: bool,
    /// Show these further tools.
    pub extra_tools: Vec<String>,
    /// Show this kind of agent.
    pub agent_kind: Option<String>,
    /// Show an MCP server of this name.
    pub mcp_server: Option<String>,
    /// Show this working directory.
    pub shown_workspace: Option<String>,
    /// Show this kind of workspace.
    pub workspace_kind: Option<String>,
    /// Show this revision of the launched profile.
    pub profile_revision: Option<u64>,
    /// Run each accepted action's command for real, below the workspace.
    pub runs_commands: bool,
    /// Forget every conversation and profile at a restart.
    pub forgets: bool,
    /// Note each appended event, each action that ran and each request about a conversation in a file of the environment's directory
    /// ([`super::journal()`]; a launched server only).
    pub keeps_journal: bool,
    /// A new conversation begins with so many events: what was said in it before.
    /// They are not in the journal.
    pub begins_with_events: u64,
    /// At the next `GET /server_info`, somebody else's message of this text begins a turn in every conversation that has no
    /// such message yet.
    pub begins_by_itself: Option<String>,
}

impl Plan {
    /// The same plan with a fault on every request to a route.
    #[must_use]
    pub fn with_fault(self, route: &str, fault: Fault) -> Self {
        self.with_fault_times(route, 0, None, fault)
    }

    /// The same plan with a fault on some requests to a route: `after` proper ones, then `times` (or all) faulty.
    #[must_use]
    pub fn with_fault_times(mut self, route: &str, after: u64, times: Option<u64>, fault: Fault) -> Self {
        self.faults.push(RouteFault { route: route.to_owned(), after, times, fault });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_its_file_and_unknown_keys_are_refused() {
        let plan = Plan { version: Some("9".into()), keys: Keys::Open, ..Plan::default() }
            .with_fault_times("accept", 1, Some(2), Fault::CutAtByte(7))
            .with_fault("run", Fault::Redirect("http://127.0.0.1:1/".into()));
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
        assert_eq!(serde_json::from_str::<Plan>("{}").unwrap(), Plan::default());
        assert!(serde_json::from_str::<Plan>("{\"verzion\": 1}").is_err());
    }
}
