//! What a run came to.

use super::judge::Verdict;
use super::record::Keyed;
use super::settle::Left;
use crate::soak::judge;
use crate::verdict::Findings;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A receipt that does not say whether it was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unresolved {
    /// The key.
    pub client_action_id: String,
    /// Of what.
    pub kind: String,
    /// The receipt's state.
    pub state: String,
    /// Why, by the receipt: its code, and the step that it stopped at.
    pub cause: String,
}

/// The whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Rounds played.
    pub rounds: u64,
    /// The seed.
    pub seed: u64,
    /// Kills of all kinds.
    pub kills: u64,
    /// Kills by victim; of a daemon at a named point, by point.
    pub kills_by: BTreeMap<String, u64>,
    /// Operations, each with its own key.
    pub actions: u64,
    /// Operations by kind.
    pub actions_by: BTreeMap<String, u64>,
    /// Receipts by state at the end; `none` where the request was refused.
    pub receipts_by: BTreeMap<String, u64>,
    /// Requests whose reply was lost, so that they were sent again.
    pub lost_replies: u64,
    /// What the judge of receipts, requests and events found.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Receipts that do not say whether it was done.
    pub unresolved: Vec<Unresolved>,
    /// Sessions, forks included.
    pub sessions: u64,
    /// Readers, each of one session.
    pub readers: u64,
    /// Sessions whose conversation a killed server can read no more, with the file that it left half written.
    pub broken_conversations: Vec<String>,
    /// Mutations that the servers' own logs name.
    pub upstream_mutations: u64,
    /// Times that a reader was told to start over.
    pub resyncs: u64,
    /// Commands that ran and were not approved.
    pub unapproved_executions: u64,
    /// Commands that ran more than once; counted among `duplicated_mutations` as well.
    pub double_executions: u64,
    /// Approved ones that neither ran nor are in doubt, and whose end nothing names.
    pub approved_not_executed: u64,
    /// Commands that ran.
    pub executed: u64,
    /// Processes left at the end.
    pub leftover_processes: u64,
    /// What did not come to rest in time.
    pub restless: Vec<String>,
    /// In seconds.
    pub duration_s: u64,
}

fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}

impl Summary {
    /// Takes in what a run left, with both verdicts on it.
    pub(super) fn take(&mut self, left: Left, verdict: Verdict, executions: &judge::Verdict) {
        for keyed in &left.record.keyed {
            self.take_keyed(keyed);
        }
        let replies = left.record.keyed.iter().flat_map(|keyed| &keyed.answers);
        self.lost_replies = count(replies.filter(|answer| **answer == super::record::Answer::Lost).count());
        for (session, conversation) in &left.record.conversations {
            self.broken_conversations.extend(conversation.broken.as_ref().map(|file| format!("{session}: {file}")));
        }
        self.upstream_mutations = left.record.requests.values().sum();
        self.sessions = count(left.sessions);
        self.readers = count(left.record.views.len());
        self.resyncs = left.record.views.iter().map(|view| count(view.epochs.len().saturating_sub(1))).sum();
        self.executed = executions.executed;
        self.unapproved_executions = count(executions.unapproved.len());
        self.double_executions = count(executions.double.len());
        self.approved_not_executed = count(executions.not_executed.len());
        self.verdict = verdict;
        self.verdict.duplicated_mutations += self.double_executions;
        self.leftover_processes = count(left.leftovers.len());
        self.restless = left.restless;
        let executed = [&executions.unapproved, &executions.double, &executions.not_executed];
        let executed = executed.into_iter().flatten().map(|one| format!("{}: {}", one.marker, one.detail));
        self.verdict.findings.extend(executed);
        self.verdict.findings.extend(left.leftovers.into_iter().map(|process| format!("left: {process}")));
    }

