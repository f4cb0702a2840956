//! What a process of the agent's can still do, tried by one: `gatepost __probe TARGETS`.
//!
//! The server starts it as it starts the agent's commands. It tries each thing, undoes what got through, and says what
//! came of it as one line of JSON.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write, stdout};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use process::launch::ProbeTargets;
use rules::confinement::{Outcome, Probe};
use rustix::process::{Pid, test_kill_process};

/// The hidden command's name.
const COMMAND: &str = "__probe";
/// The daemon closes such a connection at once.
const ANSWER_WAIT: Duration = Duration::from_secs(8);
const NOT_UNDERSTOOD: u8 = 2;

/// Tries everything, if these arguments of the process, its name among them, ask for it.
pub(crate) fn run_if_asked(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.nth(1)? != COMMAND {
        return None;
    }
    let targets = arguments.next().and_then(|word| serde_json::from_str::<ProbeTargets>(word.to_str()?).ok());
    let said = targets.and_then(|targets| serde_json::to_string(&try_all(&targets)).ok());
    let written = said.is_some_and(|said| writeln!(stdout(), "{said}").is_ok());
    Some(if written { ExitCode::SUCCESS } else { ExitCode::from(NOT_UNDERSTOOD) })
}

fn try_all(targets: &ProbeTargets) -> BTreeMap<Probe, Outcome> {
    Probe::ALL.into_iter().map(|probe| (probe, outcome(attempt(probe, targets)))).collect()
}

/// Refused is what is denied, hidden or not there to be reached; anything else is no proof.
fn outcome(attempt: io::Result<bool>) -> Outcome {
    use io::ErrorKind::{NotFound, PermissionDenied};
    match attempt {
        Ok(true) => Outcome::Open,
        Ok(false) => Outcome::Closed,
        Err(error) if matches!(error.kind(), PermissionDenied | NotFound) => Outcome::Closed,
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Outcome::Closed,
        Err(_) => Outcome::Untried,
    }
}

/// Whether it got through.
fn attempt(probe: Probe, targets: &ProbeTargets) -> io::Result<bool> {
    match probe {
        Probe::ServerEnvironment => reads(targets.server_pid, "environ"),
        Probe::ServerMemory => reads(targets.server_pid, "mem"),
        Probe::DaemonEnvironment => reads(targets.daemon_pid, "environ"),
        Probe::DaemonMemory => reads(targets.daemon_pid, "mem"),
        Probe::StateDirectory => fs::read_dir(&targets.state_dir).map(|_| true),
        Probe::DaemonAnswer => is_answered(&targets.socket),
        Probe::HomeListing => fs::read_dir(&targets.home).map(|_| true),
        Probe::OwnersTerminal => File::options().read(true).write(true).open(&targets.terminal).map(|_| true),
        Probe::HomeFile => makes_file(targets.home.join(&targets.random_name)),
        Probe::NewPrivileges => host::hygiene::has_no_new_privileges().map(|given_up| !given_up),
        Probe::SignalServer => signals(targets.server_pid),
        Probe::SignalDaemon => signals(targets.daemon_pid),
        Probe::SignalGuard => signals_one(&targets.guard_pids),
        Probe::OutsideSocket => UnixStream::connect(&targets.outside_socket).map(|_| true),
        Probe::AbstractSocket => host::abstract_socket::connect(&targets.random_name).map(|()| true),
    }
}

fn reads(pid: u32, file: &str) -> io::Result<bool> {
    reads_in(Path::new("/proc"), pid, file)
}

/// Opening is what the kernel decides on. Where the kernel does not show processes as files (macOS), that there is none proves
/// nothing.
fn reads_in(processes: &Path, pid: u32, file: &str) -> io::Result<bool> {
    if !processes.join("self").exists() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    File::open(processes.join(pid.to_string()).join(file)).map(|_| true)
}

fn signals(pid: u32) -> io::Result<bool> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    test_kill_process(pid)?;
    Ok(true)
}

/// With none to signal, or one of which it is not known, nothing is proved.
fn signals_one(pids: &[u32]) -> io::Result<bool> {
    let outcomes: Vec<Outcome> = pids.iter().map(|pid| outcome(signals(*pid))).collect();
    if outcomes.contains(&Outcome::Open) {
        return Ok(true);
    }
    if outcomes.is_empty() || outcomes.contains(&Outcome::Untried) {
        Err(io::ErrorKind::InvalidInput.into())
    } else {
        Ok(false)
    }
}

