use std::collections::BTreeSet;

use super::*;

const OPERATIONS: &str = include_str!("../../../../docs/operations.md");

fn finding(code: RefusalCode) -> Finding {
    Finding::of(Refusal::new(code, "seen"))
}

/// Every combination of a phase and of what is wrong where.
fn every_daemon() -> Vec<(Phase, DaemonStanding)> {
    let mut all = Vec::new();
    for phase in [Phase::Checking, Phase::Running, Phase::Stopping] {
        all.push((phase, daemon(phase, vec![], vec![])));
        for code in RefusalCode::ALL.iter().copied() {
            all.push((phase, daemon(phase, vec![finding(code)], vec![])));
            all.push((phase, daemon(phase, vec![], vec![finding(code)])));
            all.push((phase, daemon(phase, vec![finding(code)], vec![finding(code)])));
        }
    }
    all
}

#[test]
fn readiness_and_status_never_disagree() {
    let mut seen = BTreeSet::new();
    for (phase, standing) in every_daemon() {
        seen.insert(standing.state);
        let taken = standing.hindrances().is_empty();
        assert_eq!(standing.state.takes_sessions(), taken, "{phase:?} {standing:?}");
        assert_eq!(standing.state == DaemonState::Ready, standing.findings().next().is_none(), "{standing:?}");
        assert!(standing.findings().all(|finding| !finding.remedy.is_empty()), "{standing:?}");
        match phase {
            Phase::Checking => assert_eq!(standing.state, DaemonState::Starting),
            Phase::Stopping => assert_eq!(standing.state, DaemonState::Stopping),
            Phase::Running => assert_eq!(taken, standing.everywhere.is_empty(), "{standing:?}"),
        }
    }
    assert_eq!(seen.len(), DaemonState::ALL.len());
}

#[test]
fn a_session_on_a_server_is_never_told_stopped_and_a_blocked_one_never_ready() {
    let blocks = RefusalCode::ALL.iter().map(|code| Some(Refusal::new(*code, "seen")));
    let mut seen = BTreeSet::new();
    for block in blocks.chain([None]) {
        for server in ServerStanding::ALL.iter().copied() {
            for on_server in [true, false] {
                let state = session(block.as_ref(), on_server, server);
                seen.insert(state);
                let healthy = block.is_none() && on_server;
                assert_eq!(state == SessionStanding::Ready, healthy, "{block:?} {server:?} {on_server}");
                assert!(!on_server || state != SessionStanding::Stopped, "{block:?} {server:?}");
                let told = remedy(block.as_ref(), state.remedy());
                assert_eq!(told.is_none(), healthy, "{block:?} {server:?} {on_server}");
            }
        }
    }
    assert_eq!(seen.len(), SessionStanding::ALL.len());
    let tripped = Refusal::new(RefusalCode::UnreviewedAction, "ran");
    assert_eq!(session(Some(&tripped), false, ServerStanding::Starting), SessionStanding::Blocked);
    let down = Refusal::new(RefusalCode::ServerUnavailable, "ended");
    assert_eq!(session(Some(&down), false, ServerStanding::Starting), SessionStanding::Starting);
    assert_eq!(session(Some(&down), false, ServerStanding::Failed), SessionStanding::Blocked);
}

#[test]
fn a_failure_of_a_spare_is_told_until_there_is_another() {
    for has_failed in [true, false] {
        let none = if has_failed { SpareStanding::Failed } else { SpareStanding::None };
        assert_eq!(spare(SpareState::None, has_failed), none);
        assert_eq!(spare(SpareState::Starting, has_failed), SpareStanding::Starting);
        assert_eq!(spare(SpareState::Waiting, has_failed), SpareStanding::Waiting);
    }
}

/// The rows of the table whose heading begins so: the words in the first cell, and what stands in the last.
fn rows(heading: &str) -> Vec<(String, String)> {
    let lines = OPERATIONS.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    let cells = lines.take_while(|line| line.starts_with('|')).map(|line| line.trim_matches('|').split('|'));
    cells
        .map(|mut cells| {
            let word = cells.next().unwrap_or_default().trim().trim_matches('`').to_owned();
            (word, cells.next_back().unwrap_or_default().trim().to_owned())
        })
        .collect()
}

/// A table of states says of each state, and of nothing else, what is to be done.
#[test]
fn the_documentation_names_every_state_with_what_is_to_be_done() {
    let table = |states: Vec<(&str, Option<&str>)>| -> Vec<(String, String)> {
        states.into_iter().map(|(word, remedy)| (word.to_owned(), remedy.unwrap_or_default().to_owned())).collect()
    };
    macro_rules! all {
        ($of:ident) => {
            table($of::ALL.iter().map(|state| (state.as_str(), state.remedy())).collect())
        };
    }
    for (heading, mut states) in [
        ("| state |", all!(DaemonState)),
        ("| server |", all!(ServerStanding)),
        ("| spare |", all!(SpareStanding)),
        ("| session |", all!(SessionStanding)),
        ("| canary |", all!(CanaryStanding)),
    ] {
        let mut documented = rows(heading);
        documented.sort();
        states.sort();
        assert_eq!(documented, states, "{heading}");
    }
}
