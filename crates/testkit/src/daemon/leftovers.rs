//! Which processes belong to a test's directory or descend from its daemon.

use crate::processes;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A process that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSeen {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent: u32,
    /// Its arguments, separated by spaces.
    pub command: String,
}

/// The processes (this one and zombies aside) that have the directory in their working directory, arguments or
/// environment, or descend from one of `roots`.
///
/// The environment and working directory of another user's process are seen by root only; the arguments always are.
#[must_use]
pub fn processes_of(directory: &Path, roots: &[u32]) -> Vec<ProcessSeen> {
    let everything = everything();
    let mut belongs: HashSet<u32> = roots.iter().copied().collect();
    let by_directory = everything.keys().copied().filter(|pid| names(*pid, directory));
    belongs.extend(by_directory);
    loop {
        let before = belongs.len();
        let children = everything.values().filter(|process| belongs.contains(&process.parent));
        let children: Vec<u32> = children.map(|process| process.pid).collect();
        belongs.extend(children);
        if belongs.len() == before {
            break;
        }
    }
    let own = std::process::id();
    let mut found: Vec<_> =
        everything.into_values().filter(|process| process.pid != own && belongs.contains(&process.pid)).collect();
    found.sort_by_key(|process| process.pid);
    found
}

fn everything() -> HashMap<u32, ProcessSeen> {
    let seen = processes::all().into_iter().filter_map(|pid| {
        let parent = processes::stat(pid).filter(|stat| stat.runs())?.parent;
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned();
        Some((pid, ProcessSeen { pid, parent, command }))
    });
    seen.collect()
}

fn names(pid: u32, directory: &Path) -> bool {
    if fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(directory)) {
        return true;
    }
    let needle = directory.as_os_str().as_bytes();
    ["cmdline", "environ"].iter().any(|file| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(needle.len()).any(|window| window == needle)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn seen(directory: &Path, child: &Child) -> bool {
        processes_of(directory, &[]).iter().any(|process| process.pid == child.id())
    }

    #[test]
    fn a_process_is_found_by_directory_environment_argument_and_ancestry() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let mut children = [
            Command::new("sleep").arg("30").current_dir(path).spawn().unwrap(),
            Command::new("sleep").arg("30").env("HOME", path).spawn().unwrap(),
            Command::new("sh").arg("-c").arg("sleep 30; true").arg(path).spawn().unwrap(),
        ];
        let mut stranger = Command::new("sleep").arg("30").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        let found: Vec<bool> = children.iter().map(|child| seen(path, child)).collect();
        let found_stranger = seen(path, &stranger);
        let shell = children[2].id();
        let below_shell: Vec<_> =
            processes_of(path, &[shell]).into_iter().filter(|process| process.parent == shell).collect();
        for child in children.iter_mut().chain([&mut stranger]) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        for process in &below_shell {
            let pid = rustix::process::Pid::from_raw(process.pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        assert_eq!(found, [true; 3]);
        assert!(!found_stranger);
        assert_eq!(below_shell.len(), 1, "{below_shell:?}");
        let gone = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            processes_of(path, &[]).is_empty()
        });
        assert!(gone, "{:?}", processes_of(path, &[]));
    }
}
