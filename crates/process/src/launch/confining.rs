//! What the processes that a server starts may reach: the plan that the wrapper reads, and the rules of the kernel's that a
//! thread of the server itself goes by.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rules::confinement::{Identity, Plan, Policy};
use serde::{Deserialize, Serialize};

use super::LaunchError;
use super::further::{self, FurtherGrants};
use super::layout::Layout;
use super::outer::{self, NoOuter, Outer};
use super::shape::{DOMAIN_FD, OUTER_FD, PLAN_FD, Program, WRAPPER_FD};
use crate::confine;

/// Variables of the server's that no process it starts is given.
const STRIPPED: [&str; 5] = ["GATEPOST_", "LITELLM_", "LOG_", "OH_", "OPENHANDS_"];

/// Most directories of PATH that may be read besides the system's own; a plan holds 64 entries.
const MAX_PROGRAM_DIRECTORIES: usize = 48;

/// The gatepost binary, which confines itself and becomes another program when it is called with a plan. It is held open:
/// after an upgrade it is still this one that is executed.
#[derive(Debug, Clone)]
pub struct WrapperProgram {
    path: PathBuf,
    file: Arc<OwnedFd>,
}

impl WrapperProgram {
    /// Where it was when this process started.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The program that the calling process runs, even when another stands in its place by now.
    ///
    /// # Errors
    /// When the kernel does not say which it is.
    pub fn own() -> io::Result<Self> {
        let path = std::env::current_exe()?;
        let running = if cfg!(target_os = "linux") { Path::new("/proc/self/exe") } else { &path };
        let file = Arc::new(host::confine::open_program(running)?);
        Ok(Self { path, file })
    }
}

/// What confines the processes that a server starts.
#[derive(Debug, Clone)]
pub struct Confining {
    /// What confines itself and becomes another program.
    pub wrapper: WrapperProgram,
    /// Where the work is, resolved.
    pub workspace: PathBuf,
    /// The owner's home, whose git settings and toolchains may be read.
    pub owner_home: PathBuf,
    /// What the configuration grants besides.
    pub further: FurtherGrants,
    /// Directories and files of gatepost's own: configuration, state, runtime.
    pub kept: Vec<PathBuf>,
}

/// What a process of the agent's tries to reach.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeTargets {
    /// The server's process.
    pub server_pid: u32,
    /// The daemon's process.
    pub daemon_pid: u32,
    /// The guards of the server's tree.
    pub guard_pids: Vec<u32>,
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
    plan: OwnedFd,
    /// The rules, for a thread; macOS can confine whole processes only.
    domain: Option<OwnedFd>,
    /// The wrapper itself.
    wrapper: OwnedFd,
    /// What starts a process in an outer namespace, or why there is none.
    outer: Result<Outer, NoOuter>,
    /// What is to be known of what may be reached.
    notes: Vec<String>,
}

/// What is known of a server's confinement from its start on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Confined {
    /// Why there is no outer namespace, where there is none.
    pub(crate) no_outer: Option<NoOuter>,
    /// What is to be known of what may be reached, in words.
    pub(crate) notes: Vec<String>,
}

impl Bounds {
    /// Whether what the server starts is given an outer namespace, which is made by mounts.
    pub(crate) fn has_outer(&self) -> bool {
        self.outer.is_ok()
    }

    /// The words that start a process in the outer namespace; none without one.
    pub(crate) fn prefix(&self) -> Vec<OsString> {
        self.outer.as_ref().map(|outer| outer.words.clone()).unwrap_or_default()
    }

    /// Whether a thread of the server's own can be confined.
    pub(crate) fn has_domain(&self) -> bool {
        self.domain.is_some()
    }

    pub(crate) fn told(&self) -> Confined {
        Confined { no_outer: self.outer.as_ref().err().cloned(), notes: self.notes.clone() }
    }

    /// Each with its number in the server.
    pub(crate) fn into_descriptors(self) -> Vec<(OwnedFd, i32)> {
        let outer = self.outer.ok().map(|outer| (outer.program, OUTER_FD));
        let domain = self.domain.map(|domain| (domain, DOMAIN_FD));
        [(self.plan, PLAN_FD), (self.wrapper, WRAPPER_FD)].into_iter().chain(domain).chain(outer).collect()
    }
}

impl Confining {
    pub(crate) fn bounds(&self, program: &Program, layout: &Layout, path: &OsStr) -> Result<Bounds, LaunchError> {
        let refused = |error: &dyn std::fmt::Display| LaunchError::Confinement(error.to_string());
        let (plan, notes) = self.plan(program, layout, path);
        self.check(program, layout, &plan)?;
        let bytes = plan.to_bytes().map_err(|error| refused(&error))?;
        let policy = Policy::reviewed().map_err(|error| refused(&error))?;
        #[cfg(target_os = "linux")]
        let domain = {
            let domain = confine::prepare(&policy, &plan).map_err(|error| refused(&error))?.into_domain();
            Some(domain.map_err(|error| refused(&error))?)
        };
        #[cfg(not(target_os = "linux"))]
        let domain = None;
        let outer = outer::find(path, &confine::file_grants(&policy, &plan));
        let plan = host::memfile::memfile("gatepost-plan", &bytes).map_err(|error| refused(&error))?;
        let wrapper = self.wrapper.file.try_clone().map_err(|error| refused(&error))?;
        Ok(Bounds { plan, domain, wrapper, outer, notes })
    }

