//! The verdict on a run: what happened twice, what was lost, and what readers missed. Pure.

use super::record::{Answer, Conversation, Keyed, Receipt, Record, View, is_final};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Steps and the kind of request that carries each out.
const STEPS: [(&str, &str); 10] = [
    ("send_message", "message"),
    ("accept", "decision"),
    ("reject", "decision"),
    ("navigate", "navigate"),
    ("fork", "fork"),
    ("set_title", "set_title"),
    ("switch_profile", "switch_profile"),
    ("run", "run"),
    ("condense", "condense"),
    ("interrupt", "interrupt"),
];

/// Counts, and a sentence for each thing that is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What a key did twice.
    pub duplicated_mutations: u64,
    /// Receipts that were told of, or whose effect stands on a server, and that are gone or not final.
    pub lost_receipts: u64,
    /// Receipts that say something else than what the servers hold.
    pub false_outcomes: u64,
    /// Events that readers had to get, all readers together.
    pub events_expected: u64,
    /// Of these, never got.
    pub events_missing: u64,
    /// Got twice in one epoch.
    pub events_duplicated: u64,
    /// Got after one that the server appended later, and not numbered late for that.
    pub events_out_of_order: u64,
    /// Events of a server that stand in no log of it.
    pub events_unfounded: u64,
    /// A sentence for each thing that is wrong.
    pub findings: Vec<String>,
}

/// Judges.
pub(crate) fn judge(record: &Record) -> Verdict {
    let mut verdict = Verdict::default();
    for keyed in &record.keyed {
        verdict.judge_receipt(keyed, record);
    }
    verdict.judge_requests(record);
    for view in &record.views {
        verdict.judge_view(view, record);
    }
    verdict
}

/// The kind of request that carries a step of this name out, if one does.
pub(crate) fn kind_of(step: &str) -> Option<&'static str> {
    STEPS.iter().find(|(name, _)| *name == step).map(|(_, kind)| *kind)
}

fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}

/// How often what this key asked for stands on the servers, where that can be told by the key itself.
fn effects(keyed: &Keyed, record: &Record) -> Option<usize> {
    match keyed.kind.as_str() {
        "prompt" => {
            // A fork holds the same events as its parent.
            let messages = record.conversations.values().flat_map(|conversation| &conversation.messages);
            let ids: BTreeSet<&String> =
                messages.filter(|(_, text)| text.contains(&keyed.key)).map(|(event_id, _)| event_id).collect();
            Some(ids.len())
        }
        "fork" => {
            let of_key = |conversation: &&Conversation| conversation.title.as_deref() == Some(keyed.key.as_str());
            Some(record.conversations.values().filter(of_key).count())
        }
        _ => None,
    }
}

impl Verdict {
    fn find(&mut self, words: String) {
        self.findings.push(words);
    }

