//! The plan: which directories the processes of one server may use.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Most bytes of a plan: 64 KiB.
pub const MAX_PLAN_BYTES: usize = 64 << 10;
/// Most entries of each list.
const MAX_ENTRIES: usize = 64;
/// `PATH_MAX` with its closing NUL byte.
const MAX_PATH_BYTES: usize = 4095;

/// A file or directory as the kernel tells it from others, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The device that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What the policy's placeholders stand for, and what is taken out of the environment. Written by the daemon, once for
/// each server; read by the wrapper for every process that the server starts.
///
/// Every path is absolute, with its symbolic links resolved, and is not the root. Those that lead to nothing when a
/// process starts are granted to nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    v: u32,
    /// Where the work is; written.
    pub workspace: PathBuf,
    /// Further directories and files that may be written.
    pub writable: Vec<PathBuf>,
    /// Further directories and files that may be read.
    pub readable: Vec<PathBuf>,
    /// The temporary directory; written.
    pub tmp: PathBuf,
    /// The home directory whose git settings and toolchains may be read. It is not granted itself.
    pub home: PathBuf,
    /// The server's virtual environment and the Python it is made from; read.
    pub environment: Vec<PathBuf>,
    /// Directories and files of gatepost's own. What is granted above them does not hold there, where the kernel has rules that
    /// take away (macOS); Landlock has none. What the plan grants below them holds.
    pub kept: Vec<PathBuf>,
    /// What stood at paths of the above when the plan was written: another thing there later is granted as little as a link.
    /// A path that is not named is granted whatever stands there.
    pub identities: BTreeMap<PathBuf, Identity>,
    /// Variables that no process gets. An entry that ends in `_` stands for all names that begin with it.
    pub strip_environment: Vec<String>,
}

/// What is wrong with a plan, in words, all at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct PlanFaults(Vec<String>);

impl Plan {
    /// A plan that grants nothing but a workspace and a temporary directory, and home's git settings and toolchains.
    #[must_use]
    pub fn new(workspace: PathBuf, tmp: PathBuf, home: PathBuf) -> Self {
        let (v, identities, strip_environment) = (super::FORMAT, BTreeMap::new(), Vec::new());
        let [writable, readable, environment, kept] = [const { Vec::new() }; 4];
        Self { v, workspace, writable, readable, tmp, home, environment, kept, identities, strip_environment }
    }

    /// The paths of the plan that are granted as they stand.
    pub fn granted(&self) -> impl Iterator<Item = &PathBuf> {
        let lists = [&self.writable, &self.readable, &self.environment].into_iter().flatten();
        [&self.workspace, &self.tmp].into_iter().chain(lists)
    }

    /// Reads and checks a plan.
    ///
    /// # Errors
    /// All faults of its content, or the parser's word.
    pub fn parse(bytes: &[u8]) -> Result<Self, PlanFaults> {
        if bytes.len() > MAX_PLAN_BYTES {
            return Err(PlanFaults(vec![format!("it has more than {MAX_PLAN_BYTES} bytes")]));
        }
        let plan: Self = serde_json::from_slice(bytes).map_err(|error| PlanFaults(vec![error.to_string()]))?;
        plan.check()?;
        Ok(plan)
    }

    /// The bytes that [`Self::parse`] reads.
    ///
    /// # Errors
    /// All faults of its content: what the wrapper would refuse is not handed to it. A path that is not UTF-8 is one.
    pub fn to_bytes(&self) -> Result<Vec<u8>, PlanFaults> {
        self.check()?;
        let bytes = serde_json::to_vec(self).map_err(|error| PlanFaults(vec![error.to_string()]))?;
        if bytes.len() > MAX_PLAN_BYTES {
            return Err(PlanFaults(vec![format!("it has more than {MAX_PLAN_BYTES} bytes")]));
        }
        Ok(bytes)
    }

    /// Whether a variable of this name is taken out of the environment.
    #[must_use]
    pub fn strips(&self, name: &[u8]) -> bool {
        self.strip_environment.iter().map(String::as_bytes).any(|entry| match entry.last() {
            Some(b'_') => name.starts_with(entry),
            Some(_) | None => name == entry,
        })
    }

    fn check(&self) -> Result<(), PlanFaults> {
        let mut faults = Vec::new();
        if let Err(fault) = super::check_format(self.v) {
            faults.push(fault);
        }
        for (field, path) in [("workspace", &self.workspace), ("tmp", &self.tmp), ("home", &self.home)] {
            faults.extend(path_fault(field, path));
        }
        let lists = [
            ("writable", &self.writable),
            ("readable", &self.readable),
            ("environment", &self.environment),
            ("kept", &self.kept),
        ];
        for (field, paths) in lists {
            faults.extend(paths.iter().filter_map(|path| path_fault(field, path)));
            faults.extend(count_fault(field, paths.len()));
        }
        let names = &self.strip_environment;
        faults.extend(count_fault("strip_environment", names.len()));
        let plain = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        faults.extend(names.iter().filter(|name| !plain(name)).map(|name| format!("{name:?} is no variable's name")));
        if faults.is_empty() { Ok(()) } else { Err(PlanFaults(faults)) }
    }
}

fn count_fault(field: &str, count: usize) -> Option<String> {
    (count > MAX_ENTRIES).then(|| format!("{field} has more than {MAX_ENTRIES} entries"))
}

fn path_fault(field: &str, path: &Path) -> Option<String> {
    let bytes = path.as_os_str().as_encoded_bytes();
    // Compared byte by byte, since components leave out `.` and doubled slashes.
    let plain: PathBuf = path.components().filter(|part| !matches!(part, Component::ParentDir)).collect();
    let fit = path.is_absolute()
        && plain.as_os_str() == path.as_os_str()
        && plain.parent().is_some()
        && bytes.len() <= MAX_PATH_BYTES
        && !bytes.contains(&0);
    (!fit).then(|| format!("{field} {path:?} is no plain absolute path below the root"))
}
