//! The demonstration told to people, step by step, and timed for programs.

use std::io::{Write, stderr, stdout};
use std::time::{Duration, Instant};

use cli::progress::{Progress, duration};
use cli::{Failure, sanitize};
use serde_json::{Map, Value};

use super::scene::Seen;
use super::stage::Closed;
use crate::Look;
use crate::server::install::Ready;

/// Silence after which is said what is being waited for.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// Tells on standard output; with `--json`, which keeps that for its object, on standard error.
pub(super) struct Story {
    look: Look,
    step: u32,
    /// The present step, for whatever goes wrong in it.
    doing: String,
    timings: Value,
    out: Box<dyn Write>,
    /// For what is no part of the story: progress, the log.
    aside: Box<dyn Write>,
}

impl Story {
    pub(super) fn new(look: Look) -> Self {
        let out: Box<dyn Write> = if look.json { Box::new(stderr()) } else { Box::new(stdout()) };
        Self::told_to(look, out, Box::new(stderr()))
    }

    /// The same with other streams.
    pub(super) fn told_to(look: Look, out: Box<dyn Write>, aside: Box<dyn Write>) -> Self {
        Self { look, step: 0, doing: String::new(), timings: Value::Object(Map::new()), out, aside }
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
        self.doing = text.to_owned();
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

    /// The failure, with the step in which it came.
    pub(super) fn at_this_step(&self, mut failure: Failure) -> Failure {
        if self.step > 0 {
            failure.detail = format!("step {} ({}): {}", self.step, self.doing, failure.detail);
        }
        failure
    }

    /// Does some work; says what is waited for when it takes longer than a second.
    pub(super) async fn waiting<T>(&mut self, what: &str, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let mut progress = Progress::new(self.look.live_progress);
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(TELL_AFTER, &mut work).await {
                Ok(value) => {
                    progress.clear(&mut *self.aside);
                    return value;
                }
                Err(_) => progress.tell(&mut *self.aside, what, "", elapsed_ms(began)),
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
    pub(super) fn log_tail(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let text: String = lines.iter().map(|line| format!("  {}\n", sanitize::line(line))).collect();
        write(&mut *self.aside, &format!("\nthe daemon's last words:\n{text}"));
    }

    fn bold(&self, text: &str) -> String {
        if self.look.color { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn tell(&mut self, text: &str) {
        write(&mut *self.out, text);
    }
}

fn write(stream: &mut dyn Write, text: &str) {
    // A reader who left is no failure of the work.
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).ok();
}

pub(super) fn elapsed_ms(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use api_types::ExitCode;

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn steps_are_counted_and_what_the_agent_says_cannot_act_on_the_terminal() {
        let (page, aside) = (Page::default(), Page::default());
        let look = Look { json: false, color: false, live_progress: false };
        let mut story = Story::told_to(look, Box::new(page.clone()), Box::new(aside.clone()));
        story.step("First");
        story.note("a\u{1b}[2J\nb");
        story.step("Second");
        story.log_tail(&["bad\u{1b}".to_owned()]);
        assert_eq!(page.text(), "\n1. First\n   a␛[2J\n   b\n\n2. Second\n");
        assert_eq!(aside.text(), "\nthe daemon's last words:\n  bad␛\n");
        let failure = story.at_this_step(Failure::new(ExitCode::Failed, "demo_failed", "no"));
        assert_eq!(failure.detail, "step 2 (Second): no");
    }

    #[tokio::test]
    async fn work_that_takes_long_is_told_of_aside() {
        let aside = Page::default();
        let look = Look { json: true, color: false, live_progress: false };
        let mut story = Story::told_to(look, Box::new(std::io::sink()), Box::new(aside.clone()));
        assert_eq!(story.waiting("quick", async { 1 }).await, 1);
        assert_eq!(aside.text(), "");
        story.waiting("slow", tokio::time::sleep(TELL_AFTER + TELL_AFTER / 2)).await;
        assert_eq!(aside.text(), "[1 s] slow\n");
    }
}
