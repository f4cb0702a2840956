//! One run of a program of the pages, with a person at its standard input.

use crate::pages::Program;
use crate::token_file;
use gatepost_tests::Scene;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Two server starts lie within the longest wait.
const LIMIT: Duration = Duration::from_secs(180);

pub(crate) struct Backend {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Backend {
    pub(crate) fn start(scene: &Scene, program: &Program, state: &Path, prompt: &str) -> Self {
        let mut child = program
            .command()
            .arg(scene.home().socket())
            .arg(token_file(&scene.home().state()))
            .arg(scene.workspace())
            .arg(state)
            .arg(prompt)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits until a batch is shown whole and asked about; its id.
    pub(crate) fn wait_shown(&mut self) -> String {
        let mut shown = None;
        let deadline = Instant::now() + LIMIT;
        loop {
            let line = self.next_line(deadline).unwrap_or_else(|| panic!("it ended: {:?}", self.seen));
            if let Some(words) = line.strip_prefix("waits for you: ") {
                shown = words.split(',').next().map(str::to_owned);
            }
            if line.starts_with("run it?") {
                return shown.unwrap();
            }
        }
    }

    /// The person's answer.
    pub(crate) fn answer(&mut self, word: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{word}").unwrap();
    }

    /// Waits for its end, which must be a good one; everything that it printed.
    pub(crate) fn end(mut self) -> Vec<String> {
        let deadline = Instant::now() + LIMIT;
        while self.next_line(deadline).is_some() {}
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {:?}", self.seen);
        std::mem::take(&mut self.seen)
    }

    /// Kills it; everything that it had printed.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        let deadline = Instant::now() + LIMIT;
        while self.next_line(deadline).is_some() {}
        self.child.wait().unwrap();
        std::mem::take(&mut self.seen)
    }

    /// `None` when no line will come any more.
    fn next_line(&mut self, deadline: Instant) -> Option<String> {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                self.seen.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came in time after {:?}", self.seen),
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
