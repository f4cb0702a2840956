//! Entries as lines: text for people, JSON for programs.

use rules::display::visible;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::entry::Entry;

/// One line of text: nothing of it moves a cursor or begins another line.
pub(super) fn line(entry: &Entry, at: OffsetDateTime) -> String {
    format!("{} {:>5} {}", time_of(at), entry.level.as_str(), said(entry))
}

/// The same without time and level.
pub(super) fn said(entry: &Entry) -> String {
    let mut out = String::new();
    for (name, fields) in &entry.spans {
        let words: Vec<String> = fields.iter().map(|(name, value)| word(name, value)).collect();
        out.push_str(&format!("{}{{{}}}: ", one_line(name), words.join(" ")));
    }
    out.push_str(&format!("{}: {}", one_line(&entry.target), one_line(&entry.message)));
    for (name, value) in &entry.fields {
        out.push(' ');
        out.push_str(&word(name, value));
    }
    out
}

/// One object.
pub(super) fn json(entry: &Entry, at: OffsetDateTime) -> String {
    let spans: Vec<Value> = entry.spans.iter().map(|(name, fields)| json!({"name": name, "fields": fields})).collect();
    let mut object = Map::new();
    let parts = [
        ("time", json!(time_of(at))),
        ("level", json!(entry.level.as_str())),
        ("target", json!(entry.target)),
        ("message", json!(entry.message)),
        ("request_id", json!(entry.request_id())),
        ("fields", Value::Object(entry.fields.clone())),
        ("spans", Value::Array(spans)),
    ];
    object.extend(parts.map(|(name, value)| (name.to_owned(), value)));
    Value::Object(object).to_string()
}

fn word(name: &str, value: &Value) -> String {
    let shown = match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => json!(one_line(text)).to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    format!("{}={shown}", one_line(name))
}

/// As it can be shown, in one line.
fn one_line(text: &str) -> String {
    visible(text).0.replace('\n', "\\n").replace('\t', "\\t")
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\=".contains(&byte))
}

fn time_of(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap_or_default()
}
