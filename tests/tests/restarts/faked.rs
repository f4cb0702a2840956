//! A daemon whose Agent Server is the fake one: it is fast to start, and misbehaves when told to.

use gatepost_tests::Scene;
use std::path::PathBuf;
use tempfile::TempDir;
use testkit::daemon::SERVER_VERSION;
use testkit::fake_server::{Plan, install, routes_asked, set_plan};

/// The directory of a fake server that a daemon launches.
pub(crate) struct Faked {
    directory: TempDir,
    executable: PathBuf,
}

impl Faked {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("gp-env-").tempdir().unwrap();
        let executable = install(directory.path(), SERVER_VERSION).unwrap();
        let faked = Self { directory, executable };
        faked.follow(Plan::default());
        faked
    }

    /// Follows another plan from now on.
    pub(crate) fn follow(&self, plan: Plan) {
        set_plan(self.directory.path(), &Plan { runs_commands: true, ..plan }).unwrap();
    }

    /// How often a route was asked for.
    pub(crate) fn asked(&self, route: &str) -> usize {
        routes_asked(self.directory.path()).unwrap().iter().filter(|asked| *asked == route).count()
    }

    /// A daemon with this server, and these lines in its `[agent_server]` table.
    pub(crate) fn scene(&self, agent_server: &str) -> Scene {
        Scene::with(|setup| {
            *setup = setup.clone().with_executable(&self.executable);
            setup.agent_server = agent_server.to_owned();
        })
    }
}
