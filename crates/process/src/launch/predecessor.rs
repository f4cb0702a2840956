//! The record of a running server, by which the next daemon knows it when the daemon that started it was killed.
//!
//! A number alone names nobody: it is reused. So the record holds the boot, the number, the moment that process started and
//! the random name of its start, and a process is ours only when all four agree. That name stands in the server's arguments,
//! as the directory of its start-up module: arguments can be read of a server that is not dumpable too, its environment
//! cannot.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use host::cgroup::{Cgroup, delegated};
use host::secure_fs::{SecureFsError, read_private, write_private_new};
use serde::{Deserialize, Serialize};

use super::LaunchError;
use crate::guard::Named;

const NAME: &str = "server.json";
const MAX_RECORD_BYTES: u64 = 4096;
/// Of a command line; what stands behind is not looked at.
const MAX_ARGUMENTS_BYTES: u64 = 1024 * 1024;
/// For the server and what is below it to be gone.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// For guards that are at it to end the tree: they reach more of it than is known here.
const GUARDS_LIMIT: Duration = Duration::from_secs(2);

/// What names one running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Predecessor {
    boot_id: String,
    pid: u32,
    start_time_ticks: u64,
    start_name: String,
    /// Its guards, whose arguments hold the same name.
    #[serde(default)]
    guards: Vec<Named>,
}

/// The number that the kernel drew at this boot; empty where there is none.
fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Write the record of a server that was just started.
pub(crate) fn record(data: &Path, pid: u32, guards: &[Named], start_name: &str) -> Result<(), LaunchError> {
    let seen = host::tree::process(pid).map_err(LaunchError::files("cannot look at the server's process"))?;
    // Gone already: its watcher tells of it.
    let Some(seen) = seen else { return Ok(()) };
    let (start_time_ticks, start_name) = (seen.start_time_ticks, start_name.to_owned());
    let record = Predecessor { boot_id: boot_id(), pid, start_time_ticks, start_name, guards: guards.to_vec() };
    let text = serde_json::to_vec(&record)
        .map_err(|error| LaunchError::System { what: "cannot write the server's record", source: error.into() })?;
    forget(data);
    Ok(write_private_new(&data.join(NAME), &text)?)
}

/// Remove the record: its server has ended.
pub(crate) fn forget(data: &Path) {
    match fs::remove_file(data.join(NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, "the record of a server could not be removed");
        }
        Ok(()) | Err(_) => {}
    }
}

fn read(data: &Path) -> Option<Predecessor> {
    let content = match read_private(&data.join(NAME), MAX_RECORD_BYTES) {
        Ok(content) => content,
        Err(SecureFsError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(%error, "the record of an earlier server cannot be read");
            return None;
        }
    };
    serde_json::from_slice(&content)
        .inspect_err(|error| tracing::warn!(%error, "the record of an earlier server is damaged"))
        .ok()
}

