//! A real server launched as the daemon launches its own, without a daemon: whoever holds the key drives it.
//!
//! A binary of the tests member launches it, since this crate imports none of the product's; the two speak a JSON
//! object a line.

use super::{Guard, Raw};
use crate::daemon::{built_binary, processes_of, sweep};
use crate::failure::{Doing, Failure, Outcome};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to be ready.
const START_LIMIT: Duration = Duration::from_secs(180);
/// How long a request on the control channel may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);
/// How long everything may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(50);

/// How a started server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Ready {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// Its key.
    pub session_key: String,
    /// Its process.
    pub pid: u32,
    /// An agent profile with a terminal and a file editor.
    pub profile_id: String,
}

/// A running server. When dropped, it is ended with everything that belongs to its directory.
#[derive(Debug)]
pub struct BareServer {
    root: TempDir,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    ready: Ready,
}

impl BareServer {
    /// Launches one with a model at this base URL and these guards taken out of its start-up module.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start(model_base_url: &str, taken_out: &[Guard]) -> Outcome<Self> {
        let binary = built_binary("gatepost-tests", "bare-server")?;
        // Short: the sockets below it have paths of at most 107 bytes.
        let root = tempfile::Builder::new().prefix("gp-").tempdir().doing("no temporary directory")?;
        std::fs::create_dir_all(root.path().join("src/work")).doing("no workspace")?;
        let mut command = Command::new(binary);
        command.arg(root.path()).arg(model_base_url).args(taken_out.iter().map(|guard| guard.as_str()));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.doing("the launcher could not be started")?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| Failure::new("the launcher has no output"))?;
        let (sender, lines) = channel();
        // It ends with the pipe, which ends with the launcher.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let ready = Ready { port: 0, session_key: String::new(), pid: 0, profile_id: String::new() };
        let mut server = Self { root, child, stdin, lines, ready };
        server.await_ready()?;
        Ok(server)
    }

    fn await_ready(&mut self) -> Outcome<()> {
        let answer = self.answer(START_LIMIT)?;
        self.ready = serde_json::from_value(answer["ready"].clone()).doing("the launcher said something else")?;
        Ok(())
    }

    fn answer(&mut self, limit: Duration) -> Outcome<Value> {
        let line = self.lines.recv_timeout(limit).doing("the launcher said nothing")?;
        let answer: Value = serde_json::from_str(&line).doing("the launcher's line is not JSON")?;
        match answer["error"].as_str() {
            Some(why) => Err(Failure::new(format!("the launcher failed: {why}"))),
            None => Ok(answer),
        }
    }

    fn ask(&mut self, request: &Value, limit: Duration) -> Outcome<Value> {
        let stdin = self.stdin.as_mut().ok_or_else(|| Failure::new("the launcher was stopped"))?;
        writeln!(stdin, "{request}").and_then(|()| stdin.flush()).doing("the launcher does not listen")?;
        self.answer(limit)
    }

    /// How it is reached now.
    #[must_use]
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Requests with its key.
    #[must_use]
    pub fn raw(&self) -> Raw {
        Raw::new(self.ready.port, &self.ready.session_key)
    }

    /// Its directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// An empty directory for conversations to work in.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("src/work")
    }

    /// Lets each of these actions run once.
    ///
    /// # Errors
    /// When the server did not acknowledge it.
    pub fn grant(&mut self, event_ids: &[String]) -> Outcome<()> {
        self.ask(&json!({"grant": event_ids}), REQUEST_LIMIT).map(|_| ())
    }

    /// Takes back what of these was not used; how many there were.
    ///
    /// # Errors
    /// When the server did not answer.
    pub fn revoke(&mut self, event_ids: &[String]) -> Outcome<u64> {
        Ok(self.ask(&json!({"revoke": event_ids}), REQUEST_LIMIT)?["revoked"].as_u64().unwrap_or(0))
    }

    /// Whether no run of a conversation is under way or ending.
    ///
    /// # Errors
    /// When the server did not answer.
    pub fn settled(&mut self, conversation_id: &str) -> Outcome<bool> {
        Ok(self.ask(&json!({"settled": conversation_id}), REQUEST_LIMIT)?["settled"] == true)
    }

    /// Starts the server again on the same directories after it was killed.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn relaunch(&mut self) -> Outcome<()> {
        let answer = self.ask(&json!({"relaunch": true}), START_LIMIT)?;
        self.ready = serde_json::from_value(answer["ready"].clone()).doing("the launcher said something else")?;
        Ok(())
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// When it does not end in time, ends badly, or leaves a process.
    pub fn stop(mut self) -> Outcome<()> {
        let ended_well = self.end()?;
        let leftovers = processes_of(self.root.path(), &[]);
        if ended_well && leftovers.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!("the launcher ended well: {ended_well}; processes left: {leftovers:?}")))
    }

    fn end(&mut self) -> Outcome<bool> {
        // The end of its input is the word to stop.
        self.stdin = None;
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().doing("the launcher could not be waited for")? {
                return Ok(status.success());
            }
            if begun.elapsed() > STOP_LIMIT {
                return Err(Failure::new("the launcher does not end"));
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        if self.end().is_err() {
            self.child.kill().ok();
            self.child.wait().ok();
        }
        sweep(self.root.path());
    }
}
