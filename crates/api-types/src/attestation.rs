//! The signed word on a session's canaries.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Which canaries passed, the SHA-256 of each one's evidence, its age and the expiry, signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attestation {
    /// The signed document; what is signed is its canonical JSON (RFC 8785).
    #[schema(value_type = Object)]
    pub document: Value,
    /// Ed25519 signature over the canonical JSON of `document`, base64.
    pub signature: String,
    /// Public key of this installation, base64.
    pub public_key: String,
}
