//! What is measured and how far it may go.

use crate::verdict::Findings;
use serde::Serialize;
use serde_json::{Map, Value};

/// One figure. Smaller is better; it is within its bound when it is not above it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// What was found.
    pub value: f64,
    /// What the value and the bound are counted in: `requests`, `ratio`, `s`, `ms`, `MB`, `percent` or `per_s`.
    pub unit: &'static str,
    /// The most that the value may be.
    pub bound: f64,
    /// Whether it is not more.
    pub within: bool,
    /// What it was made of: the floor, the sizes, the tries. Units stand in the names.
    pub made_of: Map<String, Value>,
}

impl Figure {
    /// A figure and what it was made of, which is an object.
    #[must_use]
    pub fn new(name: &'static str, value: f64, unit: &'static str, bound: f64, made_of: &Value) -> Self {
        let made_of = made_of.as_object().cloned().unwrap_or_default();
        // What could not be made a number is no success.
        Self { name, value, unit, bound, within: value <= bound, made_of }
    }
}

/// Every figure of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// In the order in which they were taken.
    pub figures: Vec<Figure>,
    /// Whether each is within its bound.
    pub within_bounds: bool,
    /// Whether it was a short run: its figures say that everything works and little about how fast.
    pub quick: bool,
    /// In seconds.
    pub duration_s: f64,
}

impl Summary {
    /// The figure of that name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    pub(super) fn take(&mut self, figures: Vec<Figure>) {
        self.figures.extend(figures);
        self.within_bounds = self.figures.iter().all(|figure| figure.within);
    }
}

impl Findings for Summary {
    fn is_sound(&self) -> bool {
        self.within_bounds
    }

    fn json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn text(&self) -> String {
        let line = |figure: &Figure| {
            let verdict = if figure.within { "within" } else { "OVER" };
            let (name, value, unit, bound) = (figure.name, figure.value, figure.unit, figure.bound);
            format!("{name:32} {value:>10.3} {unit:9} {verdict} {bound}\n")
        };
        self.figures.iter().map(line).collect()
    }
}

/// The middle of what was measured; not a number when nothing was.
#[must_use]
pub(crate) fn median(measured: &[f64]) -> f64 {
    percentile(measured, 50)
}

/// The value that so many of a hundred do not exceed.
#[must_use]
pub(super) fn percentile(measured: &[f64], percent: usize) -> f64 {
    let mut sorted = measured.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_figure_over_its_bound_or_unknown_is_enough() {
        let figure = |value| Figure::new("one", value, "ms", 2.0, &json!({}));
        let within = |values: &[f64]| {
            let mut summary = Summary::default();
            summary.take(values.iter().map(|value| figure(*value)).collect());
            summary.is_sound()
        };
        assert!(within(&[1.0, 2.0]));
        assert!(!within(&[1.0, 2.1]) && !within(&[f64::NAN, 1.0]));
    }

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let measured: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!((median(&measured), percentile(&measured, 99), percentile(&measured, 100)), (100.0, 198.0, 200.0));
        assert_eq!(median(&[3.0]), 3.0);
        assert!(median(&[]).is_nan());
    }
}
