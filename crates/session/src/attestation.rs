//! A signed word on which canaries passed, when.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};

use crate::clock;
use crate::server::{CANARY_EXPIRY_MS, ReadCanaries};
use crate::session::Session;
use crate::view::Attestation;

/// Version of the document.
const VERSION: u32 = 1;

impl Session {
    /// Signs what is known of the session's canaries. Results older than 300 s are left out: they prove nothing.
    ///
    /// # Errors
    /// `server_unavailable` when the session is on no server.
    pub(crate) fn attest(&self) -> Result<Attestation, Refusal> {
        let now_ms = clock::steady_ms();
        let (server, session) = {
            let state = self.state();
            let server = state.server.clone().ok_or_else(|| {
                Refusal::new(RefusalCode::ServerUnavailable, "the session is on no server; send it an operation first")
            })?;
            (server, ReadCanaries { results: state.canaries.clone(), read_at_ms: state.observed_at_ms })
        };
        let canaries: Vec<Value> =
            [server.canaries(), session].iter().flat_map(|read| attested(read, now_ms)).collect();
        let oldest_ms =
            canaries.iter().filter_map(|canary| canary["age_ms"].as_i64()).max().unwrap_or(CANARY_EXPIRY_MS);
        let document = json!({
            "v": VERSION,
            "session_id": self.id().as_str(),
            "server_start_id": server.start_id(),
            "launch_config_digest": server.owned().launch_config_digest(),
            "contract_version": self.shared().contract.version(),
            "confinement_level": server.confinement().level.as_str(),
            "confinement_missing": server.confinement().missing,
            "confinement_notes": server.confinement().notes,
            "issued_at": clock::rfc3339(now_ms),
            "expires_at": clock::rfc3339(now_ms - oldest_ms + CANARY_EXPIRY_MS),
            "canaries": canaries,
        });
        let signed = rules::jcs::canonical_json(&document);
        let key = &self.shared().signing_key;
        Ok(Attestation {
            signature: STANDARD.encode(key.sign(signed.as_bytes())),
            public_key: STANDARD.encode(key.public_key()),
            document,
        })
    }
}

fn attested(read: &ReadCanaries, now_ms: i64) -> Vec<Value> {
    let age_ms = now_ms.saturating_sub(read.read_at_ms);
    if age_ms >= CANARY_EXPIRY_MS {
        return Vec::new();
    }
    let entry = |result: &rules::canary::CanaryResult| {
        json!({
            "canary": result.canary.as_str(),
            "passed": result.passed,
            "code": result.code.map(RefusalCode::as_str),
            "evidence_sha256": result.evidence_digest(),
            "age_ms": age_ms,
        })
    };
    read.results.iter().map(entry).collect()
}
