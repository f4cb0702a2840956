//! What a run came to.

use super::crowd::Reads;
use super::driver::Done;
use super::growth::Growths;
use crate::chaos::judge::{Verdict, judge};
use crate::chaos::record::{Record, Seen, View};
use crate::soak::judge as executions;
use crate::verdict::Findings;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Findings that are listed; all are counted.
const MAX_LISTED: usize = 50;

/// The whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// In seconds, setting up and judging aside.
    pub duration_s: u64,
    /// Sessions.
    pub sessions: u64,
    /// Readers of all sessions, each with its own cursor; those that read once in the end aside.
    pub readers: u64,
    /// Turns that were begun.
    pub turns: u64,
    /// Operations by kind.
    pub actions_by: BTreeMap<String, u64>,
    /// Receipts by state at the end; `none` where the request was refused.
    pub receipts_by: BTreeMap<String, u64>,
    /// Decisions by a wrong digest, all of them refused.
    pub refused_digests: u64,
    /// Times that a session was left alone for longer than it takes to rest.
    pub left_alone: u64,
    /// Events that the servers appended.
    pub events_appended: u64,
    /// Events that readers took in, the daemon's own included.
    pub deliveries: u64,
    /// Polls.
    pub polls: u64,
    /// Streams that were opened.
    pub streams: u64,
    /// Times that a reader hung up and went on from its cursor.
    pub reconnects: u64,
    /// Reads that gave an error; the reader went on from its cursor.
    pub failed_reads: u64,
    /// What some of them said.
    pub failed_reads_told: Vec<String>,
    /// Times that a reader was told to start over.
    pub resyncs: u64,
    /// What the judge of receipts, requests and events found.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Readers whose events, numbers and the daemon's own ones included, are not those of one who reads all of them in the end.
    pub readers_disagreeing: u64,
    /// Readers to whom a session was said to be gone.
    pub readers_cut_short: u64,
    /// Actions that ran.
    pub executed: u64,
    /// Of these, not approved.
    pub unapproved_executions: u64,
    /// Ran more than once.
    pub double_executions: u64,
    /// Approved ones that did not run and whose end nothing names.
    pub approved_not_executed: u64,
    /// Receipts that do not say whether it was done.
    pub outcomes_unknown: u64,
    /// Turns that did not go as they must.
    pub failed_turns: u64,
    /// Sessions that did not come to rest.
    pub restless: u64,
    /// Whether the daemon's process grows.
    pub growth: Growths,
    /// Whether the daemon ended as it was told to.
    pub stopped_cleanly: bool,
    /// Processes left at the end.
    pub leftover_processes: u64,
    /// Directories left at the end.
    pub leftover_directories: u64,
}

pub(super) fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}

impl Summary {
    /// Lists what is wrong, up to a bound.
    pub(super) fn find(&mut self, words: impl IntoIterator<Item = String>) {
        let left = MAX_LISTED.saturating_sub(self.verdict.findings.len());
        self.verdict.findings.extend(words.into_iter().take(left));
    }

    /// Judges receipts, requests and events. `last` is who read everything in the end, by session.
    pub(super) fn judge(&mut self, record: &Record, last: &BTreeMap<String, View>) {
        self.verdict = judge(record);
        self.verdict.findings.truncate(MAX_LISTED);
        self.readers = count(record.views.len()) - count(last.len());
        self.resyncs = record.views.iter().map(|view| count(view.epochs.len()) - 1).sum();
        self.deliveries = record.views.iter().flat_map(|view| &view.epochs).map(|epoch| count(epoch.len())).sum();
        let all = |view: &View| -> Vec<Seen> { view.epochs.last().cloned().unwrap_or_default() };
        let disagrees = |view: &&View| last.get(&view.session).is_none_or(|last| all(last) != all(view));
        let disagreeing: Vec<&View> = record.views.iter().filter(disagrees).collect();
        self.readers_disagreeing = count(disagreeing.len());
        self.find(disagreeing.iter().map(|view| format!("reader {} of {} disagrees", view.reader, view.session)));
        self.readers_cut_short = count(record.views.iter().filter(|view| view.cut_short).count());
        for keyed in &record.keyed {
            *self.actions_by.entry(keyed.kind.clone()).or_default() += 1;
            let state = keyed.receipt.as_ref().map_or("none", |receipt| receipt.state.as_str());
            *self.receipts_by.entry(state.to_owned()).or_default() += 1;
        }
        self.outcomes_unknown = self.receipts_by.get("outcome_unknown").copied().unwrap_or(0);
    }

