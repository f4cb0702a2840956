//! What a server left when the daemon itself was killed: its tree then falls to the system, not to us.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// For all of them to be gone.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// Environments are at most this long here.
const ENVIRONMENT_BYTES: u64 = 1024 * 1024;

/// End every process of this user whose environment says that it belongs to this binding's private HOME. The
/// data directory's lock is held, so no live server has it. Best effort: a process may change its own environment.
///
/// # Errors
/// Names the processes that would not go.
pub(crate) fn end_of_binding(home: &Path) -> Result<usize, Vec<u32>> {
    let mark = [b"HOME=", home.as_os_str().as_bytes()].concat();
    let began = Instant::now();
    let mut ended = std::collections::BTreeSet::new();
    loop {
        let found = marked(&mark);
        if found.is_empty() {
            return Ok(ended.len());
        }
        if began.elapsed() > LIMIT {
            return Err(found);
        }
        for pid in found {
            if end(pid, &mark).is_ok() {
                ended.insert(pid);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

fn marked(mark: &[u8]) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid: &u32| pid != std::process::id() && bears(pid, mark)).collect()
}

fn bears(pid: u32, mark: &[u8]) -> bool {
    use std::io::Read;
    let mut environment = Vec::new();
    let read = fs::File::open(format!("/proc/{pid}/environ"))
        .and_then(|file| file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment));
    read.is_ok() && environment.split(|&byte| byte == 0).any(|variable| variable == mark)
}

/// The mark is looked at again once the descriptor holds the process, so that a reused number is never hit.
#[cfg(target_os = "linux")]
fn end(pid: u32, mark: &[u8]) -> io::Result<()> {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    let process = pidfd_open(raw, PidfdFlags::empty())?;
    if !bears(pid, mark) {
        return Err(gone());
    }
    Ok(pidfd_send_signal(process, Signal::KILL)?)
}

/// Without `/proc` nothing is ever found.
#[cfg(not(target_os = "linux"))]
fn end(_pid: u32, _mark: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::children;

    #[test]
    fn only_processes_of_the_binding_are_ended() {
        let dir = tempfile::tempdir().expect("dir");
        let start = |home: &Path| {
            let mut command = Command::new("/bin/sleep");
            command.arg("60").env_clear().env("HOME", home);
            children::spawn_known(|| command.spawn(), std::process::Child::id).expect("spawn")
        };
        let (mut ours, mut other) = (start(dir.path()), start(&dir.path().join("other")));
        // The shell of a session may have put more into its environment; the mark is compared whole.
        let reaped = std::thread::spawn(move || {
            let status = ours.wait().expect("wait");
            (ours.id(), status)
        });
        assert_eq!(end_of_binding(dir.path()), Ok(1));
        let (pid, status) = reaped.join().expect("join");
        children::forget(pid);
        assert!(!status.success());
        assert!(other.try_wait().expect("wait").is_none(), "a stranger was ended");
        other.kill().expect("kill");
        other.wait().expect("wait");
        children::forget(other.id());
    }
}
