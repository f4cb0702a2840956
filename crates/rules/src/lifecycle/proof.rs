//! What a repeated read of a server's canaries means for the server: one slow answer is no verdict.

use crate::canary::CanaryResult;
use crate::refusal::Refusal;

/// Bounds of reading again what could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofLimits {
    /// Reads in a row without an answer that are a verdict.
    pub reads: u32,
    /// Pause before the second read, in milliseconds; doubled before each further one.
    pub first_pause_ms: u64,
}

/// What follows from one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// Nothing speaks against the server.
    Holds,
    /// Something could not be read: read again after this pause. What was read before stays in force until then.
    ReadAgain {
        /// In milliseconds.
        after_ms: u64,
    },
    /// It answered what it must not, or did not answer for too long: it is not to be spoken to any more.
    Fails(Refusal),
}

/// Judges the `reads`-th read in a row (from 1).
///
/// A definite wrong answer of the server's identity, listener or authentication decides at once; what could not be read
/// decides only when it could not be read again and again.
pub fn prove(results: &[CanaryResult], reads: u32, limits: ProofLimits) -> Proof {
    let failed = || results.iter().filter(|result| !result.passed && result.canary.failure_ends_server());
    let refusal = |found: Option<&CanaryResult>| found.and_then(CanaryResult::refusal);
    if let Some(wrong) = refusal(failed().find(|result| !result.is_unreadable())) {
        return Proof::Fails(wrong);
    }
    match refusal(failed().next()) {
        None => Proof::Holds,
        Some(unread) if reads >= limits.reads => Proof::Fails(unread),
        Some(_) => {
            let doublings = reads.saturating_sub(1).min(16);
            Proof::ReadAgain { after_ms: limits.first_pause_ms.saturating_mul(1 << doublings) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canary::{CanaryId, CanaryScope};
    use crate::refusal::RefusalCode;
    use serde_json::json;

    const LIMITS: ProofLimits = ProofLimits { reads: 3, first_pause_ms: 1_000 };

    fn results(change: impl Fn(CanaryId) -> CanaryResult) -> Vec<CanaryResult> {
        CanaryId::ALL.into_iter().filter(|canary| canary.scope() != CanaryScope::Session).map(change).collect()
    }

    fn passed(canary: CanaryId) -> CanaryResult {
        CanaryResult::pass(canary, "as it must be", json!({}))
    }

    fn wrong(canary: CanaryId) -> CanaryResult {
        CanaryResult::fail(canary, RefusalCode::AuthenticationOpen, "wrong", json!({"seen": 200}))
    }

    fn slow(canary: CanaryId) -> CanaryResult {
        CanaryResult::unreadable(canary, "no answer within 5000 ms")
    }

    #[test]
    fn what_passes_holds_at_every_read() {
        for reads in 1..=5 {
            assert_eq!(prove(&results(passed), reads, LIMITS), Proof::Holds);
        }
    }

    #[test]
    fn one_slow_canary_is_read_again_and_fails_only_at_the_last_read() {
        for canary in CanaryId::ALL.into_iter().filter(|canary| canary.failure_ends_server()) {
            let slow_one = results(|id| if id == canary { slow(id) } else { passed(id) });
            assert_eq!(prove(&slow_one, 1, LIMITS), Proof::ReadAgain { after_ms: 1_000 }, "{canary:?}");
            assert_eq!(prove(&slow_one, 2, LIMITS), Proof::ReadAgain { after_ms: 2_000 });
            for reads in [3, 4, u32::MAX] {
                let Proof::Fails(refusal) = prove(&slow_one, reads, LIMITS) else { panic!("{canary:?} at {reads}") };
                assert_eq!(refusal.code, RefusalCode::CanaryFailed);
                assert!(refusal.detail.contains(canary.as_str()));
            }
        }
    }

    #[test]
    fn a_wrong_answer_fails_at_once_whatever_could_not_be_read() {
        for canary in CanaryId::ALL.into_iter().filter(|canary| canary.failure_ends_server()) {
            let mixed = results(|id| if id == canary { wrong(id) } else { slow(id) });
            let Proof::Fails(refusal) = prove(&mixed, 1, LIMITS) else { panic!("{canary:?}") };
            assert_eq!(refusal.code, RefusalCode::AuthenticationOpen);
        }
    }

    #[test]
    fn a_canary_that_ends_no_server_decides_nothing_here() {
        for failing in [wrong, slow] {
            let altered = results(|id| if id == CanaryId::Installation { failing(id) } else { passed(id) });
            assert_eq!(prove(&altered, 3, LIMITS), Proof::Holds);
        }
    }
}
