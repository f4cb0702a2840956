//! The daemon on fake servers that keep a journal, with the sessions of a run.

use super::pace::{Clock, Pace};
use crate::daemon::{Client, Daemon, Home, SERVER_VERSION, Setup};
use crate::failure::{Doing, Outcome};
use crate::fake_server::{Entry, Plan, install, journal, set_plan};
use crate::talk::Talk;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Servers, one for each workspace: as many as the daemon has at once unless told otherwise.
const WORKSPACES: usize = 4;
/// How long a reply may take.
const REPLY_LIMIT: Duration = Duration::from_secs(60);

/// What lives as long as the run.
pub(super) struct Stage {
    daemon: Daemon,
    home: Home,
    environment: TempDir,
    client: Client,
    workspaces: Vec<PathBuf>,
}

/// A session of the run.
pub(super) struct Session {
    pub(super) talk: Talk,
    /// The highest number of an event that a reader has.
    events: AtomicU64,
    /// Until when nobody looks at it, in milliseconds of the run: long enough for it to rest.
    left_alone_until_ms: AtomicU64,
}

impl Session {
    pub(super) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    pub(super) fn has_events(&self, events: u64) {
        self.events.fetch_max(events, Ordering::Relaxed);
    }

    /// Lets nobody look at it for so long, but not beyond the time of turns.
    pub(super) fn leave_alone(&self, time: Duration, clock: &Clock) {
        let until = (clock.elapsed() + time).min(clock.pace.turns_until);
        self.left_alone_until_ms.store(u64::try_from(until.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn is_left_alone(&self, clock: &Clock) -> bool {
        clock.elapsed().as_millis() < u128::from(self.left_alone_until_ms.load(Ordering::Relaxed))
    }
}

/// What a stopped run left behind.
pub(super) struct Stopped {
    pub(super) journal: Vec<Entry>,
    pub(super) processes: Vec<String>,
    /// Whether the daemon ended as it was told to.
    pub(super) cleanly: bool,
    /// Directories of the run that could not be removed.
    pub(super) directories: Vec<PathBuf>,
}

impl Stage {
    pub(super) fn start(pace: &Pace) -> Outcome<Self> {
        let environment = tempfile::Builder::new().prefix("gp-env-").tempdir().doing("no temporary directory")?;
        let executable = install(environment.path(), SERVER_VERSION)?;
        let mut setup = Setup::new("http://127.0.0.1:9/v1").with_executable(&executable);
        setup.agent_server = format!("max_servers = {WORKSPACES}");
        setup.tables = format!("[events]\nrest_after_s = {}\n", pace.rest_after_s);
        let home = Home::new(setup)?;
        // It stores nothing but its journal: its store is written anew with each event.
        set_plan(environment.path(), &Plan { forgets: true, keeps_journal: true, ..Plan::default() })?;
        let mut workspaces = Vec::new();
        for number in 0..WORKSPACES {
            let workspace = home.new_workspace(&format!("soak-{number}"))?;
            workspaces.push(workspace.canonicalize().doing("no workspace")?);
        }
        let daemon = home.serve()?;
        let client = daemon.client().clone().with_timeout(REPLY_LIMIT);
        Ok(Self { daemon, home, environment, client, workspaces })
    }

    /// With the owner's token.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// So many sessions, spread over the workspaces.
    pub(super) fn sessions(&self, count: usize) -> Outcome<Vec<Session>> {
        let workspaces = self.workspaces.iter().cycle().take(count);
        let start = |workspace: &PathBuf| {
            let talk = Talk::start(&self.client, &workspace.to_string_lossy())?;
            Ok(Session { talk, events: AtomicU64::new(0), left_alone_until_ms: AtomicU64::new(0) })
        };
        workspaces.map(start).collect()
    }

    /// Stops the daemon, calls `look` while its state is still there, and removes everything.
    pub(super) fn stop<T>(self, look: impl FnOnce(&Home) -> Outcome<T>) -> Outcome<(T, Stopped)> {
        let stopped = self.daemon.stop()?;
        let looked = look(&self.home)?;
        let journal = journal(self.environment.path())?;
        let mut directories = vec![self.home.path().to_owned(), self.environment.path().to_owned()];
        drop((self.home, self.environment));
        directories.retain(|directory| directory.exists());
        let processes = stopped.leftovers.into_iter().map(|left| format!("{} {}", left.pid, left.command)).collect();
        Ok((looked, Stopped { journal, processes, cleanly: stopped.status.success(), directories }))
    }
}
