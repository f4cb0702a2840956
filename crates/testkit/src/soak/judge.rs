//! The verdict on one sequence: what ran against what was approved. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// How an approval of an action ended, as far as it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approved {
    /// Accepted, and said to be carried out or still under way.
    Told,
    /// Accepted, and said to be of unknown outcome.
    InDoubt,
}

/// What was found when a sequence had settled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    /// Proposed actions that could run: event id to marker.
    pub(crate) proposed: BTreeMap<String, String>,
    /// Actions whose approval was taken by gatepost: event id to what was said of it.
    pub(crate) approved: BTreeMap<String, Approved>,
    /// Actions that are shown as doubtful.
    pub(crate) shown_in_doubt: BTreeSet<String>,
    /// Actions that an error or a rejection in the log answers, with its words.
    pub(crate) ended: BTreeMap<String, String>,
    /// How often the command of each marker ran.
    pub(crate) runs: BTreeMap<String, usize>,
}

/// The marker of an action, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) marker: String,
    pub(crate) detail: String,
}

/// The counts of one sequence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) proposed: u64,
    pub(crate) approved: u64,
    pub(crate) executed: u64,
    pub(crate) in_doubt: u64,
    pub(crate) in_doubt_executed: u64,
    pub(crate) ended_by_error: u64,
    pub(crate) unapproved: Vec<Finding>,
    pub(crate) double: Vec<Finding>,
    pub(crate) not_executed: Vec<Finding>,
}

fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}

/// Judges.
pub(crate) fn judge(evidence: &Evidence) -> Verdict {
    let mut verdict = Verdict { proposed: count(evidence.proposed.len()), ..Verdict::default() };
    let event_of: BTreeMap<&str, &str> =
        evidence.proposed.iter().map(|(event_id, marker)| (marker.as_str(), event_id.as_str())).collect();
    for (marker, runs) in evidence.runs.iter().filter(|(_, runs)| **runs > 0) {
        verdict.executed += 1;
        let event_id = event_of.get(marker.as_str()).copied();
        let approved = event_id.is_some_and(|event_id| evidence.approved.contains_key(event_id));
        if !approved {
            let event = event_id.unwrap_or("in no log");
            let detail = format!("it ran {runs} times and nobody approved it (event {event})");
            verdict.unapproved.push(Finding { marker: marker.clone(), detail });
        } else if *runs > 1 {
            verdict.double.push(Finding { marker: marker.clone(), detail: format!("it ran {runs} times") });
        }
    }
    for (event_id, approved) in &evidence.approved {
        // A finish or a thought leaves no marker.
        let Some(marker) = evidence.proposed.get(event_id) else { continue };
        verdict.approved += 1;
        let ran = evidence.runs.get(marker).is_some_and(|runs| *runs > 0);
        let doubtful = *approved == Approved::InDoubt || evidence.shown_in_doubt.contains(event_id);
        let ended = evidence.ended.contains_key(event_id);
        match (ran, doubtful, ended) {
            (true, true, _) => verdict.in_doubt_executed += 1,
            (true, false, _) => {}
            (false, true, _) => verdict.in_doubt += 1,
            (false, false, true) => verdict.ended_by_error += 1,
            (false, false, false) => {
                let detail = format!("event {event_id} was approved, did not run, and nothing says why");
                verdict.not_executed.push(Finding { marker: marker.clone(), detail });
            }
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(approved: &[(&str, Approved)], runs: &[(&str, usize)]) -> Evidence {
        let proposed = ["a", "b"].map(|id| (format!("event-{id}"), format!("mark-{id}")));
        Evidence {
            proposed: proposed.into(),
            approved: approved.iter().map(|(id, state)| (format!("event-{id}"), *state)).collect(),
            runs: runs.iter().map(|(id, runs)| (format!("mark-{id}"), *runs)).collect(),
            ..Evidence::default()
        }
    }

    fn findings(verdict: &Verdict) -> [usize; 3] {
        [verdict.unapproved.len(), verdict.double.len(), verdict.not_executed.len()]
    }

    #[test]
    fn what_was_approved_and_ran_once_is_right() {
        let verdict = judge(&evidence(&[("a", Approved::Told)], &[("a", 1)]));
        assert_eq!(findings(&verdict), [0, 0, 0]);
        assert_eq!((verdict.proposed, verdict.approved, verdict.executed), (2, 1, 1));
    }

    #[test]
    fn each_wrong_is_found() {
        let unapproved = judge(&evidence(&[("a", Approved::Told)], &[("a", 1), ("b", 1)]));
        assert_eq!(findings(&unapproved), [1, 0, 0]);
        assert_eq!(unapproved.unapproved[0].marker, "mark-b");
        let unknown = judge(&evidence(&[], &[("of-no-log", 1)]));
        assert_eq!(findings(&unknown), [1, 0, 0]);
        let double = judge(&evidence(&[("a", Approved::InDoubt)], &[("a", 2)]));
        assert_eq!(findings(&double), [0, 1, 0]);
        let not_executed = judge(&evidence(&[("a", Approved::Told)], &[]));
        assert_eq!(findings(&not_executed), [0, 0, 1]);
    }

    #[test]
    fn doubt_and_an_error_that_the_log_names_explain_what_did_not_run() {
        let doubtful = judge(&evidence(&[("a", Approved::InDoubt)], &[]));
        assert_eq!((findings(&doubtful), doubtful.in_doubt), ([0, 0, 0], 1));
        let mut shown = evidence(&[("a", Approved::Told)], &[]);
        shown.shown_in_doubt.insert("event-a".to_owned());
        assert_eq!(judge(&shown).in_doubt, 1);
        let mut ended = evidence(&[("a", Approved::Told)], &[]);
        ended.ended.insert("event-a".to_owned(), "interrupted".to_owned());
        let verdict = judge(&ended);
        assert_eq!((findings(&verdict), verdict.ended_by_error), ([0, 0, 0], 1));
        let mut other = evidence(&[("a", Approved::Told)], &[]);
        other.ended.insert("event-b".to_owned(), "rejected".to_owned());
        assert_eq!(findings(&judge(&other)), [0, 0, 1], "another action's end is no excuse");
        let ran = judge(&evidence(&[("a", Approved::InDoubt)], &[("a", 1)]));
        assert_eq!((findings(&ran), ran.in_doubt, ran.in_doubt_executed), ([0, 0, 0], 0, 1));
    }

    #[test]
    fn an_approved_finish_leaves_no_marker() {
        let mut evidence = evidence(&[], &[]);
        evidence.approved.insert("event-finish".to_owned(), Approved::Told);
        assert_eq!(judge(&evidence).approved, 0);
    }
}
