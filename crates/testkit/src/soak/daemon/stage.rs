//! The daemon with its model and its server, killed and started again at will.

use crate::daemon::{Client, Daemon, Home, Setup, built_binary, gatepost_binary};
use crate::failure::{Doing, Failure, Outcome};
use crate::guards::Guard;
use crate::marks::Marks;
use crate::model::ScriptedModel;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// How long a reply may take: a server may have to be started first.
const REPLY_LIMIT: Duration = Duration::from_secs(180);

/// Everything that outlives a sequence.
pub(crate) struct Stage {
    latch: bool,
    _model: ScriptedModel,
    _binary: TempDir,
    home: Home,
    daemon: Mutex<Option<Daemon>>,
    client: Client,
    workspace: PathBuf,
    pub(super) marks: Mutex<Marks>,
    server_starts: Mutex<BTreeSet<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stage {
    /// Starts a daemon: the one that ships, or the one whose latch inside the server lets everything run.
    pub(crate) fn start(latch: bool) -> Outcome<Self> {
        let built = if latch { gatepost_binary()? } else { built_binary("gatepost-tests", "gatepost-latch-off")? };
        // A copy: whoever builds meanwhile does not change what is started again after a kill.
        let directory = tempfile::Builder::new().prefix("gp-soak-").tempdir().doing("no temporary directory")?;
        let binary = directory.path().join("gatepost");
        std::fs::copy(&built, &binary).doing("the binary could not be copied")?;
        let model = ScriptedModel::start().doing("no model")?;
        let mut setup = Setup::new(&model.base_url());
        setup.binary = Some(binary);
        let home = Home::new(setup)?;
        // Where the agent's commands may write.
        let marks = Marks::new(home.workspace().join("marks"))?;
        let daemon = home.serve()?;
        let client = daemon.client().clone().with_timeout(REPLY_LIMIT);
        let workspace = home.workspace().canonicalize().doing("no workspace")?;
        Ok(Self {
            latch,
            _model: model,
            _binary: directory,
            home,
            daemon: Mutex::new(Some(daemon)),
            client,
            workspace,
            marks: Mutex::new(marks),
            server_starts: Mutex::default(),
        })
    }

    /// With the owner's token, across restarts of the daemon.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn marks(&self) -> MutexGuard<'_, Marks> {
        lock(&self.marks)
    }

    /// Notes which start of the server is up; its process, when it is.
    pub(crate) fn note_server(&self) -> Outcome<Option<u32>> {
        let status = self.client.get("/v1/status")?.expect_status(200)?;
        let workspace = self.workspace.to_string_lossy().into_owned();
        let servers = status["servers"].as_array().into_iter().flatten();
        let Some(server) = servers.into_iter().find(|server| server["workspace"] == workspace.as_str()) else {
            return Ok(None);
        };
        if let Some(start) = server["server_start_id"].as_str() {
            lock(&self.server_starts).insert(start.to_owned());
        }
        Ok(server["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()))
    }

    pub(crate) fn server_starts(&self) -> usize {
        lock(&self.server_starts).len()
    }

    /// Kills the server with SIGKILL; whether one was up.
    pub(crate) fn kill_server(&self) -> Outcome<bool> {
        let Some(pid) = self.note_server()?.and_then(|pid| Pid::from_raw(pid.cast_signed())) else { return Ok(false) };
        Ok(kill_process(pid, Signal::KILL).is_ok())
    }

    /// Kills the daemon with SIGKILL. It stays down until [`Stage::revive`].
    pub(crate) fn kill_daemon(&self) -> Outcome<()> {
        match lock(&self.daemon).take() {
            Some(daemon) => daemon.kill(),
            None => Ok(()),
        }
    }

    /// Starts the daemon again when it is down.
    pub(crate) fn revive(&self) -> Outcome<()> {
        let mut daemon = lock(&self.daemon);
        if daemon.is_none() {
            *daemon = Some(self.home.serve()?);
        }
        Ok(())
    }

    /// The ids of every open session.
    pub(crate) fn sessions(&self) -> Outcome<Vec<String>> {
        let list = self.client.get("/v1/sessions")?.expect_status(200)?;
        let sessions = list["sessions"].as_array().into_iter().flatten();
        Ok(sessions.filter_map(|session| session["session_id"].as_str().map(str::to_owned)).collect())
    }

    /// Whether the module inside the server is the one that this run is about.
    ///
    /// # Errors
    /// When the latch is there and should not be, or the other way round.
    pub(crate) fn check_latch(&self) -> Outcome<()> {
        let bindings = std::fs::read_dir(self.home.state().join("bindings")).doing("no server was started")?;
        for binding in bindings.flatten() {
            // One directory, of its start alone.
            let starts = std::fs::read_dir(binding.path().join("startup")).doing("no start-up module")?;
            let files = starts.flatten().filter_map(|start| std::fs::read_dir(start.path()).ok()).flatten().flatten();
            let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
            if Guard::Latch.stands_in(&texts.collect::<String>()) == self.latch {
                return Ok(());
            }
        }
        Err(Failure::new("the server was started with another start-up module than this run is about"))
    }

    /// A new session.
    pub(crate) fn new_session(&self) -> Outcome<String> {
        let body = serde_json::json!({"workspace": self.workspace});
        let snapshot: Value = self.client.post("/v1/sessions", &body)?.expect_status(201)?;
        let id = snapshot["session_id"].as_str().map(str::to_owned);
        id.ok_or_else(|| Failure::new("a session without an id"))
    }

    /// Stops the daemon; how many processes it left.
    pub(crate) fn stop(&self) -> Outcome<usize> {
        let Some(daemon) = lock(&self.daemon).take() else { return Ok(0) };
        let stopped = daemon.stop()?;
        if !stopped.status.success() {
            return Err(Failure::new(format!("the daemon ended with {}", stopped.status)));
        }
        Ok(stopped.leftovers.len())
    }
}