    fn judge_receipt(&mut self, keyed: &Keyed, record: &Record) {
        let of = format!("{} ({})", keyed.key, keyed.kind);
        let told: Vec<&str> = keyed
            .answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::Receipt(state) => Some(state.as_str()),
                Answer::Refused(_) | Answer::Lost => None,
            })
            .collect();
        let effects = effects(keyed, record);
        if effects.is_some_and(|effects| effects > 1) {
            self.duplicated_mutations += count(effects.unwrap_or(1) - 1);
            self.find(format!("{of} stands {effects:?} times on the server"));
        }
        let Some(receipt) = &keyed.receipt else {
            if !told.is_empty() || effects.is_some_and(|effects| effects > 0) {
                self.lost_receipts += 1;
                self.find(format!("{of} has no receipt: told {told:?}, effects {effects:?}"));
            }
            return;
        };
        let first_final = told.iter().find(|state| is_final(state));
        if !receipt.is_final() || first_final.is_some_and(|state| *state != receipt.state) {
            self.lost_receipts += 1;
            self.find(format!("{of} is {} in the end, and was told as {told:?}", receipt.state));
        }
        if effects.is_some_and(|effects| is_false(receipt, effects)) {
            self.false_outcomes += 1;
            self.find(format!("{of} is {} ({:?}) with {effects:?} effects", receipt.state, receipt.code));
        }
    }

    /// The server's own log names no request of a session more often than receipts have a step for it.
    fn judge_requests(&mut self, record: &Record) {
        let mut allowed: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (session, closes) in &record.closes {
            *allowed.entry((session, "interrupt")).or_default() += closes;
        }
        for keyed in &record.keyed {
            for (name, state) in keyed.receipt.iter().flat_map(|receipt| &receipt.steps) {
                let Some(kind) = kind_of(name) else { continue };
                if state != "not_sent" {
                    *allowed.entry((&keyed.session, kind)).or_default() += 1;
                }
            }
        }
        for ((session, kind), seen) in &record.requests {
            let allowed = allowed.get(&(session.as_str(), kind.as_str())).copied().unwrap_or(0);
            if *seen > allowed {
                self.duplicated_mutations += seen - allowed;
                self.find(format!("session {session}: {seen} requests {kind}, and receipts have {allowed} steps"));
            }
        }
    }

    fn judge_view(&mut self, view: &View, record: &Record) {
        let conversation = record.conversations.get(&view.session);
        let nothing = Conversation::default();
        let log = &conversation.unwrap_or(&nothing).events;
        let place: BTreeMap<&str, usize> = log.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
        let of = format!("reader {} of {}", view.reader, view.session);
        for epoch in &view.epochs {
            let mut known = BTreeSet::new();
            let mut expected_seq = 1;
            for seen in epoch {
                if !known.insert(&seen.event_id) {
                    self.events_duplicated += 1;
                    self.find(format!("{of} got {} again at {}", seen.event_id, seen.seq));
                } else if seen.seq > expected_seq {
                    self.events_missing += seen.seq - expected_seq;
                    self.find(format!("{of} got {} after {}", seen.seq, expected_seq - 1));
                }
                expected_seq = expected_seq.max(seen.seq + 1);
            }
        }
        // An epoch that was given up said itself that it is not the server's order.
        let last: &[_] = view.epochs.last().map_or(&[], Vec::as_slice);
        let is_late = |id: &str| record.late.contains(&(view.session.clone(), id.to_owned()));
        // What the stream left out gets the next number when a read of the log shows it: behind its place, never before it, and
        // in the log's order among its like.
        let (mut reached, mut reached_late, mut got) = (None, None, BTreeSet::new());
        for seen in last.iter().filter(|seen| !seen.own) {
            let Some(at) = place.get(seen.event_id.as_str()).copied() else {
                self.events_unfounded += 1;
                self.find(format!("{of} got {}, which no log of the server holds", seen.event_id));
                continue;
            };
            let late = is_late(&seen.event_id);
            let bound = if late { reached_late } else { reached };
            if got.insert(at) && bound.is_some_and(|bound| at < bound) {
                self.events_out_of_order += 1;
                self.find(format!("{of} got {} too late", seen.event_id));
            }
            reached = reached.max(Some(at));
            if late {
                reached_late = reached_late.max(Some(at));
            }
        }
        // What the server lost itself nobody can read.
        let ends_early = view.cut_short || conversation.is_some_and(|conversation| conversation.broken.is_some());
        let upto = if ends_early { reached.map_or(0, |at| at + 1) } else { log.len() };
        self.events_expected += count(upto);
        let missing: Vec<&String> = (0..upto).filter(|at| !got.contains(at)).filter_map(|at| log.get(at)).collect();
        if !missing.is_empty() {
            self.events_missing += count(missing.len());
            self.find(format!("{of} never got {missing:?}"));
        }
    }

    /// Whether anything was lost, done twice or told wrongly.
    pub(crate) fn is_sound(&self) -> bool {
        let counts = [
            self.duplicated_mutations,
            self.lost_receipts,
            self.false_outcomes,
            self.events_missing,
            self.events_duplicated,
            self.events_out_of_order,
            self.events_unfounded,
        ];
        counts.iter().all(|count| *count == 0)
    }
}

/// Whether a receipt tells something else than so many effects.
fn is_false(receipt: &Receipt, effects: usize) -> bool {
    match receipt.state.as_str() {
        "applied" => effects == 0,
        "rejected" => effects > 0,
        _ => false,
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
