//! Where each canary stands: what was read of it last, and whether what it was read of is there.

use super::{ServerStanding, SessionStanding};
use crate::canary::{CanaryId, CanaryResult, CanaryScope};
use crate::refusal::Refusal;

states! {
    /// A canary.
    CanaryStanding {
        /// Not read yet of what is being started.
        Starting "starting" Some("wait: it is read before anyone uses what it guards");
        /// What it guards holds.
        Ready "ready" None;
        /// It held, and the newest read got no answer.
        Degraded "degraded" Some("wait: it is read again at once, and the server is ended if it goes on giving no answer");
        /// What it guards does not hold, or could not be read.
        Blocked "blocked" Some("do what its code says");
        /// It fails at start after start.
        CrashLooping "crash_looping" Some("mend what its code says; it is read again when its server is next tried");
        /// There is nothing that it could be read of.
        Stopped "stopped" Some("nothing: it is read when what it guards is started");
    }
}

/// Whether what a canary is read of is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// It is being started: what is known is of the one before.
    Starting,
    /// It is in use.
    Up,
    /// It is not in use.
    Down,
    /// It is not in use, and its start failed so often that it is left alone for a while.
    CrashLooping,
}

impl From<ServerStanding> for Guarded {
    fn from(server: ServerStanding) -> Self {
        match server {
            ServerStanding::Starting => Self::Starting,
            ServerStanding::Ready => Self::Up,
            ServerStanding::Stopped | ServerStanding::Stopping | ServerStanding::Failed => Self::Down,
            ServerStanding::CrashLooping => Self::CrashLooping,
        }
    }
}

impl Guarded {
    /// Of a session: whether it is on a server that is up, and where it stands.
    pub const fn session(on_server: bool, session: SessionStanding) -> Self {
        match session {
            _ if on_server => Self::Up,
            SessionStanding::Starting => Self::Starting,
            SessionStanding::CrashLooping => Self::CrashLooping,
            SessionStanding::Ready | SessionStanding::Blocked | SessionStanding::Stopped => Self::Down,
        }
    }
}

/// What is told of one canary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryReport {
    /// Which.
    pub canary: CanaryId,
    /// Where it stands.
    pub state: CanaryStanding,
    /// Whether what it guards held when it was read last.
    pub passed: bool,
    /// Why it did not.
    pub refusal: Option<Refusal>,
    /// What was seen, in words.
    pub detail: String,
}

/// Every canary of these scopes, and each other that was read. `results` are in force; `unanswered` is what the newest read got
/// no answer for.
pub fn canaries(
    scopes: &[CanaryScope],
    results: &[CanaryResult],
    unanswered: &[CanaryResult],
    guarded: Guarded,
) -> Vec<CanaryReport> {
    let of = |results: &[CanaryResult], canary| -> Vec<CanaryResult> {
        results.iter().filter(|result| result.canary == canary).cloned().collect()
    };
    CanaryId::ALL
        .into_iter()
        .filter(|canary| scopes.contains(&canary.scope()) || !of(results, *canary).is_empty())
        .map(|canary| {
            // Of several verdicts the one against counts, as it does for a step.
            let read = of(results, canary);
            let read = read.iter().find(|result| !result.passed).or(read.first());
            report(canary, read, of(unanswered, canary).first(), guarded)
        })
        .collect()
}

fn report(
    canary: CanaryId,
    read: Option<&CanaryResult>,
    unanswered: Option<&CanaryResult>,
    guarded: Guarded,
) -> CanaryReport {
    let state = standing(read.map(|read| read.passed), unanswered.is_some(), guarded);
    // What is known of the one before says nothing of the one that is being started.
    let read = read.filter(|_| state != CanaryStanding::Starting);
    let detail = match (read, unanswered) {
        (None, _) => "not read yet".to_owned(),
        (Some(read), Some(unanswered)) if state == CanaryStanding::Degraded => {
            format!("{}; then {}", read.detail, unanswered.detail)
        }
        (Some(read), _) => read.detail.clone(),
    };
    CanaryReport {
        canary,
        state,
        passed: read.is_some_and(|read| read.passed),
        refusal: read.and_then(CanaryResult::refusal),
        detail,
    }
}

