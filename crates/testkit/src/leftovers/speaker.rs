//! A program that is spoken to a line at a time.

use crate::failure::{Doing, Failure, Outcome};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const ANSWER_LIMIT: Duration = Duration::from_secs(90);

/// Ended when it is dropped.
pub(super) struct Speaker {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Speaker {
    pub(super) fn start(mut command: Command) -> Outcome<Self> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.doing("the stand-in could not be started")?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| Failure::new("the stand-in has no output"))?;
        let (sender, lines) = channel();
        // It ends with the pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, stdin, lines })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn hear(&self) -> Outcome<Value> {
        let line = self.lines.recv_timeout(ANSWER_LIMIT).doing("the stand-in said nothing")?;
        let answer: Value = serde_json::from_str(&line).doing("the stand-in's line is not JSON")?;
        match answer["error"].as_str() {
            Some(why) => Err(Failure::new(format!("the stand-in failed: {why}"))),
            None => Ok(answer),
        }
    }

    pub(super) fn ask(&mut self, word: &str) -> Outcome<Value> {
        let stdin = self.stdin.as_mut().ok_or_else(|| Failure::new("the stand-in was stopped"))?;
        writeln!(stdin, "{word}").and_then(|()| stdin.flush()).doing("the stand-in does not listen")?;
        self.hear()
    }

    /// Reaps it, after it was killed.
    pub(super) fn reap(&mut self) {
        self.stdin = None;
        self.child.wait().ok();
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.stdin = None;
        self.child.wait().ok();
    }
}
