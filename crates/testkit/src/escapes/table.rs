//! The table of `docs/containment.md`: which layer stops which attempt, from runs without each.

use super::attempts::ATTEMPTS;
use super::layers::Layer;
use crate::failure::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const BEGIN: &str = "<!-- escapes: made by `escapes --table DIRECTORY`, not by hand -->";
const HEADING: &str = "| attempt | by | what is tried | with all layers | gets through without this one | or only without these | without any |\n\
                       |---|---|---|---|---|---|---|\n";
const END: &str = "<!-- escapes: end -->";

/// What one run showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The layers that were taken away, by their words.
    pub without: Vec<String>,
    /// Every attempt, and whether it got through; nothing where that could not be told.
    pub results: BTreeMap<String, Option<bool>>,
    /// Those of which nothing can be said, with the reason.
    #[serde(default)]
    pub undecided_names: BTreeMap<String, String>,
}

impl Shown {
    /// Whether this attempt got through.
    #[must_use]
    pub fn gets_through(&self, attempt: &str) -> bool {
        self.results.get(attempt).copied().flatten().unwrap_or(false)
    }

    fn came(&self, attempt: &str) -> &'static str {
        match self.results.get(attempt).copied().flatten() {
            Some(true) => "**gets through**",
            Some(false) => "stopped",
            None => "undecided",
        }
    }

    fn layers(&self) -> String {
        self.without.iter().map(|layer| format!("`{layer}`")).collect::<Vec<_>>().join(" and ")
    }
}

/// The table, and below it which layers were taken away alone.
///
/// `full` has every layer, `none` has none, but for an attempt that attacks a layer that one; `each` lacks one each, and
/// `together` several each.
#[must_use]
pub fn table(full: &Shown, none: &Shown, each: &[Shown], together: &[Shown]) -> String {
    let mut text = String::from(HEADING);
    for attempt in ATTEMPTS {
        let lacking = |runs: &[Shown]| {
            let through = runs.iter().filter(|shown| shown.gets_through(attempt.name));
            through.map(Shown::layers).collect::<Vec<_>>().join(", ")
        };
        let alone = lacking(each);
        let several = if alone.is_empty() { lacking(together) } else { String::new() };
        let or_none = |text: String| if text.is_empty() { "–".to_owned() } else { text };
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {} | {} | {} |\n",
            attempt.name,
            attempt.means.as_str(),
            attempt.tries,
            full.came(attempt.name),
            or_none(alone),
            or_none(several),
            none.came(attempt.name)
        ));
    }
    let is_run = |layer: &&Layer| each.iter().any(|shown| shown.without == [layer.as_str()]);
    let words = |layers: Vec<&Layer>| match layers.len() {
        0 => "none".to_owned(),
        _ => layers.iter().map(|layer| format!("`{}`", layer.as_str())).collect::<Vec<_>>().join(", "),
    };
    let (run, not_run): (Vec<&Layer>, Vec<&Layer>) = Layer::ALL.iter().partition(is_run);
    text.push_str(&format!("\nTaken away alone: {}. Not yet: {}.\n", words(run), words(not_run)));
    let undecided = each.iter().filter(|shown| !shown.undecided_names.is_empty());
    for shown in undecided {
        let names: Vec<String> = shown.undecided_names.keys().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("\nUndecided without {}: {}.\n", shown.layers(), names.join(", ")));
    }
    text
}

/// This text of the document with the table in its place.
///
/// # Errors
/// When the document has no place for it.
pub fn put(document: &str, table: &str) -> Outcome<String> {
    let (before, rest) =
        document.split_once(BEGIN).ok_or_else(|| Failure::new("the document has no place for a table"))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| Failure::new("the table's place has no end"))?;
    Ok(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::workspace_root;
    use std::collections::BTreeSet;

    /// The attempts that the document's table has, and the layers that it says were taken away alone or not, both in order.
    fn named_in(document: &str) -> Outcome<(Vec<String>, Vec<Layer>)> {
        let rest = document.split_once(BEGIN).ok_or_else(|| Failure::new("the document has no place for a table"))?.1;
        let rows = rest.split_once(END).ok_or_else(|| Failure::new("the table's place has no end"))?.0;
        let layers_of = |text: &str| -> Outcome<Vec<Layer>> {
            let words = text.split('`').skip(1).step_by(2);
            words.map(|word| Layer::parse(word).ok_or_else(|| Failure::new(format!("{word} is no layer")))).collect()
        };
        let mut names = Vec::new();
        for row in rows.lines().filter(|row| row.starts_with("| `")) {
            let columns: Vec<&str> = row.split(" | ").collect();
            for column in [4, 5] {
                layers_of(columns.get(column).ok_or_else(|| Failure::new(format!("a row is too short: {row}")))?)?;
            }
            names.push(columns[0].trim_start_matches("| ").trim_matches('`').to_owned());
        }
        let taken = rows.lines().find(|line| line.starts_with("Taken away alone: ")).unwrap_or_default();
        let mut layers = layers_of(taken)?;
        layers.sort_unstable();
        Ok((names, layers))
    }

    #[test]
    fn the_documents_table_has_every_attempt_and_layer() {
        let document = std::fs::read_to_string(workspace_root().join("docs/containment.md")).unwrap();
        let names: Vec<&str> = ATTEMPTS.iter().map(|attempt| attempt.name).collect();
        let (attempts, layers) = named_in(&document).unwrap();
        assert_eq!(attempts, names, "make it anew: `escapes --table DIRECTORY`");
        assert_eq!(layers, BTreeSet::from(Layer::ALL).into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_table_is_put_and_read_again() {
        let shown = |taken: &[Layer], through: bool| Shown {
            without: taken.iter().map(|layer| layer.as_str().to_owned()).collect(),
            results: ATTEMPTS.iter().map(|attempt| (attempt.name.to_owned(), Some(through))).collect(),
            undecided_names: BTreeMap::new(),
        };
        let each = [shown(&[Layer::Door], true), shown(&[Layer::Peers], false)];
        let pair = shown(&[Layer::Door, Layer::Peers], true);
        let (full, none) = (shown(&[], false), shown(&Layer::ALL, true));
        let made = table(&full, &none, &each, std::slice::from_ref(&pair));
        assert!(made.contains("| stopped | `door` | – | **gets through** |"), "{made}");
        let mut undecided = each[1].clone();
        undecided.undecided_names.insert("daemon_mem".to_owned(), "late".to_owned());
        let of_two = table(&full, &none, &[undecided], &[pair]);
        assert!(of_two.contains("| stopped | – | `door` and `peer_check` | **gets through** |"), "{of_two}");
        assert!(of_two.contains("\nUndecided without `peer_check`: `daemon_mem`.\n"), "{of_two}");
        assert!(made.contains("\nTaken away alone: `door`, `peer_check`. Not yet: `confined_thread`"), "{made}");
        let document = put(&format!("a\n{BEGIN}\nold\n{END}\nb\n"), &made).unwrap();
        assert!(document.starts_with("a\n") && document.ends_with("\nb\n") && !document.contains("old"));
        assert_eq!(named_in(&document).unwrap().0.len(), ATTEMPTS.len());
        assert!(put("no place", &made).is_err());
        assert!(named_in(&document.replace("`door`", "`window`")).is_err());
    }
}
