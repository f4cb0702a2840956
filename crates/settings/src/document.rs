//! Reading typed values out of a parsed file, leaving a mistake for each that is not what it must be.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::nearest::nearest;
use crate::report::Report;

/// Every section and key there is.
const KNOWN: [(&str, &[&str]); 7] = [
    (
        "agent_server",
        &[
            "version",
            "executable",
            "python",
            "start_timeout_s",
            "standby",
            "max_servers",
            "idle_stop_min",
            "probe_interval_s",
        ],
    ),
    ("workspaces", &["roots", "git_dirs"]),
    ("model", &["name", "base_url", "api_key", "choices", "tools", "profile_id"]),
    ("approval", &["expires_min", "reviewed_content"]),
    ("confinement", &["level", "read", "write"]),
    ("events", &["retention_days", "rest_after_s", "rest_read_s"]),
    ("log", &["format", "level"]),
];

/// Longest unknown name that is repeated, in characters.
const MAX_SHOWN_CHARS: usize = 32;

/// A value and where it stands.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// One section's values by key, known keys only.
pub(crate) struct Section<'a> {
    name: &'static str,
    span: Option<Range<usize>>,
    values: BTreeMap<&'static str, &'a Value<'a>>,
}

/// The file's sections by name.
pub(crate) struct Sections<'a>(BTreeMap<&'static str, Section<'a>>);

impl<'a> Sections<'a> {
    /// The section; an empty one when the file has none.
    pub(crate) fn take(&mut self, name: &'static str) -> Section<'a> {
        self.0.remove(name).unwrap_or(Section { name, span: None, values: BTreeMap::new() })
    }
}

/// Sorts the file into its known sections.
pub(crate) fn sections<'a>(file: &'a DeTable<'a>, report: &mut Report<'_>) -> Sections<'a> {
    let mut found = BTreeMap::new();
    for (key, value) in file {
        let written: &str = key.get_ref();
        let Some((name, keys)) = KNOWN.iter().find(|(name, _)| *name == written) else {
            report.add(shown(written), Some(key.span()), unknown_section(written));
            continue;
        };
        let Some(table) = value.get_ref().as_table() else {
            report.add(*name, Some(key.span()), format!("must be a section, written [{name}]"));
            continue;
        };
        let section = Section { name, span: Some(key.span()), values: known_values(name, keys, table, report) };
        found.insert(*name, section);
    }
    Sections(found)
}

fn known_values<'a>(
    section: &str,
    keys: &'static [&'static str],
    table: &'a DeTable<'a>,
    report: &mut Report<'_>,
) -> BTreeMap<&'static str, &'a Value<'a>> {
    let mut values = BTreeMap::new();
    for (key, value) in table {
        let written: &str = key.get_ref();
        match keys.iter().find(|known| **known == written) {
            Some(known) => {
                values.insert(*known, value);
            }
            None => {
                let path = format!("{section}.{}", shown(written));
                report.add(path, Some(key.span()), unknown_key(written, keys));
            }
        }
    }
    values
}

fn unknown_section(written: &str) -> String {
    if let Some((home, _)) = KNOWN.iter().find(|(_, keys)| keys.contains(&written)) {
        return format!("unknown here; it belongs in [{home}]");
    }
    let names = KNOWN.map(|(name, _)| name);
    match nearest(written, names) {
        Some(name) => format!("unknown section; did you mean [{name}]?"),
        None => format!("unknown section; there are {}", names.join(", ")),
    }
}

