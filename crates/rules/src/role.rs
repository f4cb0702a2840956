//! What a token may do.

use serde::{Deserialize, Serialize};

use crate::catalog::{Decision, OperationInput};
use crate::refusal::{Refusal, RefusalCode};

/// One thing a token may be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Observer,
    /// Prompts, interrupts, rejects, forks, rewinds.
    Operator,
    /// Accepts; also rejects and interrupts.
    Approver,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Observer, Self::Operator, Self::Approver];

    /// The name used in tokens and replies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observer => "observer",
            Self::Operator => "operator",
            Self::Approver => "approver",
        }
    }

    /// The role of that exact name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    fn bit(self) -> u8 {
        match self {
            Self::Observer => 1,
            Self::Operator => 2,
            Self::Approver => 4,
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A set of roles. Roles do not contain each other, except that any of them reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Roles(u8);

impl Roles {
    /// All of them, and what is the owner's alone: a client's token with every role is not the owner's.
    pub const OWNER: Self = Self(15);
    /// None of them.
    pub const NONE: Self = Self(0);

    /// The set of the roles listed.
    pub fn of(roles: &[Role]) -> Self {
        Self(roles.iter().fold(0, |bits, role| bits | role.bit()))
    }

    /// Whether the set has this role.
    pub fn contains(self, role: Role) -> bool {
        self.0 & role.bit() != 0
    }

    /// Whether the two sets share a role.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The roles of the set, weakest first.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.contains(*role))
    }

    /// Reads what [`std::fmt::Display`] writes: names joined by `+`. An unknown name or an empty set gives `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let roles: Vec<Role> = text.split('+').map(Role::parse).collect::<Option<_>>()?;
        Some(Self::of(&roles))
    }
}

impl std::fmt::Display for Roles {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.iter().map(Role::as_str).collect();
        formatter.write_str(if names.is_empty() { "none" } else { "" })?;
        formatter.write_str(&names.join("+"))
    }
}

/// Whether `roles` do for something that needs exactly one role. Reading is open to every role.
///
/// # Errors
/// `not_permitted`, naming the role that is missing.
pub fn authorize(roles: Roles, needed: Role) -> Result<(), Refusal> {
    let sufficient = match needed {
        Role::Observer => Roles::OWNER,
        Role::Operator | Role::Approver => Roles::of(&[needed]),
    };
    authorize_any(roles, sufficient)
}

/// Whether these are the owner's roles.
///
/// # Errors
/// `not_permitted`.
pub fn authorize_owner(roles: Roles) -> Result<(), Refusal> {
    if roles == Roles::OWNER {
        return Ok(());
    }
    Err(Refusal::new(RefusalCode::NotPermitted, "this is for the owner's token alone"))
}

/// Whether `roles` do for this very request: accepting needs an approver, rejecting and interrupting are open to
/// operators and approvers alike, and some is for the owner's token alone.
///
/// # Errors
/// `not_permitted`, naming the roles that would do.
pub fn authorize_operation(roles: Roles, input: &OperationInput) -> Result<(), Refusal> {
    if input.operation().is_for_the_owner() {
        authorize_owner(roles)?;
    }
    let sufficient = match input {
        OperationInput::ApprovalDecide { decision: Decision::Accept, .. } => Roles::of(&[Role::Approver]),
        OperationInput::ApprovalDecide { decision: Decision::Reject { .. }, .. }
        | OperationInput::PromptSend { .. }
        | OperationInput::TurnInterrupt
        | OperationInput::Fork { .. }
        | OperationInput::Rewind { .. }
        | OperationInput::Resume
        | OperationInput::Compact
        | OperationInput::ModelSet { .. }
        | OperationInput::TitleSet { .. }
        | OperationInput::BlockAcknowledge { .. }
        | OperationInput::ProviderAuthRead { .. }
        | OperationInput::ProviderConfigRead { .. }
        | OperationInput::ProviderUsageRead { .. }
        | OperationInput::ProviderDiagnosticsRead { .. } => input.operation().sufficient_roles(),
    };
    authorize_any(roles, sufficient)
}

fn authorize_any(roles: Roles, sufficient: Roles) -> Result<(), Refusal> {
    if roles.intersects(sufficient) {
        return Ok(());
    }
    let names: Vec<&str> = sufficient.iter().map(Role::as_str).collect();
    Err(Refusal::new(
        RefusalCode::NotPermitted,
        format!("this token's role is {roles}; use a token of role {}", names.join(" or ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets() -> impl Iterator<Item = Roles> {
        (0..8).map(Roles).chain([Roles::OWNER])
    }

    #[test]
    fn every_role_reads_and_only_its_own_role_does_the_rest() {
        for roles in sets() {
            assert_eq!(authorize(roles, Role::Observer).is_ok(), roles != Roles::NONE);
            assert_eq!(authorize(roles, Role::Operator).is_ok(), roles.contains(Role::Operator));
            assert_eq!(authorize(roles, Role::Approver).is_ok(), roles.contains(Role::Approver));
        }
    }

    #[test]
    fn the_roles_of_each_request() {
        let accept = OperationInput::ApprovalDecide { approval_id: "a".into(), decision: Decision::Accept };
        let reject =
            OperationInput::ApprovalDecide { approval_id: "a".into(), decision: Decision::Reject { reason: None } };
        let prompt = OperationInput::PromptSend { text: "t".into(), on_pending: crate::catalog::OnPending::Refuse };
        let read = OperationInput::ProviderUsageRead { workspace: None };
        let acknowledge = OperationInput::BlockAcknowledge { block_id: "b".into() };
        for roles in sets() {
            let (operator, approver) = (roles.contains(Role::Operator), roles.contains(Role::Approver));
            assert_eq!(authorize_operation(roles, &accept).is_ok(), approver, "{roles}");
            assert_eq!(authorize_operation(roles, &reject).is_ok(), operator || approver, "{roles}");
            assert_eq!(authorize_operation(roles, &OperationInput::TurnInterrupt).is_ok(), operator || approver);
            assert_eq!(authorize_operation(roles, &prompt).is_ok(), operator, "{roles}");
            assert_eq!(authorize_operation(roles, &OperationInput::Resume).is_ok(), operator, "{roles}");
            assert_eq!(authorize_operation(roles, &read).is_ok(), roles != Roles::NONE, "{roles}");
            assert_eq!(authorize_operation(roles, &acknowledge).is_ok(), roles == Roles::OWNER, "{roles}");
        }
    }

    #[test]
    fn sets_print_and_parse() {
        for roles in sets().filter(|roles| ![Roles::NONE, Roles::OWNER].contains(roles)) {
            assert_eq!(Roles::parse(&roles.to_string()), Some(roles));
        }
        assert_eq!(Roles::OWNER.to_string(), "observer+operator+approver");
        assert_ne!(Roles::parse("observer+operator+approver"), Some(Roles::OWNER));
        assert_eq!(Roles::NONE.to_string(), "none");
        for wrong in ["", "none", "observer+", "admin", "Observer"] {
            assert_eq!(Roles::parse(wrong), None);
        }
    }

    #[test]
    fn a_refusal_says_which_role_would_do() {
        let refusal = authorize(Roles::of(&[Role::Observer]), Role::Approver).unwrap_err();
        assert_eq!(refusal.code, RefusalCode::NotPermitted);
        assert!(refusal.detail.contains("observer") && refusal.detail.contains("approver"));
    }
}
