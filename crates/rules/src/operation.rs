//! The closed list of operations, and what is fixed about each.

use serde::{Deserialize, Serialize};

use crate::role::{Role, Roles};

/// Everything a client can ask for. There is no other way to make the daemon act on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OperationId {
    /// Send a prompt. Legal when the session is quiet; queued while the agent runs.
    #[serde(rename = "session.prompt.send")]
    PromptSend,
    /// Stop the turn that runs. Always legal, blocked or not.
    #[serde(rename = "session.turn.interrupt")]
    TurnInterrupt,
    /// Accept or reject the pending batch. Rejecting is always legal; accepting needs the gate.
    #[serde(rename = "session.approval.decide")]
    ApprovalDecide,
    /// Copy the session up to its last safe point into a new one.
    #[serde(rename = "session.fork")]
    Fork,
    /// Take the session back to a safe point. Legal when it does not run.
    #[serde(rename = "session.rewind")]
    Rewind,
    /// Let the agent go on without a new prompt. Legal when quiet.
    #[serde(rename = "session.resume")]
    Resume,
    /// Have the agent condense its context. Legal when quiet.
    #[serde(rename = "session.compact")]
    Compact,
    /// Change to another reviewed model. Legal when it does not run.
    #[serde(rename = "session.model.set")]
    ModelSet,
    /// Rename the session. Always legal while its server stands.
    #[serde(rename = "session.title.set")]
    TitleSet,
    /// Lift the block that the tripwire put on the session. The owner's alone.
    #[serde(rename = "session.block.acknowledge")]
    BlockAcknowledge,
    /// Whether the model provider's credential works, without showing it.
    #[serde(rename = "provider.auth.read")]
    ProviderAuthRead,
    /// The configured model and its reviewed alternatives.
    #[serde(rename = "provider.config.read")]
    ProviderConfigRead,
    /// Tokens and cost, as the server counts them.
    #[serde(rename = "provider.usage.read")]
    ProviderUsageRead,
    /// What went wrong between the server and the provider lately.
    #[serde(rename = "provider.diagnostics.read")]
    ProviderDiagnosticsRead,
}

/// Whether an operation names a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationScope {
    /// Acts on one session.
    Session,
    /// Reads about the model provider; names no session.
    Provider,
}

/// What an operation can lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Changes nothing.
    ReadOnly,
    /// Changes something that the same client can change back.
    Reversible,
    /// A session that was blocked takes steps again.
    LiftsBlock,
    /// Stops work that goes on; what was done stays done.
    StopsWork,
    /// The model is asked and may propose actions, which wait for a decision.
    CausesActions,
    /// Proposed actions run.
    RunsActions,
}

impl OperationId {
    /// Every operation, in the order of the catalog.
    pub const ALL: [Self; 14] = [
        Self::PromptSend,
        Self::TurnInterrupt,
        Self::ApprovalDecide,
        Self::Fork,
        Self::Rewind,
        Self::Resume,
        Self::Compact,
        Self::ModelSet,
        Self::TitleSet,
        Self::BlockAcknowledge,
        Self::ProviderAuthRead,
        Self::ProviderConfigRead,
        Self::ProviderUsageRead,
        Self::ProviderDiagnosticsRead,
    ];

