//! What the processes that a server starts may reach: the plan that the wrapper reads, and the rules of the kernel's that a
//! thread of the server itself goes by.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rules::confinement::{Plan, Policy};
use serde::{Deserialize, Serialize};

use super::LaunchError;
use super::layout::Layout;
use super::outer::{self, NoOuter};
use super::shape::Program;
use crate::confine;

/// Variables of the server's that no process it starts is given.
const STRIPPED: [&str; 5] = ["GATEPOST_", "LITELLM_", "LOG_", "OH_", "OPENHANDS_"];

/// Most directories of PATH that may be read besides the system's own; a plan holds 64 entries.
const MAX_PROGRAM_DIRECTORIES: usize = 48;

/// What confines the processes that a server starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confining {
    /// The gatepost binary: called with a plan, it confines itself and becomes another program.
    pub wrapper: PathBuf,
    /// Where the work is, resolved.
    pub workspace: PathBuf,
    /// The owner's home, whose git settings and toolchains may be read.
    pub owner_home: PathBuf,
}

/// What a process of the agent's tries to reach.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeTargets {
    /// The server's process.
    pub server_pid: u32,
    /// The daemon's process.
    pub daemon_pid: u32,
    /// The daemon's state directory.
    pub state_dir: PathBuf,
    /// The daemon's socket.
    pub socket: PathBuf,
    /// A named socket of the daemon's that anyone of its user could connect to.
    pub outside_socket: PathBuf,
    /// A terminal of the daemon's.
    pub terminal: PathBuf,
    /// The owner's home.
    pub home: PathBuf,
    /// Of a file that is not there, and of the socket with an abstract name that listens meanwhile. At most 100 bytes.
    pub random_name: String,
}

/// The descriptors that a server gets.
pub(crate) struct Bounds {
    /// The plan, for the wrapper.
    pub(crate) plan: OwnedFd,
    /// The rules, for a thread.
    pub(crate) domain: OwnedFd,
    /// The words that start a process in an outer namespace, or why there is none.
    pub(crate) outer: Result<Vec<OsString>, NoOuter>,
}

impl Confining {
    pub(crate) fn bounds(&self, program: &Program, layout: &Layout, path: &OsStr) -> Result<Bounds, LaunchError> {
        let refused = |error: &dyn std::fmt::Display| LaunchError::Confinement(error.to_string());
        self.check(program, layout)?;
        let plan = self.plan(program, layout, path);
        let bytes = plan.to_bytes().map_err(|error| refused(&error))?;
        let policy = Policy::reviewed().map_err(|error| refused(&error))?;
        let domain = confine::prepare(&policy, &plan).map_err(|error| refused(&error))?.into_domain();
        let domain = domain.map_err(|error| refused(&error))?;
        let outer = outer::prefix(path, &confine::file_grants(&policy, &plan));
        let plan = host::memfile::memfile("gatepost-plan", &bytes).map_err(|error| refused(&error))?;
        Ok(Bounds { plan, domain, outer })
    }

    /// What the agent may write must not be what confines it.
    fn check(&self, program: &Program, layout: &Layout) -> Result<(), LaunchError> {
        let own = environment(program).into_iter().chain([self.wrapper.clone(), layout.data.clone()]);
        let Some(own) = own.map(|own| resolved(&own)).find(|own| own.starts_with(&self.workspace)) else {
            return Ok(());
        };
        let (workspace, own) = (self.workspace.display(), own.display());
        Err(LaunchError::Confinement(format!(
            "{own} is gatepost's own and lies in the workspace {workspace}; choose another"
        )))
    }

    fn plan(&self, program: &Program, layout: &Layout, path: &OsStr) -> Plan {
        let home = resolved(&self.owner_home);
        let kept = [home.clone(), resolved(&layout.data)];
        let mut plan = Plan::new(self.workspace.clone(), resolved(&layout.tmp), home);
        plan.writable = vec![resolved(&layout.agent_home), resolved(&layout.tmux)];
        plan.environment = fit(environment(program), &kept);
        plan.readable = fit(std::env::split_paths(path).collect(), &kept);
        plan.readable.truncate(MAX_PROGRAM_DIRECTORIES);
        // It is what tries the confinement from within.
        plan.readable.push(resolved(&self.wrapper));
        plan.strip_environment = STRIPPED.map(str::to_owned).to_vec();
        plan
    }
}

