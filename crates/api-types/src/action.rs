//! Asking for an operation, and its receipt.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Asks for one operation of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionRequest {
    /// Operation of the catalog, such as `session.prompt.send`.
    pub operation_id: String,
    /// Its input, an object as the catalog describes it.
    pub input: Value,
    /// Generation of the snapshot the caller decided on. Required where the snapshot says `needs_generation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_generation: Option<u64>,
    /// Idempotency key, 1 to 128 characters of `[A-Za-z0-9._:-]`; the header `Idempotency-Key` may carry it instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_action_id: Option<String>,
}

/// Where an action stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptState {
    /// Accepted, and waits for the session to be quiet.
    Queued,
    /// Being carried out.
    InFlight,
    /// Its evidence was seen.
    Applied,
    /// Not done; `code` says why.
    Rejected,
    /// It may or may not have been done, and is never sent again.
    OutcomeUnknown,
}

impl ReceiptState {
    /// Whether the receipt will not change any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::InFlight => false,
            Self::Applied | Self::Rejected | Self::OutcomeUnknown => true,
        }
    }
}

/// One upstream mutation of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptStep {
    /// Name of the upstream call.
    pub name: String,
    /// `intent`, `done`, `failed`, `unknown` or `not_sent`.
    pub state: String,
    /// Code of a failure.
    pub code: Option<String>,
}

/// What was asked and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// The caller's idempotency key.
    pub client_action_id: String,
    /// Session, if the operation has one.
    pub session_id: Option<String>,
    /// Operation.
    pub operation_id: String,
    /// Where it stands.
    pub state: ReceiptState,
    /// Stable code of a rejection or doubt.
    pub code: Option<String>,
    /// The same for people.
    pub detail: Option<String>,
    /// Upstream mutations in order, each sent at most once.
    pub steps: Vec<ReceiptStep>,
    /// What the operation returned: a fork's `session_id`, a read's content.
    pub result: Value,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
    /// The request that it was first asked by: the same as in that reply's `X-Request-Id` and in the log. Absent in old receipts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// This reply repeats an earlier one.
    pub replayed: bool,
}