/// The one place where a canary's state is decided. `passed` is the verdict in force, `None` when there is none.
const fn standing(passed: Option<bool>, unanswered: bool, guarded: Guarded) -> CanaryStanding {
    match (guarded, passed) {
        (Guarded::Starting, _) | (Guarded::Up, None) => CanaryStanding::Starting,
        (Guarded::Up, Some(true)) if unanswered => CanaryStanding::Degraded,
        (Guarded::Up, Some(true)) => CanaryStanding::Ready,
        (Guarded::Up | Guarded::Down, Some(false)) => CanaryStanding::Blocked,
        (Guarded::CrashLooping, Some(false)) => CanaryStanding::CrashLooping,
        (Guarded::Down | Guarded::CrashLooping, Some(true) | None) => CanaryStanding::Stopped,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::refusal::RefusalCode;
    use crate::standing::remedy;

    const ALL_GUARDED: [Guarded; 4] = [Guarded::Starting, Guarded::Up, Guarded::Down, Guarded::CrashLooping];
    const SERVER: [CanaryScope; 2] = [CanaryScope::Installation, CanaryScope::Server];

    fn passed(canary: CanaryId) -> CanaryResult {
        CanaryResult::pass(canary, "as it must be", json!({}))
    }

    fn failed(canary: CanaryId) -> CanaryResult {
        CanaryResult::fail(canary, RefusalCode::VersionMismatch, "other", json!({}))
    }

    fn unread(canary: CanaryId) -> CanaryResult {
        CanaryResult::unreadable(canary, "no answer within 5000 ms")
    }

    /// Every canary with every last read, every newest read, and everything that may be of what it guards.
    #[test]
    fn a_canary_is_ready_only_while_it_holds_for_what_is_in_use_and_stopped_only_when_nothing_is() {
        let mut seen = BTreeSet::new();
        for canary in CanaryId::ALL {
            for guarded in ALL_GUARDED {
                for read in [None, Some(passed(canary)), Some(failed(canary)), Some(unread(canary))] {
                    for newest in [vec![], vec![unread(canary)]] {
                        let reports = canaries(&[canary.scope()], read.as_slice(), &newest, guarded);
                        let one = reports.iter().find(|report| report.canary == canary).unwrap();
                        let context = format!("{guarded:?} {read:?} {newest:?} {one:?}");
                        seen.insert(one.state);
                        let verdict = read.as_ref().map(|read| read.passed);
                        let (up, starting) = (guarded == Guarded::Up, guarded == Guarded::Starting);
                        let holds = up && verdict == Some(true);
                        assert_eq!(one.state == CanaryStanding::Ready, holds && newest.is_empty(), "{context}");
                        assert_eq!(one.state == CanaryStanding::Degraded, holds && !newest.is_empty(), "{context}");
                        let expected = match (guarded, verdict) {
                            (Guarded::CrashLooping, Some(false)) => CanaryStanding::CrashLooping,
                            (Guarded::Up | Guarded::Down, Some(false)) => CanaryStanding::Blocked,
                            (Guarded::Down | Guarded::CrashLooping, _) => CanaryStanding::Stopped,
                            (Guarded::Starting, _) | (_, None) => CanaryStanding::Starting,
                            (Guarded::Up, Some(true)) => one.state,
                        };
                        assert_eq!(one.state, expected, "{context}");
                        // What is wrong is told with its code, never for the one that is only being started.
                        assert_eq!(one.refusal.is_some(), !starting && verdict == Some(false), "{context}");
                        assert_eq!(one.passed, !starting && verdict == Some(true), "{context}");
                        let told = remedy(one.refusal.as_ref(), one.state.remedy());
                        assert_eq!(told.is_none(), one.state == CanaryStanding::Ready, "{context}");
                        let both = one.detail.contains("as it must be") && one.detail.contains("no answer");
                        assert_eq!(both, one.state == CanaryStanding::Degraded, "{context}");
                        assert!(!one.detail.is_empty());
                    }
                }
            }
        }
        assert_eq!(seen.len(), CanaryStanding::ALL.len());
    }

    #[test]
    fn every_canary_of_the_scopes_is_told_of_once_and_one_that_failed_elsewhere_too() {
        let of_server = CanaryId::ALL.into_iter().filter(|canary| canary.scope() != CanaryScope::Session);
        let ids = |reports: &[CanaryReport]| reports.iter().map(|report| report.canary).collect::<Vec<_>>();
        let expected: Vec<_> = of_server.collect();
        let all_passed: Vec<_> = expected.iter().copied().map(passed).collect();
        for results in [vec![], vec![passed(CanaryId::Versions)], all_passed] {
            assert_eq!(ids(&canaries(&SERVER, &results, &[], Guarded::Up)), expected);
        }
        let content = [failed(CanaryId::WorkspaceContent)];
        let reports = canaries(&SERVER, &content, &[], Guarded::Down);
        assert_eq!(ids(&reports), [expected, vec![CanaryId::WorkspaceContent]].concat());
        let states: Vec<_> = reports.iter().map(|report| report.state).collect();
        let (last, others) = states.split_last().unwrap();
        assert_eq!(*last, CanaryStanding::Blocked);
        assert!(others.iter().all(|state| *state == CanaryStanding::Stopped), "{states:?}");
        for results in
            [[passed(CanaryId::Tools), failed(CanaryId::Tools)], [failed(CanaryId::Tools), passed(CanaryId::Tools)]]
        {
            let reports = canaries(&[], &results, &[], Guarded::Up);
            assert_eq!(reports.iter().map(|one| one.state).collect::<Vec<_>>(), [CanaryStanding::Blocked]);
        }
    }

    #[test]
    fn what_a_canary_guards_follows_the_server_and_the_session() {
        for server in ServerStanding::ALL.iter().copied() {
            let expected = match server {
                ServerStanding::Ready => Guarded::Up,
                ServerStanding::Starting => Guarded::Starting,
                ServerStanding::CrashLooping => Guarded::CrashLooping,
                ServerStanding::Stopped | ServerStanding::Stopping | ServerStanding::Failed => Guarded::Down,
            };
            assert_eq!(Guarded::from(server), expected);
        }
        for session in SessionStanding::ALL.iter().copied() {
            assert_eq!(Guarded::session(true, session), Guarded::Up, "{session:?}");
            let expected = match session {
                SessionStanding::Starting => Guarded::Starting,
                SessionStanding::CrashLooping => Guarded::CrashLooping,
                SessionStanding::Ready | SessionStanding::Blocked | SessionStanding::Stopped => Guarded::Down,
            };
            assert_eq!(Guarded::session(false, session), expected, "{session:?}");
        }
    }
}
