//! The first guard: it proves the domain, starts the second and watches it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use host::cgroup::Cgroup;
use host::guard::{self, Outsider, Reach};
use host::{SpawnSpec, hygiene, kernel};
use rules::guard::{Armament, Domain, Seen, Signalled};

use super::ending::Watch;
use super::second::{self, GO, READY};
use super::words::Said;
use super::{Asked, LIFE_FD, STATUS_FD};

/// For the second guard to say that it watches.
const READY_WAIT: Duration = Duration::from_secs(20);
const FAILED: u8 = 1;

/// Runs the first guard, with the arguments after the command's name: to be called in a process of its own with this thread
/// only, that the daemon started with its pipe and its socket. Returns when the tree is ended. Others of its user can read
/// both guards unless they are to be `unreadable`, which all are but those of tests.
#[must_use]
pub fn run(arguments: &[OsString], unreadable: bool) -> ExitCode {
    let Ok(daemon) = guard::take_fd(STATUS_FD).map(UnixStream::from) else { return ExitCode::from(FAILED) };
    match watch(arguments, unreadable, &daemon) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            Said::Failed(error.to_string()).say(&daemon);
            ExitCode::from(FAILED)
        }
    }
}

fn watch(arguments: &[OsString], unreadable: bool, daemon: &UnixStream) -> io::Result<()> {
    if unreadable {
        hygiene::harden_self()?;
    }
    guard::ignore_polite_signals();
    hygiene::become_subreaper()?;
    let refused = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
    let asked = Asked::parse(arguments).ok_or_else(|| refused("the guard's arguments are not understood"))?;
    let life = guard::take_fd(LIFE_FD)?;
    let cgroup = asked.cgroup.clone().map(Cgroup::at);
    let outsider = Outsider::parent()?;
    let armament = armament(&outsider, asked.domain, cgroup.is_some());
    let first = guard::own_pidfd()?;
    let (mut mine, theirs) = UnixStream::pair()?;
    mine.set_read_timeout(Some(READY_WAIT))?;
    let spec = spec(asked)?;
    let watch = Watch { life, daemon: daemon.try_clone()?, outsider, armament, cgroup };
    // The second has its own of everything; what it is handed is closed here.
    let for_second = &watch;
    let second = guard::fork(move || second::run(for_second, spec, &first, theirs))?;
    let mut word = [0];
    if mine.read_exact(&mut word).is_err() || word != [READY] {
        watch.end(&second, false);
        return Err(io::Error::other("the second guard did not come up"));
    }
    // From here on two watch. The daemon's end shows at the pipe, and the server's at the second guard.
    guard::outlive_parent()?;
    // A failure means that the second has ended, which is seen below.
    mine.write_all(&[GO]).ok();
    drop(mine);
    while let Ok([false, false]) = guard::wait_any([watch.life.as_fd(), second.as_fd()], None) {}
    watch.end(&second, false);
    Ok(())
}

/// Enters the domain and proves it, where that is allowed.
fn armament(daemon: &Outsider, domain: Domain, has_cgroup: bool) -> Armament {
    let is_root = hygiene::is_root();
    let landlock_abi = kernel::landlock_abi();
    let before = signalled(daemon);
    // Root's server would lose new privileges for nothing.
    let entered = !is_root
        && match domain {
            Domain::Signals => guard::enter_signal_domain(false).is_ok(),
            Domain::SignalsAndLinks => guard::enter_signal_domain(true).is_ok(),
            Domain::None => false,
        };
    let after = signalled(daemon);
    rules::guard::armament(&Seen { is_root, domain, landlock_abi, before, entered, after, has_cgroup })
}

fn signalled(daemon: &Outsider) -> Signalled {
    match daemon.reach() {
        Reach::Open => Signalled::Delivered,
        Reach::Refused => Signalled::Refused,
        Reach::Unknown => Signalled::Unknown,
    }
}

/// What the server is started with: what this process was, less what is the guards'.
fn spec(asked: Asked) -> io::Result<SpawnSpec> {
    let take = |number: i32| guard::take_fd(number).map(|fd| (fd, number));
    let fds: Vec<(OwnedFd, i32)> = asked.fds.into_iter().map(take).collect::<io::Result<_>>()?;
    let (stdout, stderr) = guard::take_output()?;
    Ok(SpawnSpec {
        program: asked.program,
        args: asked.args,
        env: std::env::vars_os().collect(),
        cwd: std::env::current_dir()?,
        fds,
        stdout,
        stderr,
    })
}
