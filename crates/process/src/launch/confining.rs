//! What the processes that a server starts may reach: the plan that the wrapper reads, and the rules of the kernel's that a
//! thread of the server itself goes by.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rules::confinement::{Plan, Policy};
use serde::{Deserialize, Serialize};

use super::LaunchError;
use super::layout::Layout;
use super::shape::Program;
use crate::confine;

/// Variables of the server's that no process it starts is given.
const STRIPPED: [&str; 5] = ["GATEPOST_", "LITELLM_", "LOG_", "OH_", "OPENHANDS_"];

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
}

impl Confining {
    pub(crate) fn bounds(&self, program: &Program, layout: &Layout, path: &OsStr) -> Result<Bounds, LaunchError> {
        let refused = |error: &dyn std::fmt::Display| LaunchError::Confinement(error.to_string());
        let plan = self.plan(program, layout, path);
        let bytes = plan.to_bytes().map_err(|error| refused(&error))?;
        let policy = Policy::reviewed().map_err(|error| refused(&error))?;
        let domain = confine::prepare(&policy, &plan).map_err(|error| refused(&error))?.into_domain();
        let plan = host::memfile::memfile("gatepost-plan", &bytes).map_err(|error| refused(&error))?;
        Ok(Bounds { plan, domain: domain.map_err(|error| refused(&error))? })
    }

    fn plan(&self, program: &Program, layout: &Layout, path: &OsStr) -> Plan {
        let mut plan = Plan::new(self.workspace.clone(), resolved(&layout.tmp), resolved(&self.owner_home));
        plan.writable = vec![resolved(&layout.agent_home), resolved(&layout.tmux)];
        plan.environment = environment(program);
        // A directory of programs is granted as it is, whoever's it is.
        plan.readable = std::env::split_paths(path).filter_map(|directory| directory.canonicalize().ok()).collect();
        plan.readable.retain(|directory| directory.parent().is_some());
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
    [Some(resolved(root)), base].into_iter().flatten().filter(|directory| directory.parent().is_some()).collect()
}

/// The path as it is where it cannot be resolved: nothing is granted then.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
