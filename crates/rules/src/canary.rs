//! Canaries: small proofs that the server, its installation and a session are what they must be.

mod server;
mod session;

use serde::Serialize;
use serde_json::{Value, json};

use crate::jcs;
use crate::refusal::{Refusal, RefusalCode};

pub use server::{
    AuthStatuses, InstallationEvidence, Listener, ServerIdentity, StartupEvidence, StartupExpectation, authentication,
    inherited_listener, init_closed, installation, startup_module, versions,
};
pub use session::{
    ALWAYS_CONFIRM, Presence, ProfileRef, WorkspaceEvidence, WorkspaceExpectation, agent_kind, is_never_allowed,
    no_hooks, no_mcp, no_plugins, policy, profile, tools, workspace, workspace_content,
};

/// What a canary stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryScope {
    /// The installed files: one for all servers.
    Installation,
    /// One owned server; its failure blocks every session on it.
    Server,
    /// One session; its failure blocks that session.
    Session,
}

/// Every canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryId {
    /// Installed files equal their recorded hashes.
    Installation,
    /// Title and the four versions are the reviewed ones.
    Versions,
    /// The process listens on the inherited socket and nowhere else.
    InheritedListener,
    /// The start-up module reports from this very process that its measures hold.
    StartupModule,
    /// The right key is let in, no key and a wrong one are not.
    Authentication,
    /// The initialisation route is not open.
    InitClosed,
    /// The conversation works in the bound, local directory within the roots.
    Workspace,
    /// Nothing in the workspace would run by being there.
    WorkspaceContent,
    /// The confirmation policy asks always.
    Policy,
    /// The agent is of the kind that asks.
    AgentKind,
    /// The tools are the configured ones.
    Tools,
    /// No hooks.
    NoHooks,
    /// No MCP servers.
    NoMcp,
    /// No plugins.
    NoPlugins,
    /// Launched from the reviewed agent profile.
    Profile,
}

impl CanaryId {
    /// Every canary, outermost scope first.
    pub const ALL: [Self; 15] = [
        Self::Installation,
        Self::Versions,
        Self::InheritedListener,
        Self::StartupModule,
        Self::Authentication,
        Self::InitClosed,
        Self::Workspace,
        Self::WorkspaceContent,
        Self::Policy,
        Self::AgentKind,
        Self::Tools,
        Self::NoHooks,
        Self::NoMcp,
        Self::NoPlugins,
        Self::Profile,
    ];

    /// The name clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Installation => "installation",
            Self::Versions => "versions",
            Self::InheritedListener => "inherited_listener",
            Self::StartupModule => "startup_module",
            Self::Authentication => "authentication",
            Self::InitClosed => "init_closed",
            Self::Workspace => "workspace",
            Self::WorkspaceContent => "workspace_content",
            Self::Policy => "policy",
            Self::AgentKind => "agent_kind",
            Self::Tools => "tools",
            Self::NoHooks => "no_hooks",
            Self::NoMcp => "no_mcp",
            Self::NoPlugins => "no_plugins",
            Self::Profile => "profile",
        }
    }

    /// What it stands for.
    pub fn scope(self) -> CanaryScope {
        match self {
            Self::Installation => CanaryScope::Installation,
            Self::Versions
            | Self::InheritedListener
            | Self::StartupModule
            | Self::Authentication
            | Self::InitClosed => CanaryScope::Server,
            Self::Workspace
            | Self::WorkspaceContent
            | Self::Policy
            | Self::AgentKind
            | Self::Tools
            | Self::NoHooks
            | Self::NoMcp
            | Self::NoPlugins
            | Self::Profile => CanaryScope::Session,
        }
    }

    /// Whether a failure means that the server itself must not be spoken to any more, so that it is killed instead of
    /// being asked to stop or interrupt.
    pub fn failure_ends_server(self) -> bool {
        match self {
            Self::Versions
            | Self::InheritedListener
            | Self::StartupModule
            | Self::Authentication
            | Self::InitClosed => true,
            Self::Installation
            | Self::Workspace
            | Self::WorkspaceContent
            | Self::Policy
            | Self::AgentKind
            | Self::Tools
            | Self::NoHooks
            | Self::NoMcp
            | Self::NoPlugins
            | Self::Profile => false,
        }
    }
}

/// The verdict of one canary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CanaryResult {
    /// Which.
    pub canary: CanaryId,
    /// Whether it holds.
    pub passed: bool,
    /// Why it does not.
    pub code: Option<RefusalCode>,
    /// What was seen, in words.
    pub detail: String,
    /// What was seen, for the attestation. Holds no secret.
    pub evidence: Value,
}

impl CanaryResult {
    /// A verdict in favour.
    pub(crate) fn pass(canary: CanaryId, detail: impl Into<String>, evidence: Value) -> Self {
        Self { canary, passed: true, code: None, detail: detail.into(), evidence }
    }

    /// A verdict against.
    pub(crate) fn fail(canary: CanaryId, code: RefusalCode, detail: impl Into<String>, evidence: Value) -> Self {
        Self { canary, passed: false, code: Some(code), detail: detail.into(), evidence }
    }

    /// For a canary whose evidence could not be read, which counts as failed.
    pub fn unreadable(canary: CanaryId, why: impl Into<String>) -> Self {
        let why = why.into();
        let evidence = json!({"unreadable": why});
        Self::fail(canary, RefusalCode::CanaryFailed, format!("{} could not be read: {why}", canary.as_str()), evidence)
    }

    /// Whether it failed only because its evidence could not be read: nothing wrong was seen.
    pub fn is_unreadable(&self) -> bool {
        !self.passed && self.evidence.get("unreadable").is_some()
    }

    /// SHA-256 over the canonical JSON of the evidence.
    pub fn evidence_digest(&self) -> String {
        jcs::digest(&self.evidence)
    }

    /// The refusal that a failed canary stands for.
    pub fn refusal(&self) -> Option<Refusal> {
        if self.passed {
            return None;
        }
        let code = self.code.unwrap_or(RefusalCode::CanaryFailed);
        Some(Refusal::new(code, format!("canary {}: {}", self.canary.as_str(), self.detail)))
    }
}

/// Whether every canary there is was read and holds.
///
/// # Errors
/// The refusal of the first that does not hold, or `canary_failed` naming the first that was not read.
pub fn all_passed(results: &[CanaryResult]) -> Result<(), Refusal> {
    passed(results, &[CanaryScope::Installation, CanaryScope::Server, CanaryScope::Session])
}

/// Whether every canary of these scopes was read and holds.
///
/// # Errors
/// As [`all_passed`].
pub fn passed(results: &[CanaryResult], scopes: &[CanaryScope]) -> Result<(), Refusal> {
    for canary in CanaryId::ALL.into_iter().filter(|canary| scopes.contains(&canary.scope())) {
        let mut read = false;
        for result in results.iter().filter(|result| result.canary == canary) {
            if let Some(refusal) = result.refusal() {
                return Err(refusal);
            }
            read = true;
        }
        if !read {
            let detail = format!("canary {} was not read; nothing is sent until it is", canary.as_str());
            return Err(Refusal::new(RefusalCode::CanaryFailed, detail));
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
