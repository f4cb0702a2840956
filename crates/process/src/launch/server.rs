//! A server that is ours: running, watched, and ended with everything it started.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use host::Spawner;
use rules::guard::Armament;
use tokio::sync::watch;

use super::confining::Confined;
use super::control::Control;
use super::held::Held;
use super::output::Output;
use super::watch::{ExitReport, TREE_BUDGET};

/// After SIGKILL: for the process to end, for guards to end the tree, for what they left to be ended, and the report to be made.
const KILL_LIMIT: Duration = Duration::from_secs(30).saturating_add(TREE_BUDGET);
/// For guards to have done as they were told.
const OBEY_LIMIT: Duration = Duration::from_secs(5);

/// What names one start.
pub(crate) struct Identity {
    pub(crate) nonce: String,
    pub(crate) server_start_id: String,
    pub(crate) launch_config_digest: String,
    pub(crate) port: u16,
    /// What is known of the confinement of the processes that it starts; `None` where they are not confined.
    pub(crate) confined: Option<Confined>,
    /// Kept open, so that nobody else can ever have the port while this value lives.
    pub(crate) listener: TcpListener,
}

/// A started process. Dropping it ends the process; its watching thread then ends the tree.
pub(crate) struct Running {
    child: Arc<Held>,
    output: Output,
    exited: watch::Receiver<Option<ExitReport>>,
    /// The kernel ends the child when the spawning thread ends.
    _spawner: Spawner,
}

impl Running {
    pub(crate) fn new(
        child: Arc<Held>,
        output: Output,
        exited: watch::Receiver<Option<ExitReport>>,
        spawner: Spawner,
    ) -> Self {
        Self { child, output, exited, _spawner: spawner }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub(crate) fn child(&self) -> Arc<Held> {
        Arc::clone(&self.child)
    }

    /// As [`OwnedServer::exited`].
    pub(crate) fn exited(&self) -> watch::Receiver<Option<ExitReport>> {
        self.exited.clone()
    }

    /// Its end, if that comes in time.
    pub(crate) async fn exit_within(&self, wait: Duration) -> Option<ExitReport> {
        let mut exited = self.exited.clone();
        let report = tokio::time::timeout(wait, exited.wait_for(Option::is_some)).await;
        report.ok().and_then(Result::ok).and_then(|report| report.clone())
    }

    /// End it without asking.
    pub(crate) async fn kill(&self) -> Option<ExitReport> {
        self.child.kill();
        if let Some(report) = self.exit_within(OBEY_LIMIT).await {
            return Some(report);
        }
        self.child.give_up();
        self.exit_within(KILL_LIMIT).await
    }

    /// End it without asking; its last words, redacted.
    pub(crate) async fn end_now(self) -> Vec<String> {
        match self.kill().await {
            Some(report) => report.log_tail,
            None => self.output.tail(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.exited.borrow().is_none() {
            self.child.kill();
        }
    }
}

/// What a stop came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopReport {
    /// How the server ended and what became of its tree; None when it did not end.
    pub exit: Option<ExitReport>,
    /// Processes of its tree that are still there; 0 when nothing is left.
    pub leftover_processes: usize,
}

impl StopReport {
    pub(crate) fn of(exit: Option<ExitReport>) -> Self {
        // Not ended means that the server itself is left.
        let leftover_processes =
            exit.as_ref().map_or(1, |exit| exit.left_processes.len() + usize::from(exit.cleanup_error.is_some()));
        Self { exit, leftover_processes }
    }
}

/// A server that this process started and that announced itself. Dropping it ends the server at once, and its tree a
/// little later, in the background; [`Self::stop`] ends both before it returns.
pub struct OwnedServer {
    running: Running,
    control: Control,
    identity: Identity,
}

impl OwnedServer {
    pub(crate) fn new(running: Running, control: Control, identity: Identity) -> Self {
        Self { running, control, identity }
    }

    /// The server's process id, also its process group and session.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// The process that everything the server starts stays below as long as it lives: the inner guard, or the server
    /// itself where there is none.
    #[must_use]
    pub fn tree_pid(&self) -> u32 {
        self.running.child.tree_pid()
    }

    /// The guards of its tree.
    #[must_use]
    pub fn guard_pids(&self) -> Vec<u32> {
        self.running.child.guards().iter().map(|guard| guard.pid).collect()
    }

    /// How the guards end its tree; none where there are none.
    #[must_use]
    pub fn armament(&self) -> Option<Armament> {
        self.running.child.armament()
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.identity.port
    }

    /// Whether the processes that it starts are confined.
    #[must_use]
    pub fn is_confining(&self) -> bool {
        self.identity.confined.is_some()
    }

    /// What is to be known of what they may reach, in words.
    #[must_use]
    pub fn confinement_notes(&self) -> &[String] {
        self.identity.confined.as_ref().map_or(&[], |confined| &confined.notes)
    }

    /// Why the processes that it starts have no outer namespace, where they are confined.
    #[must_use]
    pub fn no_outer(&self) -> Option<&str> {
        self.identity.confined.as_ref()?.no_outer.as_ref().map(|why| why.0.as_str())
    }

    /// Random for each start; approvals are bound to it. 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn server_start_id(&self) -> &str {
        &self.identity.server_start_id
    }

    /// SHA-256 over what was started and how; 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn launch_config_digest(&self) -> &str {
        &self.identity.launch_config_digest
    }

    /// The private channel into the server.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Becomes Some once the server has ended and everything it left was ended too, whoever ended it.
    #[must_use]
    pub fn exited(&self) -> watch::Receiver<Option<ExitReport>> {
        self.running.exited()
    }

    /// The last lines of its output, redacted, at most 40.
    #[must_use]
    pub fn log_tail(&self) -> Vec<String> {
        self.running.output.tail()
    }

    /// End the server and everything it started: SIGTERM to its group, at most `grace` for it to end, SIGKILL, then
    /// whatever outlived it. Also right after it ended by itself. Takes `grace` and 45 s at most.
    pub async fn stop(&self, grace: Duration) -> StopReport {
        let mut exit = self.running.exit_within(Duration::ZERO).await;
        if exit.is_none() {
            self.running.child.terminate();
            exit = self.running.exit_within(grace).await;
        }
        if exit.is_none() {
            exit = self.running.kill().await;
        }
        StopReport::of(exit)
    }

    /// The listening socket stays ours for as long as this value lives.
    #[must_use]
    pub fn listener(&self) -> &TcpListener {
        &self.identity.listener
    }
}
