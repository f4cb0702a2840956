//! The daemon's log: lines on standard error or fields for the journal, never a body and never a secret.

mod entry;
mod journal;
mod layer;
mod text;

use std::io::{Write, stderr};
use std::sync::{Arc, OnceLock};

use cli::Failure;
use session::KnownSecrets;
use settings::{Log, LogFormat};
use time::OffsetDateTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

use entry::Entry;
use journal::Journal;
use layer::Told;

/// What is logged, in place of what the configuration says: a level, or levels by target.
const VARIABLE: &str = "GATEPOST_LOG";
/// Until the configuration was read.
const DEFAULT: &str = "info";

/// Where lines go, and in which form.
enum Sink {
    /// The service manager's journal, as fields.
    Journal(Journal),
    /// Standard error, a line each.
    Lines(LogFormat),
}

/// The log, begun.
pub(crate) struct Logging {
    filter: reload::Handle<EnvFilter, Registry>,
    is_given: bool,
    writer: Arc<Writer>,
}

/// Writes entries; every one passes the redactor.
pub(crate) struct Writer {
    secrets: Arc<KnownSecrets>,
    /// Text lines until the configuration was read.
    sink: OnceLock<Sink>,
}

impl Writer {
    fn write(&self, entry: Entry) {
        if let Some(line) = self.take(entry) {
            // A closed standard error is nothing that could be told anywhere.
            stderr().lock().write_all(format!("{line}\n").as_bytes()).ok();
        }
    }

    /// The line for standard error; `None` when the journal has the entry.
    ///
    /// INVARIANT I2: nothing of an entry goes anywhere before the redactor saw it.
    fn take(&self, entry: Entry) -> Option<String> {
        let entry = entry.redacted(self.secrets.redactor().as_deref());
        let now = OffsetDateTime::now_utc();
        match self.sink.get() {
            Some(Sink::Journal(journal)) => match journal.send(&entry) {
                Ok(()) => None,
                // The prefix is how a journal takes a line's priority from standard error.
                Err(_) => Some(format!("<{}>{}", journal::priority(entry.level), text::line(&entry, now))),
            },
            Some(Sink::Lines(LogFormat::Json)) => Some(text::json(&entry, now)),
            Some(Sink::Lines(LogFormat::Text)) | None => Some(text::line(&entry, now)),
        }
    }
}

/// Begins to log, with what the environment says.
///
/// # Errors
/// When the variable cannot be understood.
pub(crate) fn start(secrets: Arc<KnownSecrets>) -> Result<Logging, Failure> {
    let given = std::env::var(VARIABLE).ok().filter(|words| !words.is_empty());
    let filter = EnvFilter::builder().parse(given.as_deref().unwrap_or(DEFAULT)).map_err(|error| {
        Failure::usage(format!("{VARIABLE} is not understood ({error}); try info, debug or session=trace"))
    })?;
    let (filter, handle) = reload::Layer::new(filter);
    let writer = Arc::new(Writer { secrets, sink: OnceLock::new() });
    let told = Arc::clone(&writer);
    tracing_subscriber::registry()
        .with(filter)
        .with(Told::new(move |entry| told.write(entry)))
        .try_init()
        .map_err(|error| Failure::new(api_types::ExitCode::Failed, "internal", format!("no log: {error}")))?;
    Ok(Logging { filter: handle, is_given: given.is_some(), writer })
}

impl Logging {
    /// Goes on as the configuration says; what the environment said stays.
    ///
    /// # Errors
    /// When the levels cannot be understood.
    pub(crate) fn configure(&self, log: &Log) -> Result<(), Failure> {
        if !self.is_given {
            let filter = EnvFilter::builder().parse(&log.level).map_err(|error| {
                let detail = format!("[log] level is not understood ({error}); try info, debug or info,session=trace");
                Failure::new(api_types::ExitCode::Usage, "configuration_invalid", detail)
            })?;
            let failed = |error: reload::Error| {
                Failure::new(api_types::ExitCode::Failed, "internal", format!("no log: {error}"))
            };
            self.filter.reload(filter).map_err(failed)?;
        }
        let journal = match log.format {
            LogFormat::Text => Journal::of_standard_error(),
            LogFormat::Json => None,
        };
        let sink = journal.map_or(Sink::Lines(log.format), Sink::Journal);
        self.writer.sink.get_or_init(|| sink);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
