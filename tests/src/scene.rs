//! A scripted model, a daemon in a temporary directory, and its real server, started on demand.

#![expect(clippy::unwrap_used, reason = "what cannot be set up ends the test")]

use crate::marker::Marker;
use crate::session::Session;
use crate::typed::typed;
use crate::wait::{LIMIT, wait_until};
use api_types::{SessionSnapshot, SpareState, Status};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use testkit::daemon::{Client, Daemon, Home, Setup, unprivileged_install};
use testkit::model::ScriptedModel;

/// One scene at a time: two servers at once on a small machine are slow enough to time out.
static TURN: Mutex<()> = Mutex::new(());

/// The model, the directory and the daemon of one test. A test holds one at a time.
pub struct Scene {
    model: ScriptedModel,
    home: Home,
    daemon: Option<Daemon>,
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    /// With the default setup. The server is started by the first session.
    ///
    /// # Panics
    /// When the daemon does not come up.
    #[must_use]
    pub fn start() -> Self {
        Self::with(|_setup| {})
    }

    /// With a changed setup.
    ///
    /// # Panics
    /// When the daemon does not come up.
    #[must_use]
    pub fn with(change: impl FnOnce(&mut Setup)) -> Self {
        Self::prepared(change, |_home| {}).0
    }

    /// The real server as an ordinary user, also where the tests run as root: root sees more than the agent does.
    ///
    /// # Panics
    /// When the daemon does not come up, or that user's server cannot be installed.
    #[must_use]
    pub fn ordinary() -> Self {
        Self::ordinary_with(|_setup| {})
    }

    /// The same with a changed setup.
    ///
    /// # Panics
    /// As [`Scene::ordinary`].
    #[must_use]
    pub fn ordinary_with(change: impl FnOnce(&mut Setup)) -> Self {
        if !host::hygiene::is_root() {
            return Self::with(change);
        }
        let install = unprivileged_install().unwrap();
        Self::with(|setup| {
            *setup = setup.clone().as_unprivileged(&install);
            change(setup);
        })
    }

    /// The same, with something done in the directory before the daemon is started; what that made is returned.
    ///
    /// # Panics
    /// When the daemon does not come up.
    #[must_use]
    pub fn prepared<T>(change: impl FnOnce(&mut Setup), prepare: impl FnOnce(&Home) -> T) -> (Self, T) {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let model = ScriptedModel::start().unwrap();
        let mut setup = Setup::new(&model.base_url());
        change(&mut setup);
        let home = Home::new(setup).unwrap();
        let prepared = prepare(&home);
        let daemon = home.serve().unwrap();
        (Self { model, home, daemon: Some(daemon), _turn: turn }, prepared)
    }

    /// The scripted model.
    #[must_use]
    pub fn model(&self) -> &ScriptedModel {
        &self.model
    }

    /// The directory.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The directory, to change its configuration before [`Scene::restart`].
    pub fn home_mut(&mut self) -> &mut Home {
        &mut self.home
    }

    /// The daemon.
    ///
    /// # Panics
    /// When it was stopped.
    #[must_use]
    pub fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    /// A client with the owner's token.
    #[must_use]
    pub fn client(&self) -> &Client {
        self.daemon().client()
    }

    /// The workspace that scenarios share, as the kernel resolves it.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.home.workspace().canonicalize().unwrap()
    }

    /// A marker in the shared workspace; each scenario takes a name of its own.
    #[must_use]
    pub fn marker(&self, name: &str) -> Marker {
        Marker::new(&self.workspace(), name)
    }

    /// A new session in the shared workspace.
    ///
    /// # Panics
    /// When it is not created.
    #[must_use]
    pub fn session(&self) -> Session {
        self.session_in(&self.workspace())
    }

    /// A new session in this workspace.
    ///
    /// # Panics
    /// When it is not created.
    #[must_use]
    pub fn session_in(&self, workspace: &Path) -> Session {
        self.create(&json!({"workspace": workspace}))
    }

    /// A new session from this request body.
    ///
    /// # Panics
    /// When it is not created.
    #[must_use]
    pub fn create(&self, body: &Value) -> Session {
        let reply = self.client().post("/v1/sessions", body).unwrap();
        let snapshot: SessionSnapshot = typed(&reply, &[201]);
        self.take_up(&snapshot.session_id)
    }

    /// A session that stands already.
    #[must_use]
    pub fn take_up(&self, session_id: &str) -> Session {
        Session::new(self.client().clone(), session_id)
    }

    /// One look at everything.
    ///
    /// # Panics
    /// When the daemon does not answer.
    #[must_use]
    pub fn status(&self) -> Status {
        typed(&self.client().get("/v1/status").unwrap(), &[200])
    }

    /// The process id of the shared workspace's server, while it is up.
    #[must_use]
    pub fn server_pid(&self) -> Option<u32> {
        let workspace = self.workspace().to_string_lossy().into_owned();
        self.status().servers.into_iter().find(|server| server.workspace == workspace)?.pid
    }

    /// Waits for a spare that waits, other than those that were `used`; its process id.
    ///
    /// # Panics
    /// When none comes to wait.
    #[must_use]
    #[track_caller]
    pub fn wait_spare(&self, used: &[u32]) -> u32 {
        // It imports while the machine does other things.
        wait_until("a spare to wait", LIMIT * 4, || {
            let spare = self.status().spare.unwrap();
            spare.pid.filter(|pid| spare.state == SpareState::Waiting && !used.contains(pid))
        })
    }

    /// Stops the daemon as a service manager does; nothing may be left of its tree.
    ///
    /// # Panics
    /// When it ends badly or leaves a process.
    pub fn stop_daemon(&mut self) {
        let stopped = self.daemon.take().unwrap().stop().unwrap();
        assert!(stopped.status.success(), "the daemon ended with {}", stopped.status);
        assert_eq!(stopped.leftovers, [], "processes were left");
    }

    /// Stops the daemon and starts it again on the same directory.
    ///
    /// # Panics
    /// When it does not stop or does not come up.
    pub fn restart(&mut self) {
        self.stop_daemon();
        self.serve_again();
    }

    /// Waits for the daemon to end by itself, as one that was killed at a named point does.
    ///
    /// # Panics
    /// When it does not end.
    pub fn daemon_ended(&mut self) {
        self.daemon.take().unwrap().wait_end(LIMIT).unwrap();
    }

    /// Kills the daemon as a crash does. What it leaves is for the next start to end.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub fn kill_daemon(&mut self) {
        self.daemon.take().unwrap().kill().unwrap();
    }

    /// Starts the daemon again on the same directory, after it was stopped or killed.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn serve_again(&mut self) {
        self.daemon = Some(self.home.serve().unwrap());
    }

    /// The end of the test.
    ///
    /// # Panics
    /// When the daemon ends badly or leaves a process.
    pub fn finish(mut self) {
        self.stop_daemon();
    }
}
