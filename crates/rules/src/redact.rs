//! Keeping secrets in: known ones by value, unknown ones by the name of the field that holds them.

mod forms;
mod names;

use serde_json::{Map, Value};

use crate::display::free_name;
use forms::written_forms;
pub use names::is_secret_name;

/// Shorter secrets are not searched for by value: they would match everywhere.
pub const MIN_SECRET_BYTES: usize = 8;

/// Stands where a field's name says that its value is secret.
pub const REDACTED: &str = "«redacted»";

/// JSON inside strings inside JSON is opened this many times.
const MAX_NESTING: usize = 8;

/// Replaces secrets. Holds them, so it is never printed.
#[derive(Clone)]
pub struct Redactor {
    /// Longest first, so that a secret within a secret takes the longer one's name.
    patterns: Vec<Pattern>,
}

#[derive(Clone)]
struct Pattern {
    mark: String,
    text: String,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Redactor").field("patterns", &self.patterns.len()).finish()
    }
}

impl Redactor {
    /// For these `(name, value)` pairs. A value of fewer than [`MIN_SECRET_BYTES`] is ignored.
    pub fn new(secrets: Vec<(String, String)>) -> Self {
        let mut patterns: Vec<Pattern> = secrets
            .iter()
            .filter(|(_, value)| value.len() >= MIN_SECRET_BYTES)
            .flat_map(|(name, value)| {
                let mark = format!("«secret:{name}»");
                written_forms(value).into_iter().map(move |text| Pattern { mark: mark.clone(), text })
            })
            .collect();
        patterns.sort_by(|left, right| right.text.len().cmp(&left.text.len()).then_with(|| left.text.cmp(&right.text)));
        Self { patterns }
    }

    /// Replaces every known secret by `«secret:name»`, in any form it is commonly written in. Returns whether there was one.
    pub fn redact_text(&self, text: &str) -> (String, bool) {
        let spans = self.spans(text);
        if spans.is_empty() {
            return (text.to_owned(), false);
        }
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for span in spans {
            out.push_str(&text[done..span.start]);
            out.push_str(span.mark);
            done = span.end;
        }
        out.push_str(&text[done..]);
        // A mark beside other text can only spell a secret by contrivance; then nothing of the text is shown.
        if self.holds(&out) { (REDACTED.to_owned(), true) } else { (out, true) }
    }

    /// Replaces known secrets by value and fields with secret names by [`REDACTED`], also in JSON inside strings.
    /// Returns whether anything was replaced.
    pub fn redact_value(&self, value: &Value) -> (Value, bool) {
        Walk { redactor: self, by_name: ByName::Yes, found: false }.run(value)
    }

    /// Replaces known secrets by value only: what an approver sees in full.
    pub fn redact_known(&self, value: &Value) -> (Value, bool) {
        Walk { redactor: self, by_name: ByName::No, found: false }.run(value)
    }

    /// Whether a known secret stands anywhere in the value, in keys and in JSON inside strings too.
    #[must_use]
    pub fn contains_secret(&self, value: &Value) -> bool {
        self.redact_known(value).1
    }

    fn holds(&self, text: &str) -> bool {
        self.patterns.iter().any(|pattern| text.contains(&pattern.text))
    }

    /// Every stretch of the text that belongs to a secret, overlapping ones joined, in order.
    fn spans(&self, text: &str) -> Vec<Span<'_>> {
        let mut spans: Vec<Span<'_>> = Vec::new();
        for pattern in &self.patterns {
            let step = pattern.text.chars().next().map_or(1, char::len_utf8);
            let mut from = 0;
            // One character on after each hit, since occurrences of one secret may overlap.
            while let Some(at) = text.get(from..).and_then(|rest| rest.find(&pattern.text)) {
                let start = from + at;
                spans.push(Span { start, end: start + pattern.text.len(), mark: &pattern.mark });
                from = start + step;
            }
        }
        // Stable, so among those that begin at one place the longest pattern comes first and gives its name.
        spans.sort_by_key(|span| span.start);
        let mut joined: Vec<Span<'_>> = Vec::new();
        for span in spans {
            match joined.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                Some(_) | None => joined.push(span),
            }
        }
        joined
    }
}

struct Span<'a> {
    start: usize,
    end: usize,
    mark: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ByName {
    Yes,
    No,
}

struct Walk<'a> {
    redactor: &'a Redactor,
    by_name: ByName,
    found: bool,
}

impl Walk<'_> {
    fn run(mut self, value: &Value) -> (Value, bool) {
        let redacted = self.value(value, MAX_NESTING);
        (redacted, self.found)
    }

    fn value(&mut self, value: &Value, nesting: usize) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Number(number) => {
                let (text, found) = self.redactor.redact_text(&number.to_string());
                self.found |= found;
                if found { Value::String(text) } else { value.clone() }
            }
            Value::String(text) => Value::String(self.text(text, nesting)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item, nesting)).collect()),
            Value::Object(fields) => {
                let mut redacted = Map::new();
                for (name, item) in fields {
                    let shown = free_name(&redacted, self.text(name, nesting));
                    let item = if self.by_name == ByName::Yes && is_secret_name(name) && says_something(item) {
                        self.found = true;
                        Value::String(REDACTED.to_owned())
                    } else {
                        self.value(item, nesting)
                    };
                    redacted.insert(shown, item);
                }
                Value::Object(redacted)
            }
        }
    }

    fn text(&mut self, text: &str, nesting: usize) -> String {
        let opened = self.open(text, nesting);
        let (redacted, found) = self.redactor.redact_text(opened.as_deref().unwrap_or(text));
        self.found |= found;
        redacted
    }

    /// The text written anew, if it is JSON with something secret in it. Kept as it was otherwise.
    fn open(&mut self, text: &str, nesting: usize) -> Option<String> {
        if nesting == 0 || !text.trim_start().starts_with(['{', '[', '"']) {
            return None;
        }
        let inner: Value = serde_json::from_str(text).ok()?;
        let mut walk = Walk { redactor: self.redactor, by_name: self.by_name, found: false };
        let redacted = walk.value(&inner, nesting - 1);
        self.found |= walk.found;
        walk.found.then(|| redacted.to_string())
    }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty() && text != REDACTED,
        Value::Number(_) => true,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

#[cfg(test)]
mod tests;
