//! One entry of the log, whole and without secrets.

use rules::redact::Redactor;
use serde_json::{Map, Value};
use tracing::Level;

/// Most bytes of a message or of one field's text.
const MAX_TEXT_BYTES: usize = 8192;
/// The field of a span that names the request.
const REQUEST_ID: &str = "request_id";

/// What was told, with the spans that it was told in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) level: Level,
    pub(super) target: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
    pub(super) message: String,
    pub(super) fields: Map<String, Value>,
    /// The outermost first.
    pub(super) spans: Vec<(String, Map<String, Value>)>,
}

impl Entry {
    /// The same without secrets, and each text within its bound.
    pub(super) fn redacted(mut self, redactor: Option<&Redactor>) -> Self {
        if let Some(redactor) = redactor {
            self.message = redactor.redact_text(&self.message).0;
            self.fields = redacted(redactor, self.fields);
            for (_, fields) in &mut self.spans {
                *fields = redacted(redactor, std::mem::take(fields));
            }
        }
        // After it: a secret that is cut through would not be known any more.
        self.message = bounded(self.message);
        for fields in std::iter::once(&mut self.fields).chain(self.spans.iter_mut().map(|(_, fields)| fields)) {
            for (_, value) in fields.iter_mut() {
                if let Value::String(text) = value {
                    *text = bounded(std::mem::take(text));
                }
            }
        }
        self
    }

    /// The request that it is about.
    pub(super) fn request_id(&self) -> Option<&str> {
        self.spans.iter().find_map(|(_, fields)| fields.get(REQUEST_ID)?.as_str())
    }
}

fn redacted(redactor: &Redactor, fields: Map<String, Value>) -> Map<String, Value> {
    match redactor.redact_value(&Value::Object(fields)).0 {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        let end = (0..=MAX_TEXT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
