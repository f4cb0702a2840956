//! What servers left when the daemon itself was killed: their trees then fall to the system, not to us. The server itself is
//! known by its record (`predecessor`), everything else by the private HOME in its environment.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::lock::{FileLock, LockError};

use super::layout::{self, Layout};
use super::predecessor;
use super::start::LOCK_NAME;

/// For all of them to be gone.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// Environments are at most this long here.
const ENVIRONMENT_BYTES: u64 = 1024 * 1024;

/// End what earlier servers below this state directory left, and remove their temporary files and sockets. A workspace
/// whose server lives is passed over. Says how many processes were ended; one that would not go is told of in the log, and
/// keeps its workspace's next server from starting. Blocks, for 5 s at most.
pub fn end_leftovers(state_dir: &Path) -> usize {
    let data_dirs = match data_dirs(state_dir) {
        Ok(data_dirs) => data_dirs,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%error, "what earlier servers left cannot be looked for");
            }
            return 0;
        }
    };
    let held: Vec<(PathBuf, FileLock)> =
        data_dirs.into_iter().filter_map(|data| Some((data.clone(), lock(&data)?))).collect();
    let recorded: Result<usize, Vec<u32>> = held.iter().map(|(data, _)| predecessor::end(data)).sum();
    let homes: Vec<PathBuf> = held.iter().flat_map(|(data, _)| Layout::homes_in(data)).collect();
    let ended = match recorded.and_then(|servers| Ok(servers + end_of_bindings(&homes)?)) {
        Ok(ended) => ended,
        Err(left) => {
            tracing::error!(?left, "processes of earlier servers cannot be ended; end them by hand");
            return 0;
        }
    };
    for (data, _lock) in &held {
        Layout::clear(data);
    }
    ended
}

/// The processes that earlier servers below this state directory left, as far as they are known: for when no daemon runs on
/// it. Nothing is ended and no lock is taken.
#[must_use]
pub fn leftovers(state_dir: &Path) -> Vec<u32> {
    let Ok(data_dirs) = data_dirs(state_dir) else { return Vec::new() };
    let marks = data_dirs.iter().flat_map(|data| Layout::homes_in(data)).map(|home| mark(&home)).collect();
    let mut found: BTreeSet<u32> = marked(&marks).into_iter().collect();
    found.extend(data_dirs.iter().flat_map(|data| predecessor::running(data)));
    found.into_iter().collect()
}

/// Those of the bindings there are.
fn data_dirs(state_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(layout::bindings_dir(state_dir))?;
    Ok(entries.filter_map(Result::ok).map(|entry| entry.path()).collect())
}

/// What stands in the environment of a process of this HOME.
fn mark(home: &Path) -> Vec<u8> {
    [b"HOME=", home.as_os_str().as_bytes()].concat()
}

fn lock(data: &Path) -> Option<FileLock> {
    match FileLock::try_acquire(&data.join(LOCK_NAME)) {
        Ok(lock) => Some(lock),
        Err(LockError::Held { .. }) => None,
        Err(error) => {
            tracing::warn!(%error, "what an earlier server left cannot be looked for");
            None
        }
    }
}

