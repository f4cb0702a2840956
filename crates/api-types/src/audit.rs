//! The chain of receipts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number, gapless from 1.
    pub n: u64,
    /// The time it says, RFC 3339, UTC. The order is that of `n`, whatever the clock said.
    pub at: String,
    /// SHA-256 over the digest of the link before it (32 zero bytes before the first) and the canonical JSON (RFC 8785) of
    /// `entry`; hexadecimal.
    pub digest: String,
    /// What it says: `kind` (`receipt`, `session`, `accept`, `refusal`, `ledger`), `at_ms`, identifiers, caller, state and
    /// code; inputs, results and details as SHA-256.
    pub entry: Value,
}

/// The chain's newest link, signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditHead {
    /// Its number.
    pub n: u64,
    /// Its digest, hexadecimal.
    pub digest: String,
    /// Ed25519 over `gatepost ledger head v1`, the number and the digest, a line each; base64.
    pub signature: String,
    /// Key of the signature, base64.
    pub public_key: String,
}

/// Links in order, and where the chain ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// Oldest first.
    pub entries: Vec<AuditEntry>,
    /// The `after` that goes on from here.
    pub next_after: u64,
    /// Where the chain ended when this was read.
    pub head: AuditHead,
}

/// A link that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrokenLink {
    /// Its number; 0 for a row that names none.
    pub n: u64,
    /// `digest`, `gap`, `head`, `signature`, `entry`, `row_differs`, `row_missing` or `no_link`.
    pub fault: String,
    /// The same for people.
    pub detail: String,
}

/// What a walk along the whole chain found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditVerification {
    /// Every link and every row holds.
    pub intact: bool,
    /// Links that hold.
    pub links: u64,
    /// Receipts, sessions and accepts that are as their newest links say.
    pub rows: u64,
    /// The first thing that is wrong.
    pub broken: Option<BrokenLink>,
}
