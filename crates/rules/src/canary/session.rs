//! Verdicts on one session.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{CanaryId, CanaryResult};
use crate::refusal::RefusalCode;
use crate::workspace::{ContentFinding, is_within};

/// The only confirmation policy there is.
pub const ALWAYS_CONFIRM: &str = "AlwaysConfirm";
/// The only kind of agent that asks.
const AGENT: &str = "Agent";
const LOCAL_WORKSPACE: &str = "LocalWorkspace";
/// Tools that start agents of their own, whose actions would not be this session's. Compared without case, `_`, and a
/// `tool` or `toolset` at the end.
const NEVER: &[&str] = &["task", "workflow", "delegate", "delegation", "subagent", "spawnagent", "acp"];

/// Where the conversation works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkspaceEvidence {
    /// Kind that the server reports.
    pub kind: String,
    /// Directory that the server reports, with every symbolic link resolved.
    pub resolved: String,
}

/// Where it must work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceExpectation {
    /// The resolved directory that the session was bound to.
    pub bound: String,
    /// Resolved directories that the configuration allows.
    pub roots: Vec<String>,
}

/// The conversation must work in the bound directory, local and within the roots.
pub fn workspace(observed: &WorkspaceEvidence, expected: &WorkspaceExpectation) -> CanaryResult {
    let evidence = json!({"kind": observed.kind, "resolved": observed.resolved, "bound": expected.bound});
    let fail = |code, detail: String| CanaryResult::fail(CanaryId::Workspace, code, detail, evidence.clone());
    if observed.kind != LOCAL_WORKSPACE {
        return fail(RefusalCode::WorkspaceNotLocal, format!("the workspace's kind is {:?}", observed.kind));
    }
    if observed.resolved != expected.bound {
        let detail = format!("works in {:?}, the session is bound to {:?}", observed.resolved, expected.bound);
        return fail(RefusalCode::WorkspaceMismatch, detail);
    }
    if !is_within(&observed.resolved, &expected.roots) {
        let detail = format!("{:?} is outside the configured roots; add it to [workspaces]", observed.resolved);
        return fail(RefusalCode::WorkspaceOutsideRoots, detail);
    }
    CanaryResult::pass(CanaryId::Workspace, observed.resolved.clone(), evidence)
}

/// Nothing in the workspace may run by being there, except content whose digest the configuration lists.
pub fn workspace_content(findings: &[ContentFinding], reviewed: &[String]) -> CanaryResult {
    let evidence = json!({"findings": findings.iter().take(100).collect::<Vec<_>>(), "count": findings.len()});
    let open: Vec<&ContentFinding> = findings.iter().filter(|finding| !finding.is_reviewed(reviewed)).collect();
    match open.first() {
        None => CanaryResult::pass(
            CanaryId::WorkspaceContent,
            format!("{} files that could act by being there, all reviewed", findings.len()),
            evidence,
        ),
        Some(first) => {
            let lift = match &first.digest {
                Some(digest) => format!("remove it, or review it and list {digest} under approval.reviewed_content"),
                None => "it could not be read whole, so it cannot be reviewed: remove it".to_owned(),
            };
            let more = match open.len() {
                1 => String::new(),
                count => format!(" (and {} more)", count - 1),
            };
            let detail = format!("{} {}{more}; {lift}", first.path, first.reason.as_str());
            CanaryResult::fail(CanaryId::WorkspaceContent, RefusalCode::WorkspaceContent, detail, evidence)
        }
    }
}

/// Every action must be asked for.
pub fn policy(kind: &str) -> CanaryResult {
    verdict(
        CanaryId::Policy,
        RefusalCode::PolicyWeak,
        kind == ALWAYS_CONFIRM,
        format!("the confirmation policy is {kind:?}"),
        json!({"kind": kind}),
    )
}

