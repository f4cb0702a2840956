//! What a run came to.

use super::attempts::{ATTEMPTS, NOT_STOPPED, UNAVAILABLE};
use super::came::Came;
use super::layers::Layer;
use super::play::Results;
use crate::development::Report;
use crate::verdict::Findings;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The layers that were taken away.
    pub taken: Vec<Layer>,
    /// What came of every attempt that was asked for.
    pub results: Results,
    /// What attempts said of themselves.
    pub said: BTreeMap<&'static str, String>,
    /// The level that the daemon proved and told.
    pub level: String,
    /// What came of the development tasks; `None` when they were not tried.
    pub developed: Option<Report>,
    /// Processes that were left when the daemon had stopped.
    pub leftover_processes: usize,
    /// Seconds.
    pub duration_s: u64,
}

impl Summary {
    /// The attempts that got through, in the order of the table.
    #[must_use]
    pub fn escaped(&self) -> Vec<&'static str> {
        let names = ATTEMPTS.iter().map(|attempt| attempt.name);
        names.filter(|name| self.results.get(name) == Some(&Came::GotThrough)).collect()
    }

    /// The attempts of which nothing can be said, with the reason.
    #[must_use]
    pub fn undecided(&self) -> BTreeMap<&'static str, &str> {
        let undecided = self.results.iter().filter_map(|(name, came)| match came {
            Came::Undecided(why) => Some((*name, why.as_str())),
            Came::GotThrough | Came::Stopped | Came::NoTarget => None,
        });
        undecided.collect()
    }

    /// How many were stopped.
    fn blocked(&self) -> usize {
        self.results.values().filter(|came| **came == Came::Stopped).count()
    }

    /// The development tasks that failed.
    fn failed(&self) -> Vec<&String> {
        self.developed.iter().flat_map(|report| report.failed.keys()).collect()
    }

    /// The development tasks that were tried.
    fn tried(&self) -> usize {
        self.developed.as_ref().map_or(0, |report| report.passed.len() + report.failed.len())
    }
}

impl Findings for Summary {
    /// Whether every attempt was stopped, all development works, and the level is the highest.
    fn is_sound(&self) -> bool {
        self.blocked() == self.results.len() && self.failed().is_empty() && self.level == "full"
    }

    fn json(&self) -> Value {
        let (escaped, undecided) = (self.escaped(), self.undecided());
        let no_target: Vec<_> =
            self.results.iter().filter(|(_, came)| **came == Came::NoTarget).map(|(name, _)| *name).collect();
        let named = |list: &[(&str, &str)]| -> Vec<Value> {
            list.iter().map(|(name, reason)| json!({"name": name, "reason": reason})).collect()
        };
        json!({
            "without": self.taken.iter().map(|layer| layer.as_str()).collect::<Vec<_>>(),
            "attempts": self.results.len(),
            "blocked": self.blocked(),
            "escaped": escaped.len(),
            "escaped_names": escaped,
            "undecided": undecided.len(),
            "undecided_names": undecided,
            "without_target": no_target,
            "unavailable": named(UNAVAILABLE),
            "not_stopped": named(NOT_STOPPED),
            "development_tasks": self.tried(),
            "development_tasks_failed": self.failed().len(),
            "development_tasks_failed_names": self.failed(),
            "development_tasks_unavailable": self.developed.as_ref().map(|report| &report.unavailable),
            "level": self.level,
            "leftover_processes": self.leftover_processes,
            "duration_s": self.duration_s,
            "results": self.results.iter().map(|(name, came)| (*name, came.json())).collect::<BTreeMap<_, _>>(),
            "said": self.said,
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for attempt in ATTEMPTS {
            let Some(came) = self.results.get(attempt.name).map(Came::as_str) else { continue };
            text.push_str(&format!(
                "{:<28} {:<7} {came:<12} {}\n",
                attempt.name,
                attempt.means.as_str(),
                attempt.tries
            ));
        }
        let (escaped, attempts, undecided) = (self.escaped().len(), self.results.len(), self.undecided());
        text.push_str(&format!(
            "level {}, {attempts} attempts, {escaped} got through, undecided {undecided:?}; {} development tasks, failed {:?}\n",
            self.level,
            self.tried(),
            self.failed()
        ));
        text
    }
}
