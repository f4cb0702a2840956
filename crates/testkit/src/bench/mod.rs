//! How fast and how light: each figure against a floor that is taken in the same run, as far as there is one.
//!
//! What the product adds is measured where it shows: its own time on the fake server, which answers at once, and what a person
//! waits for on the real one with the scripted model. Floor and figure take turns, so that a busy machine slows both. Counts
//! and ratios are worth comparing between machines; milliseconds are not.

mod delivery;
mod figure;
mod idle;
mod latency;
mod line;
mod listen;
mod memory;
mod poll;
pub(crate) mod process;
mod recovery;
mod requests;
mod size;
mod snapshot;
mod spare;
mod stage;

pub(crate) use figure::median;
pub use figure::{Figure, Summary};

use crate::failure::{Failure, Outcome};
use std::time::Instant;

/// What to measure.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// These parts only; empty is all of them.
    pub only: Vec<String>,
    /// Small sizes and few tries: whether everything can be measured, not how fast it is.
    pub quick: bool,
}

impl Options {
    /// The size of a whole run, or that of a short one.
    fn size<T>(&self, whole: T, quick: T) -> T {
        if self.quick { quick } else { whole }
    }
}

/// Where progress goes, a line each.
type Tell<'a> = &'a (dyn Fn(&str) + Sync);
/// Takes figures that belong together.
type Part = fn(&Options, Tell<'_>) -> Outcome<Vec<Figure>>;

/// Every part by its name.
const PARTS: [(&str, Part); 11] = [
    ("size", size::measure),
    ("listen", listen::measure),
    ("requests", requests::measure),
    ("snapshot", snapshot::measure),
    ("poll", poll::measure),
    ("delivery", delivery::measure),
    ("idle", idle::measure),
    ("memory", memory::measure),
    ("latency", latency::measure),
    ("recovery", recovery::measure),
    ("spare", spare::measure),
];

/// The names of the parts.
#[must_use]
pub fn parts() -> [&'static str; PARTS.len()] {
    PARTS.map(|(name, _)| name)
}

/// Takes the figures.
///
/// # Errors
/// When a part is not known, or cannot be measured.
pub fn run(options: &Options, tell: Tell<'_>) -> Outcome<Summary> {
    let begun = Instant::now();
    let tell = |line: &str| tell(&format!("{:>7.1} s  {line}", begun.elapsed().as_secs_f64()));
    if let Some(unknown) = options.only.iter().find(|name| !parts().contains(&name.as_str())) {
        return Err(Failure::new(format!("there is no part {unknown}; there are: {}", parts().join(", "))));
    }
    let mut summary = Summary { quick: options.quick, ..Summary::default() };
    for (name, measure) in PARTS {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == name) {
            continue;
        }
        tell(name);
        let figures = measure(options, &tell).map_err(|why| Failure::new(format!("{name}: {why}")))?;
        for figure in &figures {
            tell(&format!("  {} {:.3} {} (bound {})", figure.name, figure.value, figure.unit, figure.bound));
        }
        summary.take(figures);
    }
    summary.duration_s = begun.elapsed().as_secs_f64();
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_part_is_refused_before_anything_is_measured() {
        let options = Options { only: vec!["nothing".to_owned()], quick: true };
        let why = run(&options, &|_| panic!("something is measured")).unwrap_err();
        assert!(why.to_string().contains("recovery"), "{why}");
    }
}