    /// What the agent may write must not be what confines it.
    fn check(&self, program: &Program, layout: &Layout, plan: &Plan) -> Result<(), LaunchError> {
        let own = environment(program).into_iter().chain([self.wrapper.path.clone(), layout.data.clone()]);
        let own: Vec<PathBuf> = own.map(|own| resolved(&own)).collect();
        // The data directory holds what of it the agent is to write.
        let granted = self.further.write.iter().filter(|directory| plan.writable.contains(directory));
        for (what, directory) in
            std::iter::once(("the workspace", &self.workspace)).chain(granted.map(|path| ("[confinement] write", path)))
        {
            if let Some(own) = own.iter().find(|own| own.starts_with(directory)) {
                let (directory, own) = (directory.display(), own.display());
                return Err(LaunchError::Confinement(format!(
                    "{own} is gatepost's own and lies in {what} {directory}; choose another"
                )));
            }
        }
        Ok(())
    }

    fn plan(&self, program: &Program, layout: &Layout, path: &OsStr) -> (Plan, Vec<String>) {
        let home = resolved(&self.owner_home);
        let kept = [home.clone(), resolved(&layout.data)];
        let mut plan = Plan::new(self.workspace.clone(), resolved(&layout.tmp), home);
        plan.writable = vec![resolved(&layout.agent_home), resolved(&layout.tmux)];
        let mut left_out = Vec::new();
        plan.environment = fit(environment(program), &kept, &mut left_out);
        plan.readable = fit(std::env::split_paths(path).collect(), &kept, &mut left_out);
        plan.readable.truncate(MAX_PROGRAM_DIRECTORIES - self.further.read.len());
        let mut notes = further::add(&self.further, &mut plan);
        notes.extend(left_out.iter().map(|directory| {
            format!("{} of PATH is not readable to commands: the owner's files are below it.", directory.display())
        }));
        let identified = |path: &PathBuf| {
            let (device, inode) = host::confine::identity(path).ok()?;
            Some((path.clone(), Identity { device, inode }))
        };
        plan.identities = plan.granted().filter_map(identified).collect();
        plan.kept = self.kept.iter().map(|kept| resolved(kept)).collect();
        plan.strip_environment = STRIPPED.map(str::to_owned).to_vec();
        (plan, notes)
    }
}

/// The virtual environment, and the Python it is made from.
fn environment(program: &Program) -> Vec<PathBuf> {
    let root = program.root();
    let python = fs::canonicalize(root.join("bin/python")).ok();
    let base = python.as_deref().and_then(|python| python.parent()?.parent()).map(Path::to_path_buf);
    [Some(root.to_path_buf()), base].into_iter().flatten().collect()
}

/// Those that are there, each once and resolved. What holds the owner's home or the server's data is left out, and told:
/// who has a directory of programs there would have everything.
fn fit(directories: Vec<PathBuf>, kept: &[PathBuf], left_out: &mut Vec<PathBuf>) -> Vec<PathBuf> {
    let mut fit: Vec<PathBuf> = Vec::new();
    let readable = directories.iter().filter_map(|directory| directory.canonicalize().ok());
    for directory in readable.filter(|directory| directory.to_str().is_some()) {
        // Directly in a home, such a directory holds settings and keys.
        let is_hidden = directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
            && kept.iter().any(|kept| directory.parent() == Some(kept));
        if is_hidden || kept.iter().any(|kept| kept.starts_with(&directory)) {
            left_out.push(directory);
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
        let own = WrapperProgram::own().expect("own");
        let confining = |wrapper: &str| Confining {
            wrapper: WrapperProgram { path: root.join(wrapper), ..own.clone() },
            workspace: root.join("work"),
            owner_home: root.join("home"),
            further: FurtherGrants { write: vec![root.join("granted")], ..FurtherGrants::default() },
            kept: vec![root.join("state")],
        };
        for name in ["work/bin", "granted"] {
            fs::create_dir_all(root.join(name)).expect("dir");
        }
        fs::write(root.join("granted/gatepost"), "").expect("file");
        fs::write(root.join("work/bin/gatepost"), "").expect("file");
        for (wrapper, environment, data, is_fit) in [
            ("gatepost", "env", "data", true),
            ("work/bin/gatepost", "env", "data", false),
            ("gatepost", "work/env", "data", false),
            ("gatepost", "env", "work/data", false),
            ("granted/gatepost", "env", "data", false),
            ("gatepost", "granted/env", "data", false),
        ] {
            let (confining, install, layout) = (confining(wrapper), install(environment), layout(data));
            let (plan, _) = confining.plan(&install, &layout, OsStr::new("/usr/bin"));
            let fit = confining.check(&install, &layout, &plan).is_ok();
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
        let mut left_out = Vec::new();
        assert_eq!(fit(given, &kept, &mut left_out), [path("programs"), path("home/bin"), path("home/.cargo/bin")]);
        let told = ["home", "home", "home/data", "home/.ssh"].map(path);
        assert_eq!(left_out[..4], told);
    }
}