/// The virtual environment, and the Python it is made from.
fn environment(program: &Program) -> Vec<PathBuf> {
    let root = program.root();
    let python = fs::canonicalize(root.join("bin/python")).ok();
    let base = python.as_deref().and_then(|python| python.parent()?.parent()).map(Path::to_path_buf);
    [Some(root.to_path_buf()), base].into_iter().flatten().collect()
}

/// Those that are there, each once and resolved. What holds the owner's home or the server's data is left out: who has a
/// directory of programs there would have everything.
fn fit(directories: Vec<PathBuf>, kept: &[PathBuf]) -> Vec<PathBuf> {
    let mut fit: Vec<PathBuf> = Vec::new();
    let readable = directories.iter().filter_map(|directory| directory.canonicalize().ok());
    for directory in readable.filter(|directory| directory.to_str().is_some()) {
        // Directly in a home, such a directory holds settings and keys.
        let is_hidden = directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
            && kept.iter().any(|kept| directory.parent() == Some(kept));
        if is_hidden || kept.iter().any(|kept| kept.starts_with(&directory)) {
            tracing::warn!(directory = %directory.display(), "not readable to the agent: the owner's files are below it");
        } else if !fit.contains(&directory) {
            fit.push(directory);
        }
    }
    fit
}

/// The path as it is where it cannot be resolved: nothing is granted then.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_confines_the_agent_is_not_in_its_workspace() {
        let directory = tempfile::tempdir().expect("dir");
        let root = directory.path().canonicalize().expect("root");
        let install = |place: &str| {
            let root = root.join(place);
            fs::create_dir_all(root.join("bin")).expect("dir");
            Program::Own(crate::own::OwnInstall {
                executable: root.join("bin/agent-server"),
                executable_sha256: String::new(),
                root,
                distributions: std::collections::BTreeMap::new(),
            })
        };
        let layout = |place: &str| Layout::make(&root.join(place), None, &[]).expect("layout");
        let confining = |wrapper: &str| Confining {
            wrapper: root.join(wrapper),
            workspace: root.join("work"),
            owner_home: root.join("home"),
        };
        fs::create_dir_all(root.join("work/bin")).expect("dir");
        fs::write(root.join("work/bin/gatepost"), "").expect("file");
        for (wrapper, environment, data, is_fit) in [
            ("gatepost", "env", "data", true),
            ("work/bin/gatepost", "env", "data", false),
            ("gatepost", "work/env", "data", false),
            ("gatepost", "env", "work/data", false),
        ] {
            let fit = confining(wrapper).check(&install(environment), &layout(data)).is_ok();
            assert_eq!(fit, is_fit, "{wrapper} {environment} {data}");
        }
    }

    #[test]
    fn a_directory_that_holds_what_is_kept_is_left_out() {
        let directory = tempfile::tempdir().expect("dir");
        let root = directory.path().canonicalize().expect("root");
        let path = |name: &str| root.join(name);
        for name in ["home/data", "home/bin", "programs", "home/.ssh", "home/.cargo/bin"] {
            fs::create_dir_all(path(name)).expect("dir");
        }
        std::os::unix::fs::symlink(path("home"), path("link")).expect("link");
        let given = [
            "home",
            "link",
            "programs",
            "home/bin",
            "programs/../programs",
            "missing",
            "home/data",
            "home/.ssh",
            "home/.cargo/bin",
            "",
        ];
        let given: Vec<PathBuf> = given.map(path).into_iter().chain(["/".into()]).collect();
        let kept = [path("home"), path("home/data")];
        assert_eq!(fit(given, &kept), [path("programs"), path("home/bin"), path("home/.cargo/bin")]);
    }
}