/// End every process of this user whose environment says that it belongs to one of these bindings' private HOMEs. The
/// data directories' locks are held, so no live server has one. Best effort: a process may change its own environment.
///
/// # Errors
/// Names the processes that would not go.
pub(crate) fn end_of_bindings(homes: &[PathBuf]) -> Result<usize, Vec<u32>> {
    let marks: BTreeSet<Vec<u8>> = homes.iter().map(|home| mark(home)).collect();
    let began = Instant::now();
    let mut ended = BTreeSet::new();
    loop {
        let found = if marks.is_empty() { Vec::new() } else { marked(&marks) };
        if found.is_empty() {
            return Ok(ended.len());
        }
        if began.elapsed() > LIMIT {
            return Err(found);
        }
        for pid in found {
            if end(pid, &marks).is_ok() {
                ended.insert(pid);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

fn marked(marks: &BTreeSet<Vec<u8>>) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid: &u32| pid != std::process::id() && bears(pid, marks)).collect()
}

fn bears(pid: u32, marks: &BTreeSet<Vec<u8>>) -> bool {
    use std::io::Read;
    let mut environment = Vec::new();
    let read = fs::File::open(format!("/proc/{pid}/environ"))
        .and_then(|file| file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment));
    read.is_ok() && environment.split(|&byte| byte == 0).any(|variable| marks.contains(variable))
}

/// The mark is looked at again once the descriptor holds the process, so that a reused number is never hit.
#[cfg(target_os = "linux")]
fn end(pid: u32, marks: &BTreeSet<Vec<u8>>) -> io::Result<()> {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    let process = pidfd_open(raw, PidfdFlags::empty())?;
    if !bears(pid, marks) {
        return Err(gone());
    }
    Ok(pidfd_send_signal(process, Signal::KILL)?)
}

/// Without `/proc` nothing is ever found.
#[cfg(not(target_os = "linux"))]
fn end(_pid: u32, _marks: &BTreeSet<Vec<u8>>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::children;

    /// A process of a HOME, and what waits for its end.
    fn start(home: &Path) -> (u32, std::thread::JoinHandle<std::process::ExitStatus>) {
        let mut command = Command::new("/bin/sleep");
        command.arg("60").env_clear().env("HOME", home);
        let mut child = children::spawn_known(|| command.spawn(), std::process::Child::id).expect("spawn");
        let pid = child.id();
        let waiting = std::thread::spawn(move || {
            let status = child.wait().expect("wait");
            children::forget(pid);
            status
        });
        (pid, waiting)
    }

    fn kill(pid: u32) {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("kill");
    }

    #[test]
    fn only_processes_of_the_bindings_are_ended() {
        let dir = tempfile::tempdir().expect("dir");
        // The shell of a session may have put more into its environment; the mark is compared whole.
        let ours = [start(dir.path()), start(&dir.path().join("second"))];
        let (pid, other) = start(&dir.path().join("other"));
        assert_eq!(end_of_bindings(&[dir.path().to_path_buf(), dir.path().join("second")]), Ok(2));
        for (_, waiting) in ours {
            assert!(!waiting.join().expect("join").success());
        }
        assert!(!other.is_finished(), "a stranger was ended");
        kill(pid);
        other.join().expect("join");
        assert_eq!(end_of_bindings(&[]), Ok(0));
    }

    /// As when the process that was meant ended, and its number was given away, before the descriptor was opened.
    #[test]
    fn a_number_that_another_process_has_by_now_is_not_signalled() {
        let dir = tempfile::tempdir().expect("dir");
        let (pid, other) = start(&dir.path().join("other"));
        let refused =
            end(pid, &BTreeSet::from([mark(&dir.path().join("ours"))])).expect_err("another process was killed");
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        assert!(!other.is_finished(), "a stranger was ended");
        kill(pid);
        other.join().expect("join");
    }

    #[test]
    fn what_is_left_of_every_dead_server_goes_and_a_live_one_stays() {
        let state = tempfile::tempdir().expect("dir");
        assert_eq!(end_leftovers(state.path()), 0);
        let [dead, live] = ["dead", "live"].map(|name| layout::bindings_dir(state.path()).join(name));
        for data in [&dead, &live] {
            fs::create_dir_all(data.join("tmux/socket")).expect("dir");
            fs::create_dir_all(data.join("home")).expect("dir");
        }
        let _held = FileLock::try_acquire(&live.join(LOCK_NAME)).expect("lock");
        let ((dead_pid, of_dead), (pid, of_live)) = (start(&dead.join("home")), start(&live.join("home")));
        let seen = leftovers(state.path());
        assert!(seen.contains(&dead_pid) && seen.contains(&pid), "{seen:?}");
        assert_eq!(end_leftovers(state.path()), 1);
        assert!(!of_dead.join().expect("join").success());
        assert!(!of_live.is_finished(), "a live server's process was ended");
        assert!(!dead.join("tmux").exists() && dead.join("home").exists() && live.join("tmux").exists());
        kill(pid);
        of_live.join().expect("join");
    }
}
