//! What can go wrong between us and the Agent Server, with the one question that decides what a receipt may say.

use crate::RouteName;

/// A call that did not end as its contract says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// An identifier is not in the only form that may stand in a request.
    #[error("{what}")]
    Identifier {
        /// What the form is.
        what: &'static str,
    },
    /// The call is not one that the reviewed contract allows; it was not made.
    #[error("the reviewed contract does not allow this {route} request: {what}")]
    OutsideContract {
        /// The route meant.
        route: RouteName,
        /// What is outside.
        what: String,
    },
    /// The grant was given for another session or another kind of step; nothing was sent.
    #[error("the grant is not for this {route} request ({what}); ask the gate again")]
    GrantMismatch {
        /// The route meant.
        route: RouteName,
        /// What differs.
        what: &'static str,
    },
    /// The server could not be reached; nothing was sent.
    #[error("the Agent Server could not be reached for {route}: {detail}; see whether it is running")]
    Unreachable {
        /// The route meant.
        route: RouteName,
        /// The system's words.
        detail: String,
    },
    /// No complete answer within the route's time.
    #[error("the Agent Server did not answer {route} within {limit_ms} ms")]
    Timeout {
        /// The route meant.
        route: RouteName,
        /// The time that was given, in milliseconds.
        limit_ms: u64,
        /// Whether sending had begun.
        sent: bool,
    },
    /// The connection ended before the whole answer was there.
    #[error("the connection to the Agent Server ended during {route}: {detail}")]
    ConnectionLost {
        /// The route meant.
        route: RouteName,
        /// What was seen.
        detail: String,
    },
    /// The server answered with a redirect, which is never followed.
    #[error("the Agent Server answered {route} with a redirect ({status}), which is refused")]
    Redirect {
        /// The route meant.
        route: RouteName,
        /// The HTTP status.
        status: u16,
    },
    /// The server answered with a status that is not one of the route's successes.
    #[error("the Agent Server refused {route} with status {status}{}", detail.as_deref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        /// The route meant.
        route: RouteName,
        /// The HTTP status.
        status: u16,
        /// The server's reason, bounded, free of our secrets.
        detail: Option<String>,
    },
    /// The answer is larger than the route allows.
    #[error("the Agent Server's answer to {route} is larger than {max_bytes} bytes")]
    TooLarge {
        /// The route meant.
        route: RouteName,
        /// The bound, in bytes.
        max_bytes: usize,
    },
    /// The answer is not JSON, or not in the form that the contract's version gives.
    #[error("the Agent Server's answer to {route} is not as reviewed: {detail}")]
    Malformed {
        /// The route meant.
        route: RouteName,
        /// What is wrong.
        detail: String,
    },
    /// The server answered that it did not do it (`"success": false`).
    #[error("the Agent Server answered that it did not do {route}")]
    Declined {
        /// The route meant.
        route: RouteName,
    },
}

impl ContractError {
    /// Whether the request may have reached the server, so that a mutation may have happened. `false` is certain.
    pub fn may_have_been_sent(&self) -> bool {
        match self {
            Self::Identifier { .. }
            | Self::OutsideContract { .. }
            | Self::GrantMismatch { .. }
            | Self::Unreachable { .. } => false,
            Self::Timeout { sent, .. } => *sent,
            Self::ConnectionLost { .. }
            | Self::Redirect { .. }
            | Self::Status { .. }
            | Self::TooLarge { .. }
            | Self::Malformed { .. }
            | Self::Declined { .. } => true,
        }
    }

    /// Whether the server answered at all, well or not: whatever the request began had begun by then.
    pub fn was_answered(&self) -> bool {
        match self {
            Self::Redirect { .. }
            | Self::Status { .. }
            | Self::TooLarge { .. }
            | Self::Malformed { .. }
            | Self::Declined { .. } => true,
            Self::Identifier { .. }
            | Self::OutsideContract { .. }
            | Self::GrantMismatch { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::ConnectionLost { .. } => false,
        }
    }

    /// The status with which the server definitely answered that it did not do it: a 4xx, or a 200 that says so. After
    /// a failure within the server, an unexpected success, a lost connection or an answer that cannot be read there is
    /// none, and a mutation may have happened all the same.
    pub fn refused_status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status).filter(|status| (400..500).contains(status)),
            Self::Declined { .. } => Some(200),
            Self::Identifier { .. }
            | Self::OutsideContract { .. }
            | Self::GrantMismatch { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::ConnectionLost { .. }
            | Self::Redirect { .. }
            | Self::TooLarge { .. }
            | Self::Malformed { .. } => None,
        }
    }

    pub(crate) fn malformed(route: RouteName, detail: impl Into<String>) -> Self {
        Self::Malformed { route, detail: detail.into() }
    }
}
