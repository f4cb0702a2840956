//! Errors of the loopback client, as refusals.

use agent_contract::ContractError;
use rules::refusal::{Refusal, RefusalCode};

/// What a failed call means to whoever asked for the operation.
pub(crate) fn refusal(error: &ContractError) -> Refusal {
    let code = match error {
        ContractError::Unreachable { .. } | ContractError::ConnectionLost { .. } => RefusalCode::UpstreamUnreachable,
        ContractError::Timeout { .. } => RefusalCode::UpstreamTimeout,
        ContractError::Status { status: 404, .. } => RefusalCode::ConversationNotFound,
        ContractError::Status { .. } | ContractError::Declined { .. } => RefusalCode::UpstreamRefused,
        ContractError::Identifier { .. } => RefusalCode::InvalidValue,
        ContractError::OutsideContract { .. } | ContractError::GrantMismatch { .. } => RefusalCode::Internal,
        ContractError::Redirect { .. } | ContractError::TooLarge { .. } | ContractError::Malformed { .. } => {
            RefusalCode::UpstreamMalformed
        }
    };
    Refusal::new(code, error.to_string())
}

/// How a mutation that did not answer well stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It certainly never left.
    NotSent,
    /// The server answered that it did not do it.
    Refused,
    /// It may have happened.
    Unknown,
}

/// Sorts a failed mutation. Only an answer with a status is a refusal: a lost answer is not.
pub(crate) fn failure(error: &ContractError) -> Failure {
    if !error.may_have_been_sent() {
        Failure::NotSent
    } else if error.refused_status().is_some_and(|status| status < 500) {
        Failure::Refused
    } else {
        Failure::Unknown
    }
}
