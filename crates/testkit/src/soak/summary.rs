//! What a run came to.

use super::judge::{Finding, Verdict};
use crate::verdict::Findings;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Findings listed in full; all are counted.
const MAX_LISTED: usize = 50;

/// One thing that is wrong, with what it takes to play its sequence again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Number of the sequence: `--sequence` plays it alone, under the same seed.
    pub sequence: u64,
    /// `unapproved_execution`, `double_execution`, `approved_not_executed`, or another word for an oddity.
    pub kind: String,
    /// What was seen.
    pub detail: String,
    /// What was done, in order, with what was answered.
    pub history: Vec<String>,
}

/// The whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Sequences played.
    pub sequences: u64,
    /// Commands that were proposed.
    pub proposed: u64,
    /// Those whose approval was taken.
    pub approved: u64,
    /// Those that ran.
    pub executed: u64,
    /// Commands that ran and were not approved.
    pub unapproved_executions: u64,
    /// Commands that ran more than once.
    pub double_executions: u64,
    /// Approved ones that neither ran nor are in doubt, and whose end nothing names.
    pub approved_not_executed: u64,
    /// Approved ones that did not run and are said to be in doubt.
    pub in_doubt: u64,
    /// The seed.
    pub seed: u64,
    /// Which latch was alone: `gate`, `server`, or none.
    pub only: Option<String>,
    /// Approved ones that did run and are said to be in doubt.
    pub in_doubt_executed: u64,
    /// Approved ones that did not run, as an error or a rejection in the log says.
    pub ended_by_error: u64,
    /// Approvals that were taken back unused.
    pub withdrawn: u64,
    /// Actions that the latch inside the server stopped, as far as that was told.
    pub held: u64,
    /// Operations by kind.
    pub operations: BTreeMap<String, u64>,
    /// What they came to: `kind: state or code`.
    pub outcomes: BTreeMap<String, u64>,
    /// Kills by victim.
    pub kills: BTreeMap<String, u64>,
    /// Starts of a real server that were seen.
    pub server_starts: u64,
    /// Sessions, forks included.
    pub sessions: u64,
    /// Processes left at the end.
    pub leftover_processes: u64,
    /// In seconds.
    pub duration_s: u64,
    /// What makes the run fail.
    pub findings: Vec<Case>,
    /// What is odd and no breach.
    pub oddities: Vec<Case>,
}

impl Summary {
    pub(super) fn count(&mut self, of: impl FnOnce(&mut Self) -> &mut BTreeMap<String, u64>, word: &str) {
        *of(self).entry(word.to_owned()).or_default() += 1;
    }

    /// Takes a sequence's verdict in.
    pub(super) fn add(&mut self, sequence: u64, verdict: &Verdict, history: &[String]) {
        self.proposed += verdict.proposed;
        self.approved += verdict.approved;
        self.executed += verdict.executed;
        self.in_doubt += verdict.in_doubt;
        self.in_doubt_executed += verdict.in_doubt_executed;
        self.ended_by_error += verdict.ended_by_error;
        for finding in &verdict.unapproved {
            self.unapproved_executions += 1;
            self.list(sequence, "unapproved_execution", finding, history);
        }
        for finding in &verdict.double {
            self.double_executions += 1;
            self.list(sequence, "double_execution", finding, history);
        }
        for finding in &verdict.not_executed {
            self.approved_not_executed += 1;
            self.list(sequence, "approved_not_executed", finding, history);
        }
    }

    fn list(&mut self, sequence: u64, kind: &str, finding: &Finding, history: &[String]) {
        if self.findings.len() < MAX_LISTED {
            let detail = format!("{}: {}", finding.marker, finding.detail);
            self.findings.push(Case { sequence, kind: kind.to_owned(), detail, history: history.to_vec() });
        }
    }

    /// Notes an oddity.
    pub(super) fn add_oddity(&mut self, sequence: u64, kind: &str, detail: &str, history: &[String]) {
        if self.oddities.len() < MAX_LISTED {
            self.oddities.push(Case {
                sequence,
                kind: kind.to_owned(),
                detail: detail.to_owned(),
                history: history.to_vec(),
            });
        }
    }
}

impl Findings for Summary {
    /// Nothing ran that must not, nothing twice, and what was approved ran or says why not.
    fn is_sound(&self) -> bool {
        self.unapproved_executions == 0 && self.double_executions == 0 && self.approved_not_executed == 0
    }

    fn json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} sequences in {} s (seed {}, {})\n\
             {} proposed, {} approved, {} executed, {} in doubt, {} ended by an error, {} withdrawn\n\
             {} unapproved executions, {} double executions, {} approved and not executed\n",
            self.sequences,
            self.duration_s,
            self.seed,
            self.only.as_deref().map_or_else(|| "both latches".to_owned(), |only| format!("{only} alone")),
            self.proposed,
            self.approved,
            self.executed,
            self.in_doubt,
            self.ended_by_error,
            self.withdrawn,
            self.unapproved_executions,
            self.double_executions,
            self.approved_not_executed,
        );
        for case in self.findings.iter().chain(&self.oddities) {
            text.push_str(&format!("sequence {}: {}: {}\n", case.sequence, case.kind, case.detail));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(marker: &str) -> Finding {
        Finding { marker: marker.to_owned(), detail: "wrong".to_owned() }
    }

    #[test]
    fn each_count_makes_a_run_unsound_and_names_its_sequence() {
        let clean = Verdict { proposed: 3, approved: 2, executed: 1, in_doubt: 1, ..Verdict::default() };
        let mut summary = Summary::default();
        summary.add(4, &clean, &[]);
        assert!(summary.is_sound() && summary.findings.is_empty());
        assert_eq!(summary.json()["in_doubt"], 1);
        let wrongs = [
            Verdict { unapproved: vec![finding("m")], ..Verdict::default() },
            Verdict { double: vec![finding("m")], ..Verdict::default() },
            Verdict { not_executed: vec![finding("m")], ..Verdict::default() },
        ];
        for wrong in wrongs {
            let mut summary = Summary::default();
            summary.add(9, &wrong, &["prompt".to_owned()]);
            assert!(!summary.is_sound(), "{wrong:?}");
            assert_eq!((summary.findings[0].sequence, summary.findings[0].history.len()), (9, 1));
            assert!(summary.text().contains("sequence 9"), "{}", summary.text());
        }
    }

    #[test]
    fn the_object_holds_every_promised_field() {
        let object = Summary::default().json();
        for name in [
            "sequences",
            "proposed",
            "approved",
            "executed",
            "unapproved_executions",
            "double_executions",
            "approved_not_executed",
            "in_doubt",
            "seed",
        ] {
            assert!(object[name].is_u64(), "{name}");
        }
    }
}
