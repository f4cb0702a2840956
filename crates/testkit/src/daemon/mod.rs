//! A daemon in a temporary directory: its configuration, its process, its socket, and what it leaves behind.

mod build;
mod client;
mod developer;
mod home;
pub(crate) mod http_reply;
mod install;
mod leftovers;
mod programs;
mod python;
mod server_log;
mod server_process;
mod users;

pub(crate) use build::build_with;
pub use build::{built_binary, cache_dir, gatepost_binary, lock_file, target_dir, workspace_root};
pub use client::{Client, Reply};
pub use home::{ACCOUNT, Home, Server, Setup, Spoken};
pub use install::{SERVER_VERSION, UNPRIVILEGED_USER, UnprivilegedInstall, shared_install, unprivileged_install};
pub use leftovers::{ProcessSeen, processes_of};
pub use programs::link_programs_without;
pub use server_log::{ServerLog, UpstreamRequest};
pub use server_process::{guards_of, server_port};
pub use users::as_user;
pub(crate) use users::{give_tree, make_private_dir};

use crate::failure::{Doing, Failure, Outcome};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long a daemon may take until it is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a daemon may take to stop: it stops its servers first, each within its own grace.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a process or a socket is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of the log that a failure quotes.
const LOG_TAIL_BYTES: usize = 4000;

/// A running daemon. When dropped, it is ended with everything that belongs to its directory.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    directory: PathBuf,
    log: PathBuf,
    client: Client,
    ended: bool,
}

/// How a daemon ended.
#[derive(Debug)]
pub struct Stopped {
    /// Its exit status.
    pub status: ExitStatus,
    /// What was still running for its directory when it had ended.
    pub leftovers: Vec<ProcessSeen>,
}

impl Daemon {
    fn new(child: Child, directory: &Path, log: &Path, client: Client) -> Self {
        Self { child, directory: directory.to_owned(), log: log.to_owned(), client, ended: false }
    }

    /// The daemon's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client with the owner's token.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What the daemon wrote to standard output and standard error so far.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Outcome<String> {
        let bytes = std::fs::read(&self.log).doing("the daemon's log could not be read")?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The processes that belong to the daemon's directory or descend from it, the daemon aside.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessSeen> {
        let mut found = processes_of(&self.directory, &[self.pid()]);
        found.retain(|process| process.pid != self.pid());
        found
    }

    /// Waits until the path answers 200, or what counts as much.
    fn wait_ready(&mut self, path: &str, counts: impl Fn(&Reply) -> bool) -> Outcome<()> {
        let begun = Instant::now();
        let client = self.client.clone().with_timeout(Duration::from_secs(5));
        loop {
            if let Some(status) = self.child.try_wait().doing("the daemon could not be waited for")? {
                return Err(Failure::new(format!("the daemon ended with {status}:\n{}", self.log_tail())));
            }
            let answer = client.get(path);
            if answer.as_ref().is_ok_and(|reply| reply.status == 200 || counts(reply)) {
                return Ok(());
            }
            if begun.elapsed() > READY_TIMEOUT {
                let answer = match answer {
                    Ok(reply) => reply.text,
                    Err(why) => why.to_string(),
                };
                return Err(Failure::new(format!("the daemon is not ready: {answer}\n{}", self.log_tail())));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn set_client(&mut self, client: Client) {
        self.client = client;
    }

    fn log_tail(&self) -> String {
        let log = self.log().unwrap_or_default();
        let start = log.len().saturating_sub(LOG_TAIL_BYTES);
        let start = (start..log.len()).find(|at| log.is_char_boundary(*at)).unwrap_or(log.len());
        log[start..].to_owned()
    }

    /// Ends the daemon with SIGTERM and says what it left.
    ///
    /// # Errors
    /// When it does not end in time; it is killed then.
    pub fn stop(mut self) -> Outcome<Stopped> {
        self.signal(Signal::TERM)?;
        let status = self.wait(STOP_TIMEOUT)?;
        Ok(Stopped { status, leftovers: processes_of(&self.directory, &[]) })
    }

    /// Kills the daemon, as a crash does. What its servers leave is the next start's business: nothing else is ended.
    ///
    /// # Errors
    /// When it cannot be killed or waited for.
    pub fn kill(mut self) -> Outcome<()> {
        self.signal(Signal::KILL)?;
        self.wait(STOP_TIMEOUT)?;
        Ok(())
    }

    /// Waits until the daemon ends by itself.
    ///
    /// # Errors
    /// When it does not in time.
    pub fn wait_end(mut self, timeout: Duration) -> Outcome<Stopped> {
        let status = self.wait(timeout)?;
        Ok(Stopped { status, leftovers: processes_of(&self.directory, &[]) })
    }

    /// Sends a signal to the daemon alone.
    ///
    /// # Errors
    /// When it is gone.
    pub fn signal(&self, signal: Signal) -> Outcome<()> {
        // The child is not reaped before this, so its pid is its own.
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).doing("the daemon could not be signalled")
    }

    /// Whether it has ended by itself or was killed by someone else, and how.
    ///
    /// # Errors
    /// When it cannot be asked for.
    pub fn ended(&mut self) -> Outcome<Option<ExitStatus>> {
        let status = self.child.try_wait().doing("the daemon could not be waited for")?;
        self.ended |= status.is_some();
        Ok(status)
    }

    fn wait(&mut self, timeout: Duration) -> Outcome<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().doing("the daemon could not be waited for")? {
                self.ended = true;
                return Ok(status);
            }
            if begun.elapsed() > timeout {
                let tail = self.log_tail();
                return Err(Failure::new(format!("the daemon did not end within {timeout:?}:\n{tail}")));
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if self.signal(Signal::TERM).is_err() || self.wait(Duration::from_secs(15)).is_err() {
            self.child.kill().ok();
            self.child.wait().ok();
        }
        sweep(&self.directory);
    }
}

/// Kills what still runs for this directory, so that a failing test leaves nothing.
pub(crate) fn sweep(directory: &Path) {
    // A process may start another between the look and the signal: look again, a bounded number of times.
    for _ in 0..20 {
        let found = processes_of(directory, &[]);
        if found.is_empty() {
            return;
        }
        for process in found {
            if let Some(pid) = Pid::from_raw(process.pid.cast_signed()) {
                kill_process(pid, Signal::KILL).ok();
            }
        }
        std::thread::sleep(LOOK);
    }
}
