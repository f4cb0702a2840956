//! What every command uses: the daemon, the streams, and the two forms of output.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use api_types::ExitCode;
use http::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ClientContext, Console};
use crate::failure::Failure;
use crate::output::{self, Output, json_line, with_ok, write_quietly};
use crate::progress::Progress;
use crate::render::style::Style;
use crate::sanitize;
use crate::transport::{self, Call, Effect};

/// How long a read may take.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a request may take that may have to start a server first.
const START_TIMEOUT: Duration = Duration::from_secs(900);
/// Silence after which a person is told that something is still going on.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);
const PROGRESS_EVERY: Duration = Duration::from_secs(15);
/// Between two states of a bar.
const FRAME_EVERY: Duration = Duration::from_millis(250);
/// Longest answer to a question, in bytes.
const MAX_ANSWER_BYTES: usize = 256;

pub(super) struct App<'a> {
    pub(super) context: &'a ClientContext,
    pub(super) style: Style,
    stdout: RefCell<Output<'a>>,
    stderr: RefCell<&'a mut (dyn Write + Send)>,
    stdin: RefCell<&'a mut (dyn Read + Send)>,
    discard_typed: fn(),
}

impl<'a> App<'a> {
    pub(super) fn new(context: &'a ClientContext, console: &'a mut Console) -> Self {
        Self {
            context,
            style: Style::new(context.color && !context.json),
            stdout: RefCell::new(Output::new(&mut *console.stdout)),
            stderr: RefCell::new(&mut *console.stderr),
            stdin: RefCell::new(&mut *console.stdin),
            discard_typed: console.discard_typed,
        }
    }

    pub(super) fn json(&self) -> bool {
        self.context.json
    }

    /// Prints text made by `render`, which has made everything foreign visible.
    pub(super) fn print(&self, text: &str) {
        self.stdout.borrow_mut().write(text);
    }

    /// Prints one object on one line.
    pub(super) fn print_json(&self, value: &Value) {
        self.stdout.borrow_mut().write(&json_line(value));
    }

    /// Whether anybody still reads what is printed.
    pub(super) fn is_heard(&self) -> bool {
        self.stdout.borrow().is_open()
    }

    /// A line on standard error, made safe.
    pub(super) fn note(&self, text: &str) {
        write_quietly(&mut **self.stderr.borrow_mut(), &format!("{}\n", sanitize::lines(text)));
    }

    /// The one reply of a command that is done: the API's own object with `ok`, or the text.
    pub(super) fn reply(&self, body: &Value, text: impl FnOnce() -> String) {
        if self.json() {
            self.print_json(&with_ok(body));
        } else {
            self.print(&text());
        }
    }

    /// Tells of a failure in the form that was asked for.
    pub(super) fn tell_failure(&self, failure: &Failure) -> ExitCode {
        if self.json() {
            self.print_json(&failure.object());
        } else {
            write_quietly(&mut **self.stderr.borrow_mut(), &failure.words());
        }
        failure.exit
    }

    /// The exit code at the end: output that could not be written is a failure, a reader who left is not.
    pub(super) fn finish(&self, exit: ExitCode) -> ExitCode {
        output::after_trouble(self.stdout.borrow().trouble(), exit, &mut **self.stderr.borrow_mut())
    }

    pub(super) async fn get(&self, target: String) -> Result<Value, Failure> {
        self.call(Method::GET, target, None, Effect::Read, READ_TIMEOUT).await
    }

    /// A request that may have to start a server first.
    pub(super) async fn start(&self, target: &str, body: &Value) -> Result<Value, Failure> {
        let target = target.to_owned();
        let call =
            Call { method: Method::POST, target, body: Some(body), effect: Effect::Change, within: START_TIMEOUT };
        self.with_progress("starting the session, and its server where none runs", self.send_quietly(call)).await
    }

    /// One request, with a word on standard error while it takes longer than a second.
    pub(super) async fn call(
        &self,
        method: Method,
        target: String,
        body: Option<&Value>,
        effect: Effect,
        within: Duration,
    ) -> Result<Value, Failure> {
        let call = Call { method, target, body, effect, within };
        self.with_progress("waiting for the daemon", self.send_quietly(call)).await
    }

    /// One request without a word, for long polls.
    pub(super) async fn send_quietly(&self, call: Call<'_>) -> Result<Value, Failure> {
        transport::send(&self.context.socket, &self.context.token_file, call).await
    }

    pub(super) async fn with_progress<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let live = self.context.live_progress && !self.json();
        let mut progress = Progress::new(live);
        let mut work = std::pin::pin!(work);
        let mut next = PROGRESS_AFTER;
        let value = loop {
            match tokio::time::timeout(next, &mut work).await {
                Ok(value) => break value,
                Err(_) if live => {
                    let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    progress.tell(&mut **self.stderr.borrow_mut(), what, "", elapsed_ms);
                }
                Err(_) => self.note(&format!("{what} … {} s", began.elapsed().as_secs())),
            }
            next = if live { FRAME_EVERY } else { PROGRESS_EVERY };
        };
        progress.clear(&mut **self.stderr.borrow_mut());
        value
    }

    /// Whether a person sees what is printed and can answer.
    pub(super) fn can_ask(&self) -> bool {
        self.context.stdin_is_terminal && self.context.stdout_is_terminal && !self.json()
    }

    /// Asks; only `y` or `yes`, typed after the question, agrees.
    pub(super) fn ask(&self, question: &str) -> bool {
        (self.discard_typed)();
        self.print(question);
        let mut stdin = self.stdin.borrow_mut();
        let mut answer = Vec::new();
        let mut byte = [0];
        // A byte at a time: what stands after the answer's line is not ours.
        while answer.len() < MAX_ANSWER_BYTES && matches!(stdin.read(&mut byte), Ok(1)) {
            if byte == *b"\n" {
                return matches!(answer.trim_ascii().to_ascii_lowercase().as_slice(), b"y" | b"yes");
            }
            answer.extend(byte);
        }
        false
    }

    /// Reads standard input to its end; `None` when it holds more than `max_bytes`.
    pub(super) fn read_stdin(&self, max_bytes: usize) -> std::io::Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        let mut stdin = self.stdin.borrow_mut();
        let read = (&mut **stdin).take(max_bytes as u64 + 1).read_to_end(&mut content)?;
        Ok((read <= max_bytes).then_some(content))
    }
}

/// Reads a reply as the type it must have.
pub(super) fn typed<T: DeserializeOwned>(body: &Value, what: &str) -> Result<T, Failure> {
    T::deserialize(body).map_err(|_| Failure::malformed(what))
}