/// Only the plain agent asks; others answer permission requests themselves.
pub fn agent_kind(kind: &str) -> CanaryResult {
    verdict(
        CanaryId::AgentKind,
        RefusalCode::AgentKindRefused,
        kind == AGENT,
        format!("the agent's kind is {kind:?}"),
        json!({"kind": kind}),
    )
}

/// The conversation's tools must be among the configured ones, and none may start agents of its own.
pub fn tools(observed: &[String], configured: &[String]) -> CanaryResult {
    let evidence = json!({"observed": observed, "configured": configured});
    let fail =
        |detail: String| CanaryResult::fail(CanaryId::Tools, RefusalCode::ToolNotConfigured, detail, evidence.clone());
    if let Some(tool) = observed.iter().find(|tool| is_never_allowed(tool)) {
        return fail(format!("tool {tool:?} starts agents whose actions nobody is asked about; it is never allowed"));
    }
    if let Some(tool) = observed.iter().find(|tool| !configured.contains(tool)) {
        return fail(format!("tool {tool:?} is not among [model].tools"));
    }
    CanaryResult::pass(CanaryId::Tools, observed.join(", "), evidence)
}

/// Whether a tool may not be configured at all.
#[must_use]
pub fn is_never_allowed(tool: &str) -> bool {
    let name: String = tool.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let name = name.strip_suffix("set").filter(|rest| rest.ends_with("tool")).unwrap_or(&name);
    NEVER.contains(&name.strip_suffix("tool").unwrap_or(name))
}

/// Whether something that must not be there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It is not there.
    Absent,
    /// It is.
    Present,
}

/// The conversation must have no hooks: they run commands that nobody is asked about.
pub fn no_hooks(hooks: Presence) -> CanaryResult {
    let (absent, words) = match hooks {
        Presence::Absent => (true, "no hooks"),
        Presence::Present => (false, "the conversation has hooks, which run commands unasked"),
    };
    verdict(CanaryId::NoHooks, RefusalCode::HooksPresent, absent, words.to_owned(), json!({"hooks": hooks}))
}

/// The conversation must have no MCP servers: they are processes that nobody is asked about.
pub fn no_mcp(servers: &[String]) -> CanaryResult {
    nothing_of(CanaryId::NoMcp, RefusalCode::McpPresent, "MCP servers", servers)
}

/// The conversation must have no plugins: they bring hooks, agents and MCP servers.
pub fn no_plugins(plugins: &[String]) -> CanaryResult {
    nothing_of(CanaryId::NoPlugins, RefusalCode::PluginsPresent, "plugins", plugins)
}

/// An agent profile at one revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileRef {
    /// The server's id of it.
    pub id: String,
    /// Its revision.
    pub revision: i64,
}

/// The conversation must have been launched from the reviewed profile at the reviewed revision.
pub fn profile(observed: Option<&ProfileRef>, expected: &ProfileRef) -> CanaryResult {
    let words = match observed {
        None => "the conversation was launched from no profile".to_owned(),
        Some(profile) => format!(
            "launched from profile {} revision {}, reviewed is {} revision {}",
            profile.id, profile.revision, expected.id, expected.revision
        ),
    };
    let evidence = json!({"observed": observed, "expected": expected});
    verdict(CanaryId::Profile, RefusalCode::ProfileMismatch, observed == Some(expected), words, evidence)
}

fn nothing_of(canary: CanaryId, code: RefusalCode, what: &str, names: &[String]) -> CanaryResult {
    let words = if names.is_empty() {
        format!("no {what}")
    } else {
        format!("the conversation has {what}: {}", names.join(", "))
    };
    verdict(canary, code, names.is_empty(), words, json!({"names": names}))
}

fn verdict(canary: CanaryId, code: RefusalCode, holds: bool, words: String, evidence: Value) -> CanaryResult {
    if holds { CanaryResult::pass(canary, words, evidence) } else { CanaryResult::fail(canary, code, words, evidence) }
}
