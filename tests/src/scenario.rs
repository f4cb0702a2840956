//! Several scenarios that share one server: each is tried whatever became of the one before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// The scenarios of one test and which of them failed.
#[derive(Debug, Default)]
pub struct Scenarios {
    failed: Vec<String>,
    tried: usize,
}

impl Scenarios {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Plays one. `GATEPOST_SCENARIO` limits a run to those whose name holds its value.
    pub fn play(&mut self, name: &str, scenario: impl FnOnce()) {
        let wanted = std::env::var("GATEPOST_SCENARIO").ok();
        if wanted.is_some_and(|wanted| !name.contains(&wanted)) {
            return;
        }
        let begun = Instant::now();
        eprintln!("--- {name}");
        self.tried += 1;
        let outcome = catch_unwind(AssertUnwindSafe(scenario));
        let word = if outcome.is_ok() { "passed" } else { "FAILED" };
        eprintln!("--- {name}: {word} after {:.1} s", begun.elapsed().as_secs_f64());
        if outcome.is_err() {
            self.failed.push(name.to_owned());
        }
    }

    /// All were played and none failed.
    ///
    /// # Panics
    /// When one failed, or none was played.
    #[track_caller]
    pub fn finish(self) {
        assert!(self.tried > 0, "no scenario was played");
        assert!(self.failed.is_empty(), "{} of {} scenarios failed: {:?}", self.failed.len(), self.tried, self.failed);
    }
}
