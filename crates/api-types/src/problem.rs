//! What an error looks like.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error, sent as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: `code` is what a program decides by.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// The HTTP status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Stable snake_case word for programs.
    pub code: String,
    /// What happened and what to do next, for people.
    pub detail: String,
    /// What mends it, as docs/operations.md says of the code; absent from daemons that do not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Whether the same request may succeed later without anything being changed.
    pub retryable: bool,
    /// The session's current generation; absent where it is unknown or does not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_generation: Option<u64>,
    /// The id of the request, as in the reply's `X-Request-Id` and in the daemon's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Why something is not available, inside a larger reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// Stable snake_case word for programs.
    pub code: String,
    /// The same for people.
    pub detail: String,
    /// What mends it.
    pub remedy: String,
}