/// End the recorded server of a data directory and everything below it, if it still runs. The directory's lock is held, so
/// nobody else's server is recorded there. Says how many processes were ended.
///
/// # Errors
/// Names the processes that would not go.
pub(crate) fn end(data: &Path) -> Result<usize, Vec<u32>> {
    let Some(server) = read(data).filter(|server| server.boot_id == boot_id()) else { return Ok(0) };
    let waiting = Instant::now();
    while server.guards.iter().any(|guard| server.runs(*guard)) && waiting.elapsed() < GUARDS_LIMIT {
        std::thread::sleep(PAUSE);
    }
    server.end_cgroup();
    let mut tree = server.tree();
    let (found, began) = (tree.len(), Instant::now());
    while !tree.is_empty() {
        for &(pid, start_time_ticks) in &tree {
            if let Err(error) = kill(pid, start_time_ticks)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(pid, %error, "a process of an earlier server could not be ended");
            }
        }
        tree.retain(|&(pid, start_time_ticks)| started_then(pid, start_time_ticks));
        if began.elapsed() > LIMIT {
            return Err(tree.into_iter().map(|(pid, _)| pid).collect());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(found)
}

/// The processes of the recorded server and below it that still run. Nothing is ended.
pub(crate) fn running(data: &Path) -> Vec<u32> {
    let server = read(data).filter(|server| server.boot_id == boot_id());
    server.map(|server| server.tree().into_iter().map(|(pid, _)| pid).collect()).unwrap_or_default()
}

impl Predecessor {
    /// Whether the number still belongs to that very process.
    fn runs(&self, process: Named) -> bool {
        started_then(process.pid, process.start_time_ticks) && self.bears_name(process.pid)
    }

    /// The guards and the server, as far as they run, and everything below them: numbers and moments of their starts.
    fn tree(&self) -> BTreeSet<(u32, u64)> {
        let server = Named { pid: self.pid, start_time_ticks: self.start_time_ticks };
        let mut tree = BTreeSet::new();
        for root in self.guards.iter().copied().chain([server]).filter(|process| self.runs(*process)) {
            tree.insert((root.pid, root.start_time_ticks));
            let below = host::tree::descendants_of(root.pid).unwrap_or_default();
            tree.extend(below.into_iter().map(|process| (process.pid, process.start_time_ticks)));
        }
        tree
    }

    /// Kills what is in the server's own cgroup, where one was left: also what is known by nothing else any more.
    fn end_cgroup(&self) {
        let Some(cgroup) = delegated().and_then(|parent| Cgroup::find(&parent, &self.start_name)) else { return };
        if let Err(error) = cgroup.kill().and_then(|()| cgroup.remove().map(drop)) {
            tracing::warn!(path = %cgroup.path().display(), %error, "the cgroup of an earlier server is left");
        }
    }

    /// Whether one of its arguments is a path that ends with the start's name. Arguments that cannot be read are no proof.
    fn bears_name(&self, pid: u32) -> bool {
        let is_named =
            |word: &[u8]| Path::new(OsStr::from_bytes(word)).file_name() == Some(OsStr::new(&self.start_name));
        arguments(pid).is_ok_and(|words| words.split(|&byte| byte == 0).any(is_named))
    }
}

fn arguments(pid: u32) -> io::Result<Vec<u8>> {
    let mut words = Vec::new();
    fs::File::open(format!("/proc/{pid}/cmdline"))?.take(MAX_ARGUMENTS_BYTES).read_to_end(&mut words)?;
    Ok(words)
}

fn started_then(pid: u32, start_time_ticks: u64) -> bool {
    host::tree::process(pid).ok().flatten().is_some_and(|process| process.start_time_ticks == start_time_ticks)
}

/// The moment is looked at again once the descriptor holds the process, so that a reused number is never hit.
#[cfg(target_os = "linux")]
fn kill(pid: u32, start_time_ticks: u64) -> io::Result<()> {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    let process = pidfd_open(raw, PidfdFlags::empty()).map_err(|_| gone())?;
    if !started_then(pid, start_time_ticks) {
        return Err(gone());
    }
    Ok(pidfd_send_signal(process, Signal::KILL)?)
}

/// Without `/proc` nothing is ever recorded.
#[cfg(not(target_os = "linux"))]
fn kill(_pid: u32, _start_time_ticks: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::children;

    const NAME_OF_START: &str = "0123456789abcdef";

    /// A process with a child of its own, and with this as its last argument.
    fn start(argument: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "env -i /bin/sleep 60 & wait", "server", argument]).env_clear();
        let child = children::spawn_known(|| command.spawn(), Child::id).expect("spawn");
        while host::tree::descendants_of(child.id()).expect("descendants").is_empty() {
            std::thread::sleep(PAUSE);
        }
        child
    }

    fn finish(mut child: Child) -> bool {
        let below = host::tree::descendants_of(child.id()).expect("descendants");
        let ran = child.try_wait().expect("wait").is_none();
        for process in below {
            drop(kill(process.pid, process.start_time_ticks));
        }
        drop(child.kill());
        child.wait().expect("wait");
        children::forget(child.id());
        ran
    }

    fn alter(data: &Path, change: impl FnOnce(&mut Predecessor)) {
        let mut server = read(data).expect("a record");
        change(&mut server);
        forget(data);
        write_private_new(&data.join(NAME), &serde_json::to_vec(&server).expect("json")).expect("write");
    }

    #[test]
    fn the_recorded_server_is_ended_with_what_is_below_it() {
        let data = tempfile::tempdir().expect("dir");
        let mut server = start(&format!("/data/startup/{NAME_OF_START}"));
        let below = host::tree::descendants_of(server.id()).expect("descendants");
        record(data.path(), server.id(), &[], NAME_OF_START).expect("record");
        // Reaped by a thread, as init would: a process that ended and was not reaped still has its number.
        let pid = server.id();
        let waiting = std::thread::spawn(move || server.wait().expect("wait"));
        assert_eq!(end(data.path()), Ok(2));
        assert!(!waiting.join().expect("join").success());
        assert!(below.iter().all(|process| !started_then(process.pid, process.start_time_ticks)));
        children::forget(pid);
        assert_eq!(end(data.path()), Ok(0), "nothing is left to end");
    }

    /// Each of the four must agree, and the name be whole: a stale record must never end a stranger that has the number now.
    #[test]
    fn a_process_that_differs_in_anything_is_left_alone() {
        type Change = fn(&mut Predecessor);
        let changes: [(&str, Change); 6] = [
            ("another boot", |server| server.boot_id.replace_range(..1, "x")),
            ("the number was reused", |server| server.start_time_ticks -= 1),
            ("another start", |server| server.start_name.push('0')),
            ("a part of the name", |server| server.start_name.truncate(8)),
            ("no name", |server| server.start_name.clear()),
            ("another number", |server| server.pid = u32::MAX),
        ];
        for (name, change) in changes {
            let data = tempfile::tempdir().expect("dir");
            let stranger = start(&format!("/data/startup/{NAME_OF_START}"));
            record(data.path(), stranger.id(), &[], NAME_OF_START).expect("record");
            alter(data.path(), change);
            assert_eq!(end(data.path()), Ok(0), "{name}");
            assert!(finish(stranger), "{name}: a stranger was ended");
        }
    }

    /// As when the process that was meant ended, and its number was given away, before the descriptor was opened.
    #[test]
    fn a_number_that_another_process_has_by_now_is_not_signalled() {
        let stranger = start(NAME_OF_START);
        let now = host::tree::process(stranger.id()).expect("look").expect("runs").start_time_ticks;
        let refused = kill(stranger.id(), now - 1).expect_err("another process was killed");
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        assert!(finish(stranger), "a stranger was ended");
    }

    #[test]
    fn a_record_that_is_damaged_or_missing_ends_nothing() {
        let data = tempfile::tempdir().expect("dir");
        assert_eq!(end(data.path()), Ok(0));
        for content in
            ["", "{}", "[1]", "{\"boot_id\":\"\",\"pid\":1,\"start_time_ticks\":0,\"start_name\":\"\",\"more\":1}"]
        {
            forget(data.path());
            write_private_new(&data.path().join(NAME), content.as_bytes()).expect("write");
            assert_eq!(end(data.path()), Ok(0), "{content}");
        }
    }
}