    fn take_keyed(&mut self, keyed: &Keyed) {
        self.actions += 1;
        *self.actions_by.entry(keyed.kind.clone()).or_default() += 1;
        let state = keyed.receipt.as_ref().map_or("none", |receipt| receipt.state.as_str());
        *self.receipts_by.entry(state.to_owned()).or_default() += 1;
        let Some(receipt) = keyed.receipt.as_ref().filter(|_| !matches!(state, "applied" | "rejected" | "none")) else {
            return;
        };
        let stopped = receipt.steps.iter().find(|(_, state)| state != "done");
        let stopped = stopped.map(|(name, state)| format!(", {name} is {state}")).unwrap_or_default();
        self.unresolved.push(Unresolved {
            client_action_id: keyed.key.clone(),
            kind: keyed.kind.clone(),
            state: state.to_owned(),
            cause: format!("{}{stopped}", receipt.code.as_deref().unwrap_or("no code")),
        });
    }
}

impl Findings for Summary {
    /// Nothing twice, nothing lost, nothing told wrongly, nothing left, and nothing ran that nobody approved.
    fn is_sound(&self) -> bool {
        let counts =
            [self.unapproved_executions, self.double_executions, self.approved_not_executed, self.leftover_processes];
        self.verdict.is_sound() && counts.iter().all(|count| *count == 0) && self.restless.is_empty()
    }

    fn json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} rounds in {} s (seed {}): {} kills, {} actions in {} sessions, {} replies lost\n\
             {} duplicated mutations, {} lost receipts, {} false outcomes, {} unresolved\n\
             {} events for {} readers: {} missing, {} duplicated, {} out of order, {} unfounded\n\
             {} executed: {} unapproved, {} twice, {} approved and not executed; {} processes left\n",
            self.rounds,
            self.duration_s,
            self.seed,
            self.kills,
            self.actions,
            self.sessions,
            self.lost_replies,
            self.verdict.duplicated_mutations,
            self.verdict.lost_receipts,
            self.verdict.false_outcomes,
            self.unresolved.len(),
            self.verdict.events_expected,
            self.readers,
            self.verdict.events_missing,
            self.verdict.events_duplicated,
            self.verdict.events_out_of_order,
            self.verdict.events_unfounded,
            self.executed,
            self.unapproved_executions,
            self.double_executions,
            self.approved_not_executed,
            self.leftover_processes,
        );
        for line in self.verdict.findings.iter().chain(&self.restless) {
            text.push_str(&format!("{line}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_makes_a_run_unsound() {
        assert!(Summary::default().is_sound());
        let wrongs: [fn(&mut Summary); 12] = [
            |summary| summary.verdict.duplicated_mutations = 1,
            |summary| summary.verdict.lost_receipts = 1,
            |summary| summary.verdict.false_outcomes = 1,
            |summary| summary.verdict.events_missing = 1,
            |summary| summary.verdict.events_duplicated = 1,
            |summary| summary.verdict.events_out_of_order = 1,
            |summary| summary.verdict.events_unfounded = 1,
            |summary| summary.unapproved_executions = 1,
            |summary| summary.double_executions = 1,
            |summary| summary.approved_not_executed = 1,
            |summary| summary.leftover_processes = 1,
            |summary| summary.restless.push("a session runs on".to_owned()),
        ];
        for (number, wrong) in wrongs.iter().enumerate() {
            let mut summary = Summary::default();
            wrong(&mut summary);
            assert!(!summary.is_sound(), "{number}");
        }
    }

    #[test]
    fn the_object_holds_every_promised_field() {
        let object = Summary::default().json();
        for name in [
            "rounds",
            "kills",
            "actions",
            "duplicated_mutations",
            "lost_receipts",
            "events_expected",
            "events_missing",
            "events_duplicated",
            "events_out_of_order",
            "leftover_processes",
            "seed",
            "unapproved_executions",
        ] {
            assert!(object[name].is_u64(), "{name}");
        }
        assert!(object["unresolved"].is_array());
    }

    #[test]
    fn what_is_left_is_counted_and_named() {
        let left = Left {
            record: super::super::record::Record::default(),
            evidence: judge::Evidence::default(),
            leftovers: vec!["12 tmux".to_owned()],
            sessions: 0,
            restless: Vec::new(),
        };
        let mut summary = Summary::default();
        summary.take(left, Verdict::default(), &judge::Verdict::default());
        assert!(!summary.is_sound());
        assert_eq!(
            (summary.leftover_processes, summary.verdict.findings.as_slice()),
            (1, &["left: 12 tmux".to_owned()][..])
        );
    }
}