    /// The name clients use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PromptSend => "session.prompt.send",
            Self::TurnInterrupt => "session.turn.interrupt",
            Self::ApprovalDecide => "session.approval.decide",
            Self::Fork => "session.fork",
            Self::Rewind => "session.rewind",
            Self::Resume => "session.resume",
            Self::Compact => "session.compact",
            Self::ModelSet => "session.model.set",
            Self::TitleSet => "session.title.set",
            Self::BlockAcknowledge => "session.block.acknowledge",
            Self::ProviderAuthRead => "provider.auth.read",
            Self::ProviderConfigRead => "provider.config.read",
            Self::ProviderUsageRead => "provider.usage.read",
            Self::ProviderDiagnosticsRead => "provider.diagnostics.read",
        }
    }

    /// The operation of that exact name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == name)
    }

    /// Whether it names a session.
    pub fn scope(self) -> OperationScope {
        match self {
            Self::PromptSend
            | Self::TurnInterrupt
            | Self::ApprovalDecide
            | Self::Fork
            | Self::Rewind
            | Self::Resume
            | Self::Compact
            | Self::ModelSet
            | Self::TitleSet
            | Self::BlockAcknowledge => OperationScope::Session,
            Self::ProviderAuthRead
            | Self::ProviderConfigRead
            | Self::ProviderUsageRead
            | Self::ProviderDiagnosticsRead => OperationScope::Provider,
        }
    }

    /// The role its strongest form needs, as the catalog shows it. What a request needs depends on its input too:
    /// ask [`crate::role::authorize_operation`].
    pub fn minimum_role(self) -> Role {
        match self {
            Self::ApprovalDecide | Self::BlockAcknowledge => Role::Approver,
            Self::PromptSend
            | Self::TurnInterrupt
            | Self::Fork
            | Self::Rewind
            | Self::Resume
            | Self::Compact
            | Self::ModelSet
            | Self::TitleSet => Role::Operator,
            Self::ProviderAuthRead
            | Self::ProviderConfigRead
            | Self::ProviderUsageRead
            | Self::ProviderDiagnosticsRead => Role::Observer,
        }
    }

    /// Whether only a token with every role will do, which is the owner's.
    pub fn is_for_the_owner(self) -> bool {
        match self {
            Self::BlockAcknowledge => true,
            Self::PromptSend
            | Self::TurnInterrupt
            | Self::ApprovalDecide
            | Self::Fork
            | Self::Rewind
            | Self::Resume
            | Self::Compact
            | Self::ModelSet
            | Self::TitleSet
            | Self::ProviderAuthRead
            | Self::ProviderConfigRead
            | Self::ProviderUsageRead
            | Self::ProviderDiagnosticsRead => false,
        }
    }

    /// Roles of which any one suffices for at least one form of the operation, unless it
    /// [needs every role](Self::is_for_the_owner).
    pub fn sufficient_roles(self) -> Roles {
        match self {
            Self::BlockAcknowledge => Roles::OWNER,
            Self::ApprovalDecide | Self::TurnInterrupt => Roles::of(&[Role::Operator, Role::Approver]),
            Self::PromptSend
            | Self::Fork
            | Self::Rewind
            | Self::Resume
            | Self::Compact
            | Self::ModelSet
            | Self::TitleSet => Roles::of(&[Role::Operator]),
            Self::ProviderAuthRead
            | Self::ProviderConfigRead
            | Self::ProviderUsageRead
            | Self::ProviderDiagnosticsRead => Roles::OWNER,
        }
    }

    /// What it can lead to.
    pub fn risk(self) -> Risk {
        match self {
            Self::PromptSend | Self::Resume | Self::Compact => Risk::CausesActions,
            Self::TurnInterrupt => Risk::StopsWork,
            Self::ApprovalDecide => Risk::RunsActions,
            Self::BlockAcknowledge => Risk::LiftsBlock,
            Self::Fork | Self::Rewind | Self::ModelSet | Self::TitleSet => Risk::Reversible,
            Self::ProviderAuthRead
            | Self::ProviderConfigRead
            | Self::ProviderUsageRead
            | Self::ProviderDiagnosticsRead => Risk::ReadOnly,
        }
    }

    /// One sentence for people.
    pub fn summary(self) -> &'static str {
        match self {
            Self::PromptSend => "Send a prompt to the agent; queued while it runs.",
            Self::TurnInterrupt => "Interrupt the turn that runs and cancel queued prompts.",
            Self::ApprovalDecide => "Accept (approver) or reject (operator or approver) the whole pending batch.",
            Self::Fork => "Copy the session up to its last safe point into a new session.",
            Self::Rewind => "Take the session back to one of its safe points.",
            Self::Resume => "Let the agent go on without a new prompt.",
            Self::Compact => "Condense the agent's context.",
            Self::ModelSet => "Change to another reviewed model.",
            Self::TitleSet => "Rename the session.",
            Self::BlockAcknowledge => {
                "Lift the block put on the session because an action ran that nobody accepted (owner)."
            }
            Self::ProviderAuthRead => "Say whether the model provider's credential is set, without showing it.",
            Self::ProviderConfigRead => "Show the configured model and the reviewed alternatives.",
            Self::ProviderUsageRead => "Show tokens and cost as the server counts them.",
            Self::ProviderDiagnosticsRead => "Show what went wrong lately between the server and the provider.",
        }
    }
}

impl std::fmt::Display for OperationId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_and_serialise_alike() {
        for operation in OperationId::ALL {
            assert_eq!(OperationId::parse(operation.as_str()), Some(operation));
            assert_eq!(serde_json::to_value(operation).unwrap(), operation.as_str());
            assert_eq!(serde_json::from_value::<OperationId>(operation.as_str().into()).unwrap(), operation);
            assert!(!operation.summary().is_empty());
        }
        for unknown in ["", "session.prompt", "SESSION.FORK", "session.fork ", "session.delete"] {
            assert_eq!(OperationId::parse(unknown), None);
        }
    }

    #[test]
    fn scope_follows_the_name() {
        for operation in OperationId::ALL {
            let scope = if operation.as_str().starts_with("session.") {
                OperationScope::Session
            } else {
                OperationScope::Provider
            };
            assert_eq!(operation.scope(), scope);
            let read_only = operation.risk() == Risk::ReadOnly;
            assert_eq!(read_only, operation.as_str().ends_with(".read"));
            assert_eq!(read_only, operation.minimum_role() == Role::Observer);
        }
    }

    #[test]
    fn the_role_of_the_catalog_always_suffices() {
        for operation in OperationId::ALL {
            assert!(operation.sufficient_roles().contains(operation.minimum_role()));
        }
    }
}
