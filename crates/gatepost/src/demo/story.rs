//! The demonstration told to people, step by step, and timed for programs.

use std::io::{Write, stderr};
use std::time::{Duration, Instant};

use cli::sanitize;
use serde_json::{Map, Value};

use super::scene::Seen;
use super::stage::Closed;
use crate::progress::{Progress, duration};
use crate::server::install::Ready;
use crate::{Look, say};

/// Silence after which is said what is being waited for.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// Tells on standard output; with `--json`, which keeps that for its object, one line a step on standard error.
pub(super) struct Story {
    look: Look,
    step: u32,
    timings: Value,
}

impl Story {
    pub(super) fn new(look: Look) -> Self {
        Self { look, step: 0, timings: Value::Object(Map::new()) }
    }

    pub(super) fn color(&self) -> bool {
        self.look.color
    }

    pub(super) fn title(&mut self, text: &str) {
        let text = self.bold(text);
        self.tell(&format!("{text}\n"));
    }

    /// The next thing that is done.
    pub(super) fn step(&mut self, text: &str) {
        self.step += 1;
        let line = format!("{}. {}", self.step, sanitize::line(text));
        let line = self.bold(&line);
        self.tell(&format!("\n{line}\n"));
    }

    /// What is to be known about it.
    pub(super) fn note(&mut self, text: &str) {
        let text = sanitize::lines(text).replace('\n', "\n   ");
        self.tell(&format!("   {text}\n"));
    }

    /// Text that is safe and laid out already.
    pub(super) fn show(&mut self, text: &str) {
        let indented: String = text.lines().map(|line| format!("   {line}\n")).collect();
        self.tell(&indented);
    }

    /// Does some work; says what is waited for when it takes longer than a second.
    pub(super) async fn waiting<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let mut progress = Progress::new(self.look.live_progress);
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(TELL_AFTER, &mut work).await {
                Ok(value) => {
                    progress.clear(&mut stderr());
                    return value;
                }
                Err(_) => progress.tell(&mut stderr(), what, "", elapsed_ms(began)),
            }
        }
    }

    /// Notes how long something took.
    pub(super) fn timing(&mut self, name: &str, began: Instant) -> u64 {
        let elapsed_ms = elapsed_ms(began);
        self.timings[name] = elapsed_ms.into();
        elapsed_ms
    }

    pub(super) fn timings(&self) -> &Value {
        &self.timings
    }

    pub(super) fn installed(&mut self, ready: &Ready) {
        self.timings["install_ms"] = ready.elapsed_ms.into();
        let how = if ready.already_installed {
            "was installed already".to_owned()
        } else {
            format!("was installed in {}", duration(ready.elapsed_ms))
        };
        self.step(&format!("The reviewed Agent Server {} {how}", ready.installed.version));
        self.note(&ready.installed.root.display().to_string());
    }

    pub(super) fn stopping(&mut self) {
        self.step("Everything is stopped");
    }

    pub(super) fn end(&mut self, seen: &Seen, closed: &Closed) {
        self.note(&format!(
            "{} processes were running for the demonstration, {} are left",
            closed.processes_ended,
            closed.leftovers.len()
        ));
        match &closed.kept {
            Some(kept) => self.note(&format!("kept as asked: {}", kept.display())),
            None => self.note("its directory is removed"),
        }
        self.tell("\n");
        self.note(&format!(
            "{} actions proposed, {} approved, {} executed, {} rejected; the bypass was refused ({})",
            seen.actions_proposed,
            seen.actions_approved,
            seen.actions_executed,
            seen.actions_rejected,
            seen.bypass_refused
        ));
    }

    /// The last lines of the daemon's log, on standard error.
    pub(super) fn log_tail(&self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let text: String = lines.iter().map(|line| format!("  {}\n", sanitize::line(line))).collect();
        write_stderr(&format!("\nthe daemon's last words:\n{text}"));
    }

    fn bold(&self, text: &str) -> String {
        if self.look.color { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn tell(&self, text: &str) {
        if self.look.json { write_stderr(text) } else { say(text) }
    }
}

fn write_stderr(text: &str) {
    // What nobody can see is no failure of the work.
    stderr().write_all(text.as_bytes()).ok();
}

pub(super) fn elapsed_ms(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}
