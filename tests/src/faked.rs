//! A daemon whose Agent Server is the fake one.

#![expect(clippy::unwrap_used, reason = "what cannot be set up ends the test")]

use crate::{Scene, SmallDisk};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use testkit::Outcome;
use testkit::daemon::{SERVER_VERSION, Setup};
use testkit::fake_server::{Plan, install, routes_asked, set_plan};

/// What only looks, or watches: everything else changes something.
const READS: [&str; 9] = [
    "server_info",
    "auth_probe",
    "init_probe",
    "conversation",
    "events_page",
    "events_stream",
    "llm_profile_status",
    "find_agent_profile",
    "materialize",
];
/// What can make the agent act.
const STEPS: [&str; 4] = ["send_message", "run", "accept", "condense"];

/// The directory of a fake server that a daemon launches.
#[derive(Debug)]
pub struct Faked {
    directory: TempDir,
    /// What the daemon launches.
    pub executable: PathBuf,
}

impl Faked {
    /// A server that follows this plan and runs what is let through.
    ///
    /// # Panics
    /// When its directory cannot be written or read.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let faked = Self::of(|directory| install(directory, SERVER_VERSION));
        faked.follow(plan);
        faked
    }

    /// A server that was laid out in another way.
    ///
    /// # Panics
    /// When its directory cannot be written or read.
    #[must_use]
    pub fn of(lay_out: impl FnOnce(&Path) -> Outcome<PathBuf>) -> Self {
        let directory = tempfile::Builder::new().prefix("gp-env-").tempdir().unwrap();
        let executable = lay_out(directory.path()).unwrap();
        Self { directory, executable }
    }

    /// Follows another plan from now on.
    ///
    /// # Panics
    /// When its directory cannot be written or read.
    pub fn follow(&self, plan: Plan) {
        set_plan(self.directory.path(), &Plan { runs_commands: true, ..plan }).unwrap();
    }

    /// A daemon with this server.
    ///
    /// # Panics
    /// When its directory cannot be written or read.
    #[must_use]
    pub fn scene(&self) -> Scene {
        self.scene_with(|_setup| {})
    }

    /// The same with a changed setup.
    ///
    /// # Panics
    /// When its directory cannot be written or read.
    #[must_use]
    pub fn scene_with(&self, change: impl FnOnce(&mut Setup)) -> Scene {
        Scene::with(|setup| {
            *setup = setup.clone().with_executable(&self.executable);
            change(setup);
        })
    }

    /// A daemon with this server, whose state is on a small disk: for a test [in its own mounts](crate::in_own_mounts).
    ///
    /// # Panics
    /// When it cannot be mounted, or a directory cannot be written or read.
    #[must_use]
    pub fn scene_on_small_disk(&self) -> (Scene, SmallDisk) {
        Scene::prepared(|setup| *setup = setup.clone().with_executable(&self.executable), SmallDisk::under_state_of)
    }

    /// The requests so far that changed something, by their names in the contract; empty for one outside it.
    ///
    /// # Panics
    /// When its directory cannot be written or read.
    #[must_use]
    pub fn changes(&self) -> Vec<String> {
        let mut routes = routes_asked(self.directory.path()).unwrap();
        routes.retain(|route| !READS.contains(&route.as_str()));
        routes
    }

    /// The requests so far that could make the agent act.
    ///
    /// # Panics
    /// When its directory cannot be written or read.
    #[must_use]
    pub fn steps(&self) -> Vec<String> {
        let mut changes = self.changes();
        changes.retain(|route| STEPS.contains(&route.as_str()));
        changes
    }

    /// Every request so far.
    ///
    /// # Panics
    /// When its directory cannot be written or read.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        routes_asked(self.directory.path()).unwrap()
    }

    /// How often a route was asked for so far.
    ///
    /// # Panics
    /// When its directory cannot be written or read.
    #[must_use]
    pub fn asked_for(&self, route: &str) -> usize {
        self.asked().iter().filter(|asked| *asked == route).count()
    }
}
