//! The chain of receipts, as it is shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::clock;

/// One link.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// Its number, gapless from 1.
    pub n: u64,
    /// The time it says, RFC 3339.
    pub at: String,
    /// SHA-256, 64 lower-case hexadecimal digits.
    pub digest: String,
    /// What it says; `null` when it cannot be read.
    pub entry: Value,
}

/// Some links, and where the chain ends.
#[derive(Debug, Clone)]
pub struct AuditPage {
    /// Oldest first.
    pub entries: Vec<AuditEntry>,
    /// After which number to go on.
    pub next_after: u64,
    /// Number of the newest link.
    pub head_n: u64,
    /// Its digest.
    pub head_digest: String,
    /// Ed25519 over the head, base64.
    pub signature: String,
    /// Key of the signature, base64.
    pub public_key: String,
}

impl AuditPage {
    /// From what the store holds; `after` is what was asked for.
    #[must_use]
    pub fn of(page: store::AuditPage, after: u64, public_key: &[u8]) -> Self {
        let entry = |link: store::Link| {
            let entry: Value = serde_json::from_str(&link.entry).unwrap_or_default();
            let at = clock::rfc3339(entry["at_ms"].as_i64().unwrap_or_default());
            AuditEntry { n: link.n, at, digest: link.digest, entry }
        };
        Self {
            next_after: page.links.last().map_or(after, |link| link.n),
            entries: page.links.into_iter().map(entry).collect(),
            head_n: page.head.n,
            head_digest: page.head.digest,
            signature: STANDARD.encode(page.head.signature),
            public_key: STANDARD.encode(public_key),
        }
    }
}

/// What a walk along the whole chain found.
#[derive(Debug, Clone)]
pub struct Verification {
    /// Links that hold.
    pub links: u64,
    /// Receipts, sessions and accepts that are as their newest links say.
    pub rows: u64,
    /// The first thing that is wrong.
    pub broken: Option<BrokenLink>,
}

/// A link that does not hold.
#[derive(Debug, Clone)]
pub struct BrokenLink {
    /// Its number.
    pub n: u64,
    /// What is wrong, as a stable word.
    pub fault: &'static str,
    /// The same for people.
    pub detail: String,
}

impl Verification {
    /// From the store's verdict.
    #[must_use]
    pub fn of(verdict: store::Verdict) -> Self {
        let broken =
            |broken: store::Broken| BrokenLink { n: broken.n, fault: broken.fault.as_str(), detail: broken.detail };
        Self { links: verdict.links, rows: verdict.rows, broken: verdict.broken.map(broken) }
    }
}

/// A request that was refused before it had a receipt.
#[derive(Debug, Clone)]
pub struct RefusedRequest {
    /// Method and path, with its parameters in braces.
    pub request: String,
    /// Name of the token.
    pub caller: String,
    /// The request's key, when it had a valid one.
    pub client_action_id: Option<String>,
    /// The session it named, when that was an identifier.
    pub session_id: Option<String>,
    /// The operation it named, when that is one of the catalog.
    pub operation_id: Option<String>,
    /// Stable code of the refusal.
    pub code: rules::refusal::RefusalCode,
}