fn is_answered(socket: &PathBuf) -> io::Result<bool> {
    let mut connection = UnixStream::connect(socket)?;
    connection.set_read_timeout(Some(ANSWER_WAIT))?;
    let asked = connection.write_all(b"GET /v1/healthz HTTP/1.1\r\nHost: gatepost\r\nConnection: close\r\n\r\n");
    let mut first = [0];
    match asked.and_then(|()| connection.read(&mut first)) {
        Ok(read) => Ok(read > 0),
        Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(false),
        Err(error) => Err(error),
    }
}

fn makes_file(path: PathBuf) -> io::Result<bool> {
    OpenOptions::new().write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// With nothing confined, everything that there is gets through.
    #[test]
    fn without_confinement_each_gets_through() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let name = format!("gatepost-probe-{}", std::process::id());
        let listener = UnixListener::bind(&socket).unwrap();
        let hidden = host::abstract_socket::listen(&name).unwrap();
        let answering = std::thread::spawn(move || {
            for _connection in 0..2 {
                let (mut connection, _) = listener.accept().unwrap();
                // Who closes before it was asked has not answered.
                let _asked = connection.read(&mut [0; 512]);
                connection.write_all(b"x").ok();
            }
        });
        let terminal = host::terminal::Terminal::open().unwrap();
        let targets = ProbeTargets {
            server_pid: std::process::id(),
            daemon_pid: std::process::id(),
            // One that is gone, and one that is in reach.
            guard_pids: vec![i32::MAX.unsigned_abs(), std::process::id()],
            state_dir: directory.path().to_path_buf(),
            outside_socket: socket.clone(),
            socket,
            terminal: terminal.path.clone(),
            home: directory.path().to_path_buf(),
            random_name: name,
        };
        let outcomes = try_all(&targets);
        answering.join().unwrap();
        drop(hidden);
        // Whoever runs the tests may have given up new privileges.
        let given_up = host::hygiene::has_no_new_privileges().unwrap();
        let expected = |probe| if probe == Probe::NewPrivileges && given_up { Outcome::Closed } else { Outcome::Open };
        for probe in Probe::ALL {
            assert_eq!(outcomes[&probe], expected(probe), "{probe:?}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "what was made is removed");
    }

    #[test]
    fn what_is_not_there_is_closed_and_what_fails_otherwise_is_untried() {
        let nowhere = PathBuf::from("/proc/0/nowhere");
        let targets = ProbeTargets {
            server_pid: u32::MAX,
            daemon_pid: 0,
            guard_pids: Vec::new(),
            state_dir: nowhere.clone(),
            socket: nowhere.clone(),
            outside_socket: nowhere.clone(),
            terminal: nowhere.clone(),
            home: nowhere,
            random_name: "x".repeat(200),
        };
        let outcomes = try_all(&targets);
        for probe in
            [Probe::ServerMemory, Probe::StateDirectory, Probe::OutsideSocket, Probe::DaemonAnswer, Probe::HomeFile]
        {
            assert_eq!(outcomes[&probe], Outcome::Closed, "{probe:?}");
        }
        for probe in [Probe::SignalServer, Probe::SignalDaemon, Probe::SignalGuard, Probe::AbstractSocket] {
            assert_eq!(outcomes[&probe], Outcome::Untried, "{probe:?}");
        }
    }

    #[test]
    fn where_processes_are_no_files_nothing_is_proved_by_them() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(outcome(reads_in(directory.path(), 1, "mem")), Outcome::Untried);
        fs::create_dir_all(directory.path().join("self")).unwrap();
        assert_eq!(outcome(reads_in(directory.path(), 1, "mem")), Outcome::Closed);
    }

    #[test]
    fn who_does_not_answer_is_no_way_in() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let closing = std::thread::spawn(move || drop(listener.accept().unwrap()));
        assert!(!is_answered(&socket).unwrap());
        closing.join().unwrap();
    }

    #[test]
    fn other_commands_are_left_alone_and_unclear_ones_fail() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>().into_iter();
        assert!(run_if_asked(words(&["gatepost", "status"])).is_none());
        assert!(run_if_asked(words(&["gatepost"])).is_none());
        let failed = format!("{:?}", ExitCode::from(NOT_UNDERSTOOD));
        for targets in [&["gatepost", COMMAND][..], &["gatepost", COMMAND, "{}"]] {
            assert_eq!(format!("{:?}", run_if_asked(words(targets)).unwrap()), failed);
        }
    }
}
