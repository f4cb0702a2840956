//! Where words go. A closed pipe on the other side ends output quietly; any other failure to write is told once.

use std::io::{ErrorKind, Write};

use api_types::ExitCode;
use serde_json::{Map, Value};

use crate::sanitize;

/// Standard output with the memory of whether it still takes anything.
pub(crate) struct Output<'a> {
    stream: &'a mut (dyn Write + Send),
    state: State,
}

enum State {
    Open,
    /// The reader is gone.
    Closed,
    /// Something else is wrong, in words.
    Failed(String),
}

impl<'a> Output<'a> {
    pub(crate) fn new(stream: &'a mut (dyn Write + Send)) -> Self {
        Self { stream, state: State::Open }
    }

    /// Writes and flushes. Nothing is tried again after a failure.
    pub(crate) fn write(&mut self, text: &str) {
        if !matches!(self.state, State::Open) {
            return;
        }
        if let Err(error) = self.stream.write_all(text.as_bytes()).and_then(|()| self.stream.flush()) {
            let reader_left = error.kind() == ErrorKind::BrokenPipe;
            self.state = if reader_left { State::Closed } else { State::Failed(error.to_string()) };
        }
    }

    /// Whether more output would reach somebody.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// What went wrong, unless it was only that the reader left.
    pub(crate) fn trouble(&self) -> Option<&str> {
        match &self.state {
            State::Open | State::Closed => None,
            State::Failed(words) => Some(words),
        }
    }
}

/// Writes and flushes. What went wrong, in words, unless it was only that the reader left.
pub fn write(stream: &mut dyn Write, text: &str) -> Option<String> {
    match stream.write_all(text.as_bytes()).and_then(|()| stream.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Some(error.to_string()),
        Ok(()) | Err(_) => None,
    }
}

/// The exit code where standard output had this trouble, which is told.
pub(crate) fn after_trouble(trouble: Option<&str>, exit: ExitCode, stderr: &mut dyn Write) -> ExitCode {
    let Some(words) = trouble else { return exit };
    write_quietly(stderr, &sanitize::lines(&format!("error: output_failed: {words}\n")));
    if exit == ExitCode::Done { ExitCode::Failed } else { exit }
}

/// Writes where nothing can be done about a failure.
pub(crate) fn write_quietly(stream: &mut dyn Write, text: &str) {
    if stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_err() {
        // Nobody listens: the exit code still tells.
    }
}

/// One line of JSON in which nothing can act on a terminal.
pub(crate) fn json_line(value: &Value) -> String {
    let serialised = value.to_string();
    format!("{}\n", sanitize::json(&serialised))
}

/// The API's object with `ok: true` first.
pub(crate) fn with_ok(body: &Value) -> Value {
    let mut object = Map::new();
    object.insert("ok".to_owned(), Value::Bool(true));
    if let Value::Object(fields) = body {
        object
            .extend(fields.iter().filter(|(name, _)| *name != "ok").map(|(name, field)| (name.clone(), field.clone())));
    }
    Value::Object(object)
}
