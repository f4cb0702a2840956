//! The managed Agent Server: a private Python environment from locked requirements, made whole or not at all.
//!
//! Everything here blocks; a daemon calls it in a thread. An install lives in `<state>/servers/<version>-<digest>/`,
//! where the digest is of the locked requirements. It is built beside, under a lock, and renamed into place once its
//! manifest is written. Console scripts are removed (they would name the place where they were built); the server is
//! started as `bin/python -m openhands.agent_server`.

mod environment;
mod known;
mod lock;
mod manifest;
mod place;
mod python;
pub(crate) mod record;
mod stat;
mod steps;
#[cfg(test)]
mod tests;
pub(crate) mod tool;
mod verify;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use known::KnownInstall;
pub use lock::LockError;
pub use python::{Python, PythonNotFound, find_python};
pub use verify::{Finding, FindingKind, VerifyReport, verify};

pub(crate) use environment::{is_executable, is_roots};
pub(crate) use manifest::hash_file;

/// The locked requirements, kept in the install.
pub(crate) const REQUIREMENTS_NAME: &str = "requirements.lock";
/// The locked build requirements, kept in the install.
pub(crate) const BUILD_REQUIREMENTS_NAME: &str = "build-requirements.lock";

/// What to install.
#[derive(Debug, Clone)]
pub struct InstallRequest<'a> {
    /// The state directory; the install goes below `servers/` in it.
    pub state_dir: PathBuf,
    /// The Agent Server's version.
    pub version: String,
    /// The locked requirements: every one pinned, with SHA-256 hashes.
    pub requirements: &'a str,
    /// The same for what building the one source distribution needs.
    pub build_requirements: &'a str,
    /// The interpreter to use; found when not given.
    pub python: Option<PathBuf>,
}

/// A whole install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The Agent Server's version.
    pub version: String,
    /// The install's directory, which is the Python environment.
    pub root: PathBuf,
    /// The environment's interpreter, `bin/python`; the server is its module `openhands.agent_server`.
    pub executable: PathBuf,
    /// The interpreter's version.
    pub python: String,
    /// Every distribution with its version.
    pub distributions: BTreeMap<String, String>,
    /// SHA-256 of the manifest, lower-case hexadecimal.
    pub manifest_sha256: String,
}

/// Where an install stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallPhase {
    /// Another install is running; this one waits for it.
    Waiting,
    /// Looking for an interpreter and tools.
    Preparing,
    /// Making the environment.
    Environment,
    /// Installing what building needs.
    BuildRequirements,
    /// Installing the server.
    Requirements,
    /// Compiling bytecode.
    Bytecode,
    /// Hashing every file.
    Manifest,
    /// Done, or found done.
    Done,
}

impl InstallPhase {
    /// The stable word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Preparing => "preparing",
            Self::Environment => "environment",
            Self::BuildRequirements => "build_requirements",
            Self::Requirements => "requirements",
            Self::Bytecode => "bytecode",
            Self::Manifest => "manifest",
            Self::Done => "done",
        }
    }
}

/// One report of progress, about once a second and at each phase's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallProgress {
    /// The phase.
    pub phase: InstallPhase,
    /// What it is doing, for people; may be a tool's last line.
    pub detail: String,
    /// Since the request began.
    pub elapsed_ms: u64,
    /// Of the phase, where it is known.
    pub percent: Option<u8>,
}

/// Why nothing was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The locked requirements cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// No interpreter.
    #[error(transparent)]
    Python(#[from] PythonNotFound),
    /// The version cannot be a directory's name.
    #[error("{0:?} is not a version")]
    Version(String),
    /// Another install did not end in time.
    #[error("another install has been running for {waited_s} s; when none is, remove {}", .lock.display())]
    Busy {
        /// How long this one waited, in seconds.
        waited_s: u64,
        /// The lock.
        lock: PathBuf,
    },
    /// A tool failed.
    #[error("{what} failed: {detail}\nnothing was installed; check the network and the package index, then try again")]
    Tool {
        /// What it was doing.
        what: &'static str,
        /// Its status and last words.
        detail: String,
    },
    /// What came out is not what was asked for.
    #[error("the new install is not as locked, and was removed: {0}")]
    NotAsLocked(String),
    /// Files.
    #[error("{what}: {source}")]
    Files {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl InstallError {
    fn files(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Files { what, source }
    }
}

/// Says how far an install is.
pub(crate) struct Reporter<'a> {
    began: Instant,
    listener: &'a dyn Fn(InstallProgress),
}

impl Reporter<'_> {
    fn say(&self, phase: InstallPhase, detail: impl Into<String>, percent: Option<u8>) {
        let elapsed_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        (self.listener)(InstallProgress { phase, detail: detail.into(), elapsed_ms, percent });
    }
}

/// Install what is asked for, or find it installed. Blocks for minutes; `progress` is called from this thread.
///
/// # Errors
/// Nothing is left behind but what the next install removes; see [`InstallError`].
pub fn install(request: &InstallRequest<'_>, progress: &dyn Fn(InstallProgress)) -> Result<Installed, InstallError> {
    let reporter = Reporter { began: Instant::now(), listener: progress };
    place::install(request, &reporter, &steps::populate)
}

/// Every whole install below a state directory, by name. What is not whole is not listed.
#[must_use]
pub fn list(state_dir: &Path) -> Vec<Installed> {
    let Ok(entries) = std::fs::read_dir(place::servers_dir(state_dir)) else { return Vec::new() };
    let mut roots: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    roots.sort();
    roots.iter().filter_map(|root| place::whole(root)).collect()
}

/// An install of that version; where there are several (the locked requirements changed), the newest.
#[must_use]
pub fn find(state_dir: &Path, version: &str) -> Option<Installed> {
    let newest = |installed: &Installed| {
        std::fs::metadata(installed.root.join(manifest::MANIFEST_NAME)).and_then(|data| data.modified()).ok()
    };
    list(state_dir).into_iter().filter(|installed| installed.version == version).max_by_key(newest)
}

/// The install that this very request would make, if it stands already.
#[must_use]
pub fn find_for(request: &InstallRequest<'_>) -> Option<Installed> {
    place::whole(&place::target(request).ok()?)
}
