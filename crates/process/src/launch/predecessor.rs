//! The record of a running server, by which the next daemon knows it when the daemon that started it was killed.
//!
//! A number alone names nobody: it is reused. So the record holds the boot, the number, the moment that process started and
//! the start's nonce, and a process is ours only when all four agree.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use host::secure_fs::{SecureFsError, read_private, write_private_new};
use serde::{Deserialize, Serialize};

use super::LaunchError;

const NAME: &str = "server.json";
const MAX_RECORD_BYTES: u64 = 4096;
/// Environments and command lines are at most this long here.
const MAX_WORDS_BYTES: u64 = 1024 * 1024;
/// The variable that holds a start's nonce.
pub(crate) const NONCE_VARIABLE: &str = "GATEPOST_NONCE";
/// For the server and what is below it to be gone.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// What names one running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Predecessor {
    boot_id: String,
    pid: u32,
    start_time_ticks: u64,
    nonce: String,
}

/// The number that the kernel drew at this boot; empty where there is none.
fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Write the record of a server that was just started.
pub(crate) fn record(data: &Path, pid: u32, nonce: &str) -> Result<(), LaunchError> {
    let seen = host::tree::process(pid).map_err(LaunchError::files("cannot look at the server's process"))?;
    // Gone already: its watcher tells of it.
    let Some(seen) = seen else { return Ok(()) };
    let record =
        Predecessor { boot_id: boot_id(), pid, start_time_ticks: seen.start_time_ticks, nonce: nonce.to_owned() };
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
    let mut tree: Vec<(u32, u64)> = Vec::new();
    if server.runs() {
        tree.push((server.pid, server.start_time_ticks));
        let below = host::tree::descendants_of(server.pid).unwrap_or_default();
        tree.extend(below.into_iter().map(|process| (process.pid, process.start_time_ticks)));
    }
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

impl Predecessor {
    /// Whether the number still belongs to that very process.
    fn runs(&self) -> bool {
        started_then(self.pid, self.start_time_ticks) && self.bears_nonce()
    }

    /// A server is not dumpable, so its environment may be closed to us; what can be read must hold the nonce.
    fn bears_nonce(&self) -> bool {
        let wanted = format!("{NONCE_VARIABLE}={}", self.nonce);
        match words(self.pid, "environ") {
            Ok(words) => words.split(|&byte| byte == 0).any(|word| word == wanted.as_bytes()),
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        }
    }
}

fn words(pid: u32, file: &str) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut words = Vec::new();
    fs::File::open(format!("/proc/{pid}/{file}"))?.take(MAX_WORDS_BYTES).read_to_end(&mut words)?;
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

    const NONCE: &str = "0123456789abcdef";

    /// A process with a child of its own, that bears a nonce.
    fn start(nonce: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "env -i /bin/sleep 60 & wait"]).env_clear().env(NONCE_VARIABLE, nonce);
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
        let mut server = start(NONCE);
        let below = host::tree::descendants_of(server.id()).expect("descendants");
        record(data.path(), server.id(), NONCE).expect("record");
        // Reaped by a thread, as init would: a process that ended and was not reaped still has its number.
        let pid = server.id();
        let waiting = std::thread::spawn(move || server.wait().expect("wait"));
        assert_eq!(end(data.path()), Ok(2));
        assert!(!waiting.join().expect("join").success());
        assert!(below.iter().all(|process| !started_then(process.pid, process.start_time_ticks)));
        children::forget(pid);
        assert_eq!(end(data.path()), Ok(0), "nothing is left to end");
    }

    /// Each of the four must agree: a stale record must never end a stranger that has the number now.
    #[test]
    fn a_process_that_differs_in_anything_is_left_alone() {
        type Change = fn(&mut Predecessor);
        let changes: [(&str, Change); 4] = [
            ("another boot", |server| server.boot_id.replace_range(..1, "x")),
            ("the number was reused", |server| server.start_time_ticks -= 1),
            ("another nonce", |server| server.nonce.push('0')),
            ("another number", |server| server.pid = u32::MAX),
        ];
        for (name, change) in changes {
            let data = tempfile::tempdir().expect("dir");
            let stranger = start(NONCE);
            record(data.path(), stranger.id(), NONCE).expect("record");
            alter(data.path(), change);
            assert_eq!(end(data.path()), Ok(0), "{name}");
            assert!(finish(stranger), "{name}: a stranger was ended");
        }
    }

    #[test]
    fn a_record_that_is_damaged_or_missing_ends_nothing() {
        let data = tempfile::tempdir().expect("dir");
        assert_eq!(end(data.path()), Ok(0));
        for content in
            ["", "{}", "[1]", "{\"boot_id\":\"\",\"pid\":1,\"start_time_ticks\":0,\"nonce\":\"\",\"more\":1}"]
        {
            forget(data.path());
            write_private_new(&data.path().join(NAME), content.as_bytes()).expect("write");
            assert_eq!(end(data.path()), Ok(0), "{content}");
        }
    }
}
