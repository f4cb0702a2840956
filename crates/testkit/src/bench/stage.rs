//! A daemon on the fake server, with sessions whose log has some length.

use super::line::Line;
use crate::daemon::{Daemon, Home, SERVER_VERSION, Setup};
use crate::failure::{Doing, Failure, Outcome};
use crate::fake_server::{Plan, install, routes_asked, set_plan};
use crate::soak::daemon::is_quiet;
use crate::talk::Talk;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a session may take to come to rest.
const REST_LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);
/// So long nothing is asked of the server when everything is read.
const SILENCE: Duration = Duration::from_millis(400);

/// The daemon, and what it launches.
pub(super) struct Stage {
    daemon: Daemon,
    home: Home,
    environment: TempDir,
}

impl Stage {
    /// With a server that stores nothing, so that a long log costs it nothing.
    pub(super) fn start() -> Outcome<Self> {
        Self::start_with("")
    }

    /// The same with further tables of the configuration.
    pub(super) fn start_with(tables: &str) -> Outcome<Self> {
        let environment = tempfile::Builder::new().prefix("gp-env-").tempdir().doing("no temporary directory")?;
        let executable = install(environment.path(), SERVER_VERSION)?;
        let mut setup = Setup::new("http://127.0.0.1:9/v1").with_executable(&executable);
        setup.model = "choices = [\"openai/scripted\", \"openai/other\"]".to_owned();
        setup.tables = tables.to_owned();
        let home = Home::new(setup)?;
        set_plan(environment.path(), &plan(0))?;
        let daemon = home.serve()?;
        Ok(Self { daemon, home, environment })
    }

    pub(super) fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// A session whose conversation begins with so many events, all of them read and journaled.
    pub(super) fn session(&self, events: u64) -> Outcome<Talk> {
        set_plan(self.environment.path(), &plan(events))?;
        let workspace = self.home.workspace().canonicalize().doing("no workspace")?;
        Talk::start(self.daemon.client(), &workspace.to_string_lossy())
    }

    /// So many sessions, all at rest.
    pub(super) fn sessions(&self, count: usize, events: u64) -> Outcome<Vec<Talk>> {
        let sessions = (0..count).map(|_| self.session(events)).collect::<Outcome<Vec<Talk>>>()?;
        sessions.iter().try_for_each(at_rest)?;
        self.silence()?;
        Ok(sessions)
    }

    /// The daemon stopped, with its directory: to start it again.
    pub(super) fn stop(self) -> Outcome<()> {
        let stopped = self.daemon.stop()?;
        if stopped.status.success() && stopped.leftovers.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!("the daemon ended with {} and left {:?}", stopped.status, stopped.leftovers)))
    }

    /// A kept connection with the owner's token.
    pub(super) fn line(&self) -> Outcome<Line> {
        Line::to_daemon(&self.home.socket(), &self.home.owner_token()?)
    }

    /// The requests that the server was sent so far.
    pub(super) fn asked(&self) -> Outcome<Vec<String>> {
        routes_asked(self.environment.path())
    }

    /// Waits until nothing is asked of the server any more; how many requests there were so far.
    pub(super) fn silence(&self) -> Outcome<usize> {
        let begun = Instant::now();
        loop {
            let before = self.asked()?.len();
            thread::sleep(SILENCE);
            if self.asked()?.len() == before {
                return Ok(before);
            }
            if begun.elapsed() > REST_LIMIT {
                return Err(Failure::new("the server is asked without an end"));
            }
        }
    }
}

/// The server's plan: storing nothing, with conversations that begin with so many events.
fn plan(events: u64) -> Plan {
    Plan { forgets: true, begins_with_events: events, runs_commands: true, ..Plan::default() }
}

/// Waits until a session's stream is open and its agent rests.
pub(super) fn at_rest(session: &Talk) -> Outcome<()> {
    let begun = Instant::now();
    loop {
        let snapshot = session.snapshot()?;
        if is_quiet(&snapshot) && snapshot["values"]["event_stream"] != "connecting" {
            return Ok(());
        }
        if begun.elapsed() > REST_LIMIT {
            return Err(Failure::new(format!("a session does not come to rest: {snapshot}")));
        }
        thread::sleep(LOOK);
    }
}