    /// Takes in what ran against what was approved.
    pub(super) fn add_executions(&mut self, verdict: &executions::Verdict) {
        self.executed = verdict.executed;
        self.unapproved_executions = count(verdict.unapproved.len());
        self.double_executions = count(verdict.double.len());
        self.approved_not_executed = count(verdict.not_executed.len());
        let all = [&verdict.unapproved, &verdict.double, &verdict.not_executed].into_iter().flatten();
        self.find(all.map(|one| format!("{}: {}", one.marker, one.detail)));
    }

    /// Takes in what the clients did, their operations aside.
    pub(super) fn add_clients(&mut self, done: &[Done], reads: Reads) {
        for one in done {
            self.turns += one.turns;
            self.refused_digests += one.refused_digests;
            self.left_alone += one.left_alone;
            self.failed_turns += count(one.failed.len());
            self.find(one.failed.iter().cloned());
        }
        (self.polls, self.streams, self.failed_reads) = (reads.polls, reads.streams, reads.failed);
        self.failed_reads_told = reads.told;
    }
}

impl Findings for Summary {
    /// Nothing lost, twice or out of order, nothing ran unapproved, every receipt final, nothing grows, nothing is left.
    fn is_sound(&self) -> bool {
        let counts = [
            self.readers_disagreeing,
            self.readers_cut_short,
            self.unapproved_executions,
            self.double_executions,
            self.approved_not_executed,
            self.outcomes_unknown,
            self.failed_turns,
            self.restless,
            self.leftover_processes,
            self.leftover_directories,
        ];
        let zero = counts.iter().all(|count| *count == 0);
        zero && self.verdict.is_sound() && self.growth.is_flat() && self.stopped_cleanly
    }

    fn json(&self) -> Value {
        let mut object = serde_json::to_value(self).unwrap_or_default();
        object["sound"] = Value::Bool(self.is_sound());
        object
    }

    fn text(&self) -> String {
        let growth = |name: &str, of: &super::growth::Growth| {
            let (first, last, slope, bound) = (of.first_quarter, of.last_quarter, of.slope_per_hour, of.bound);
            let word = if of.flat { "flat" } else { "GROWS" };
            format!("{name:22} {first:>9.1} -> {last:>9.1}  {slope:>+8.1} an hour, {word} (up to +{bound:.1})\n")
        };
        let verdict = &self.verdict;
        let mut text = format!(
            "{} s, seed {}: {} sessions, {} readers, {} turns, {} events appended, {} taken in\n\
             {} polls, {} streams, {} reconnects, {} failed reads, {} resyncs\n\
             of {} expected: {} missing, {} duplicated, {} out of order, {} unfounded; {} readers disagree\n\
             {} executed: {} unapproved, {} twice, {} approved and not executed; {} wrong digests refused\n\
             {} lost receipts, {} false outcomes, {} unknown outcomes, {} duplicated mutations, {} failed turns\n\
             {} processes and {} directories left\n",
            self.duration_s,
            self.seed,
            self.sessions,
            self.readers,
            self.turns,
            self.events_appended,
            self.deliveries,
            self.polls,
            self.streams,
            self.reconnects,
            self.failed_reads,
            self.resyncs,
            verdict.events_expected,
            verdict.events_missing,
            verdict.events_duplicated,
            verdict.events_out_of_order,
            verdict.events_unfounded,
            self.readers_disagreeing,
            self.executed,
            self.unapproved_executions,
            self.double_executions,
            self.approved_not_executed,
            self.refused_digests,
            verdict.lost_receipts,
            verdict.false_outcomes,
            self.outcomes_unknown,
            verdict.duplicated_mutations,
            self.failed_turns,
            self.leftover_processes,
            self.leftover_directories,
        );
        text.push_str(&growth("memory, MB", &self.growth.memory_mb));
        text.push_str(&growth("memory, only reads, MB", &self.growth.memory_reading_mb));
        text.push_str(&growth("descriptors", &self.growth.descriptors));
        text.push_str(&growth("threads", &self.growth.threads));
        text.push_str(&format!("{:.0} bytes an event\n", self.growth.bytes_per_event));
        for line in &verdict.findings {
            text.push_str(&format!("{line}\n"));
        }
        text
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
