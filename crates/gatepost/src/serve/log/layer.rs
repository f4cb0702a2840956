//! From what the program tells to entries.

use std::error::Error;
use std::fmt::{Debug, Write};

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::entry::Entry;

/// Most causes of an error that are told.
const MAX_CAUSES: usize = 16;

/// Hands each entry to `write`.
pub(super) struct Told<W> {
    write: W,
}

impl<W: Fn(Entry) + 'static> Told<W> {
    pub(super) fn new(write: W) -> Self {
        Self { write }
    }
}

/// What a span was given, kept with it.
struct Given(Map<String, Value>);

impl<S, W> Layer<S> for Told<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Fn(Entry) + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Given(fields.0));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        if let Some(span) = context.span(id)
            && let Some(given) = span.extensions_mut().get_mut::<Given>()
        {
            given.0.extend(fields.0);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = match fields.0.remove("message") {
            Some(Value::String(message)) => message,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let spans = context.event_scope(event).map(|scope| scope.from_root().collect::<Vec<_>>()).unwrap_or_default();
        let given = |span: &tracing_subscriber::registry::SpanRef<'_, S>| {
            let fields = span.extensions().get::<Given>().map(|given| given.0.clone()).unwrap_or_default();
            (span.name().to_owned(), fields)
        };
        let metadata = event.metadata();
        (self.write)(Entry {
            level: *metadata.level(),
            target: metadata.target().to_owned(),
            file: metadata.file().map(str::to_owned),
            line: metadata.line(),
            message,
            fields: fields.0,
            spans: spans.iter().map(given).collect(),
        });
    }
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().trim_start_matches("r#").to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, json!(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        for _ in 0..MAX_CAUSES {
            let Some(error) = cause else { break };
            // Writing to a text cannot fail.
            write!(text, ": {error}").ok();
            cause = error.source();
        }
        self.put(field, json!(text));
    }
}