fn unknown_key(written: &str, keys: &[&'static str]) -> String {
    if let Some(name) = nearest(written, keys.iter().copied()) {
        return format!("unknown key; did you mean {name}?");
    }
    match KNOWN.iter().find(|(_, others)| others.contains(&written)) {
        Some((home, _)) => format!("unknown here; it belongs in [{home}]"),
        None => format!("unknown key; there are {}", keys.join(", ")),
    }
}

/// A name as written where it can be a slip of the hand: no name that there is has a digit or is longer. Anything else may be
/// a secret that went to the wrong place; its line and column tell which is meant.
fn shown(written: &str) -> &str {
    let is_name = (1..=MAX_SHOWN_CHARS).contains(&written.len())
        && written.bytes().all(|byte| byte.is_ascii_alphabetic() || b"_-".contains(&byte));
    if is_name { written } else { "…" }
}

impl<'a> Section<'a> {
    /// Whether the file has the section.
    pub(crate) fn is_present(&self) -> bool {
        self.span.is_some()
    }

    /// Whether the file sets the key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The value as it was written.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Value<'a>> {
        self.values.get(key).copied()
    }

    /// Path of a key.
    pub(crate) fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.name)
    }

    /// Reports a mistake at a key, or at the section's head where the key is not set.
    pub(crate) fn mistake(&self, report: &mut Report<'_>, key: &str, problem: impl Into<String>) {
        let span = self.value(key).map(Spanned::span).or_else(|| self.span.clone());
        report.add(self.path(key), span, problem);
    }

    /// A whole number within bounds.
    pub(crate) fn number(&self, report: &mut Report<'_>, key: &str, bounds: RangeInclusive<u64>, default: u64) -> u64 {
        let Some(value) = self.value(key) else { return default };
        let wanted = format!("a whole number from {} to {}", bounds.start(), bounds.end());
        let Some(number) = value.get_ref().as_integer() else {
            self.mistake(report, key, wrong_type(&wanted, value));
            return default;
        };
        match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) if bounds.contains(&number) => number,
            Ok(_) | Err(_) => {
                self.mistake(report, key, format!("must be {wanted}"));
                default
            }
        }
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self, report: &mut Report<'_>, key: &str, default: bool) -> bool {
        let Some(value) = self.value(key) else { return default };
        value.get_ref().as_bool().unwrap_or_else(|| {
            self.mistake(report, key, wrong_type("true or false", value));
            default
        })
    }

    /// A text that `parse` accepts; its error says what it must be.
    pub(crate) fn text<T>(
        &self,
        report: &mut Report<'_>,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        text_of(report, &self.path(key), self.value(key)?, parse)
    }

    /// A list of texts that `parse` accepts; `None` when the key is not set. Each mistake names its place from 0.
    pub(crate) fn texts<T>(
        &self,
        report: &mut Report<'_>,
        key: &str,
        max_items: usize,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let value = self.value(key)?;
        let Some(items) = value.get_ref().as_array() else {
            self.mistake(report, key, wrong_type("a list of texts", value));
            return None;
        };
        if items.len() > max_items {
            self.mistake(report, key, format!("must have at most {max_items} entries"));
        }
        let mut texts = Vec::new();
        let mut written = Vec::new();
        for (index, item) in items.iter().take(max_items).enumerate() {
            let path = format!("{}[{index}]", self.path(key));
            if item.get_ref().as_str().is_some_and(|text| written.contains(&text)) {
                report.add(path, Some(item.span()), "stands in the list twice; remove one");
                continue;
            }
            written.extend(item.get_ref().as_str());
            texts.extend(text_of(report, &path, item, &parse));
        }
        Some(texts)
    }
}

fn text_of<T>(
    report: &mut Report<'_>,
    path: &str,
    value: &Value<'_>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    let parsed = match value.get_ref().as_str() {
        Some(text) => parse(text).map_err(|wanted| format!("must be {wanted}")),
        None => Err(wrong_type("a text in quotes", value)),
    };
    parsed.map_err(|problem| report.add(path, Some(value.span()), problem)).ok()
}

/// What was wanted and what kind of value stands there; never the value, which may be a key in the wrong place.
pub(crate) fn wrong_type(wanted: &str, value: &Value<'_>) -> String {
    let found = match value.get_ref() {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    format!("must be {wanted}, not {found}")
}
