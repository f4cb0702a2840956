//! What a run came to.

use super::{Blow, Load};
use crate::verdict::Findings;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// One scenario.
#[derive(Debug, Clone)]
pub struct Row {
    /// `stand-in` or `server`.
    pub tree: &'static str,
    /// How the tree is ended: `scope`, `cgroup` or `walk`.
    pub means: String,
    /// What happened.
    pub blow: &'static str,
    /// What the tree did meanwhile.
    pub load: &'static str,
    /// How often it was tried.
    pub rounds: u32,
    /// Processes that were still there, over all rounds.
    pub left_over: usize,
    /// Bystanders that did not live through it.
    pub bystanders_hurt: usize,
    /// From the blow to the last process being gone, in each round.
    pub took: Vec<Duration>,
    /// Most processes that a tree had when it was hit.
    pub most_processes: usize,
}

impl Row {
    /// No round yet.
    pub(super) fn new(tree: &'static str, means: &str, blow: Blow, load: Load) -> Self {
        Self {
            tree,
            means: means.to_owned(),
            blow: blow.as_str(),
            load: load.as_str(),
            rounds: 0,
            left_over: 0,
            bystanders_hurt: 0,
            took: Vec::new(),
            most_processes: 0,
        }
    }

    /// The line that tells of it when it is through; `what` was tried.
    pub(super) fn line(&self, what: &str) -> String {
        let [least, median, most] = self.times_ms();
        format!("{what}, {}, {}: {} left, {least} / {median} / {most} ms", self.blow, self.load, self.left_over)
    }

    /// Shortest, median and longest time, in milliseconds.
    #[must_use]
    pub fn times_ms(&self) -> [f64; 3] {
        let mut took: Vec<f64> = self.took.iter().map(|took| took.as_secs_f64() * 1000.0).collect();
        took.sort_by(f64::total_cmp);
        let at = |index: usize| took.get(index).copied().unwrap_or_default();
        [at(0), at(took.len() / 2), at(took.len().saturating_sub(1))].map(|time| (time * 10.0).round() / 10.0)
    }
}

/// All scenarios.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// In the order of their trying.
    pub rows: Vec<Row>,
}

impl Findings for Summary {
    /// Whether nothing was left and nobody hurt, in at least one round.
    fn is_sound(&self) -> bool {
        !self.rows.is_empty()
            && self.rows.iter().all(|row| row.rounds > 0 && row.left_over == 0 && row.bystanders_hurt == 0)
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let [least, median, most] = row.times_ms();
                json!({
                    "tree": row.tree, "means": row.means, "blow": row.blow, "load": row.load, "rounds": row.rounds,
                    "left_over": row.left_over, "bystanders_hurt": row.bystanders_hurt,
                    "most_processes": row.most_processes, "took_ms": {"min": least, "median": median, "max": most},
                })
            })
            .collect();
        let sum = |count: fn(&Row) -> usize| self.rows.iter().map(count).sum::<usize>();
        json!({
            "rounds": self.rows.iter().map(|row| row.rounds).sum::<u32>(), "left_over": sum(|row| row.left_over),
            "bystanders_hurt": sum(|row| row.bystanders_hurt), "scenarios": rows,
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let [least, median, most] = row.times_ms();
            // Writing to a text does not fail.
            writeln!(
                text,
                "{:8} {:6} {:28} {:9} {:3} rounds, {} left, {} bystanders hurt, {least} / {median} / {most} ms",
                row.tree, row.means, row.blow, row.load, row.rounds, row.left_over, row.bystanders_hurt
            )
            .ok();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            tree: "stand-in",
            means: "scope".to_owned(),
            blow: "stop",
            load: "quiet",
            rounds: 3,
            left_over: 0,
            bystanders_hurt: 0,
            took: [30, 10, 20].map(Duration::from_millis).to_vec(),
            most_processes: 4,
        }
    }

    #[test]
    fn anything_left_or_hurt_or_not_tried_is_unsound() {
        let with = |change: fn(&mut Row)| {
            let mut changed = row();
            change(&mut changed);
            Summary { rows: vec![row(), changed] }.is_sound()
        };
        assert!(with(|_row| {}));
        assert!(!with(|row| row.left_over = 1));
        assert!(!with(|row| row.bystanders_hurt = 1));
        assert!(!with(|row| row.rounds = 0));
        assert!(!Summary::default().is_sound());
    }

    #[test]
    fn times_are_told_in_order() {
        assert_eq!(row().times_ms(), [10.0, 20.0, 30.0]);
        let summary = Summary { rows: vec![row()] };
        assert_eq!(summary.json()["scenarios"][0]["took_ms"]["median"], 20.0);
        assert!(summary.text().contains("10 / 20 / 30 ms"), "{}", summary.text());
    }
}
