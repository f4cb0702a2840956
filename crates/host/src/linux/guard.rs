//! What a guard of a tree needs of the kernel: a domain of signals of its own, the proof of it, one signal to all of it, and
//! a second guard.
//!
//! `kill(-1, SIGKILL)` reaches every process that may be signalled, in one step: nothing that was sent it can fork any more. In
//! a domain that no signal leaves, that is the domain; anywhere else it is everything the user runs. So it is sent only
//! where a signal to a process outside was tried and refused.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use landlock::{
    AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    Scope,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, getppid, pidfd_open};

use super::{child_setup, registry};
use crate::child::ChildProcess;
use crate::io_util::FIRST_OWN_FD;
use crate::spawn::SpawnSpec;

pub use crate::io_util::take_fd;

/// What the kernel said to a signal that does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It would be delivered.
    Open,
    /// It is not permitted.
    Refused,
    /// The process is gone, or the kernel says something else.
    Unknown,
}

/// A process outside the domain, to prove the domain with: the parent of the guard.
#[derive(Debug)]
pub struct Outsider {
    pidfd: OwnedFd,
}

impl Outsider {
    /// The parent of the calling process.
    ///
    /// # Errors
    /// When it has ended, or cannot be opened.
    pub fn parent() -> io::Result<Self> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the parent is gone");
        let parent = getppid().ok_or_else(gone)?;
        let pidfd = pidfd_open(parent, PidfdFlags::empty())?;
        // Still the parent, so the number was not given away before it was opened.
        if getppid() == Some(parent) { Ok(Self { pidfd }) } else { Err(gone()) }
    }

    /// Whether a signal from here would reach it.
    #[must_use]
    pub fn reach(&self) -> Reach {
        let (fd, none, nothing, no_flags) = (self.pidfd.as_raw_fd(), 0, std::ptr::null::<libc::siginfo_t>(), 0);
        // SAFETY: the descriptor is open, and the kernel makes the information itself when none is given.
        let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, none, nothing, no_flags) };
        if sent == 0 {
            return Reach::Open;
        }
        if io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) { Reach::Refused } else { Reach::Unknown }
    }
}

/// Puts the calling process, and all that it will ever start, into a new domain that no signal leaves. Files, sockets and
/// everything else stay as they are, with one exception. Gives up new privileges by `exec`, without which an ordinary user may
/// not do this.
///
/// The exception is a domain below this one that handles files: there, without `grants_links`, hard links and renames
/// between directories are refused, since Landlock has every domain refuse them that does not grant them. With
/// `grants_links` they stay possible, and mounts are refused from here on.
///
/// # Errors
/// When the kernel has no such scope (Landlock 6, Linux 6.12), or did not enforce it in full.
pub fn enter_signal_domain(grants_links: bool) -> io::Result<()> {
    let refused = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal);
    let mut ruleset = ruleset.map_err(|error| refused(&error))?;
    if grants_links {
        ruleset = ruleset.handle_access(AccessFs::Refer).map_err(|error| refused(&error))?;
    }
    let mut created = ruleset.create().map_err(|error| refused(&error))?;
    if grants_links {
        let everywhere = PathFd::new("/").map_err(|error| refused(&error))?;
        let links = PathBeneath::new(everywhere, AccessFs::Refer);
        created = created.add_rule(links).map_err(|error| refused(&error))?;
    }
    let status = created.restrict_self().map_err(|error| refused(&error))?;
    if status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs {
        Ok(())
    } else {
        Err(refused(&"the domain is only partly enforced"))
    }
}

/// Sends SIGKILL to every process of the domain but the calling one. `false` when there was no other.
///
/// The caller has proved the domain. What would make this reach further is looked at once more, right here, whatever was
/// decided: root is never allowed it, nor anyone who can signal `outsider` now.
///
/// # Errors
/// `PermissionDenied` when one of the two is so; what the kernel says otherwise.
pub fn kill_domain(outsider: &Outsider) -> io::Result<bool> {
    let denied = |what| Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    if rustix::process::getuid().is_root() || rustix::process::geteuid().is_root() {
        return denied("root never signals everything");
    }
    if outsider.reach() == Reach::Open {
        return denied("signals leave the domain");
    }
    // INVARIANT I8: nothing outside the domain is ever signalled.
    // SAFETY: sends a signal, and reads no memory.
    if unsafe { libc::kill(-1, libc::SIGKILL) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ESRCH) { Ok(false) } else { Err(error) }
}

/// Lets the calling process outlive the thread that started it.
///
/// # Errors
/// When the kernel refuses.
pub fn outlive_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(None)?)
}

/// Blocks every signal that can be blocked, for the calling thread: a polite signal to all of a service's processes must
/// not end the guards before what they guard.
pub fn ignore_polite_signals() {
    child_setup::prepare_thread();
}

/// A descriptor of the calling process, which lets others see its end.
///
/// # Errors
/// When there is no descriptor left.
pub fn own_pidfd() -> io::Result<OwnedFd> {
    Ok(pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?)
}

/// A second process like this one, in a session of its own, which runs `body` and ends with its result. Nothing ties its life
/// to ours.
///
/// # Errors
/// When this process has another thread, which would be missing in the second, or the kernel has no room.
pub fn fork(body: impl FnOnce() -> u8) -> io::Result<ChildProcess> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with several threads cannot be doubled"));
    }
    // SAFETY: this process has one thread, so the child is whole: no lock is held by a thread that is not there.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // A failure would mean that it leads a group already.
        rustix::process::setsid().ok();
        let code = body();
        // SAFETY: ends the child without running what the parent registered for its own end.
        unsafe { libc::_exit(code.into()) }
    }
    let pid = u32::try_from(pid).map_err(|_| io::Error::last_os_error())?;
    // Not while it is forked: the child would find the set locked for ever.
    registry::fork_recorded(|| Ok(pid))?;
    child_setup::hold(pid)
}

/// As [`crate::spawn::Spawner::spawn`], from the calling thread, whose end is the child's, and without making the child a
/// subreaper: orphans of its tree fall to the caller. With `cgroup`, an open `cgroup.procs`, the child enters that cgroup
/// before it runs the program.
///
/// # Errors
/// As [`crate::spawn::Spawner::spawn`].
pub fn spawn_here(spec: SpawnSpec, cgroup: Option<OwnedFd>) -> io::Result<ChildProcess> {
    child_setup::start_in(spec, false, cgroup)
}

/// Standard output and error, taken over; `/dev/null` stands in their place.
///
/// # Errors
/// When there is no descriptor left.
pub fn take_output() -> io::Result<(OwnedFd, OwnedFd)> {
    let taken = (
        rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), FIRST_OWN_FD)?,
        rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), FIRST_OWN_FD)?,
    );
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(taken)
}

/// Readable when children have ended. Every signal is blocked already ([`ignore_polite_signals`]).
///
/// # Errors
/// When there is no descriptor left.
pub fn ended_children() -> io::Result<OwnedFd> {
    // SAFETY: a set on the stack, filled before it is read; the call makes a new descriptor.
    let fd = unsafe {
        let mut ended = std::mem::zeroed();
        libc::sigemptyset(&mut ended);
        libc::sigaddset(&mut ended, libc::SIGCHLD);
        libc::signalfd(-1, &ended, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits until one of these can be read or is at its end, at most `timeout`, for ever without one. Which are.
///
/// # Errors
/// When the kernel refuses to wait.
pub fn wait_any<const N: usize>(fds: [BorrowedFd<'_>; N], timeout: Option<Duration>) -> io::Result<[bool; N]> {
    let timeout = timeout.map(|wait| Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    });
    let mut polled = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => Ok(polled.map(|fd| !fd.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
    }
}

/// Empties what [`ended_children`] told so far. Ends are looked for after it, so that none is missed.
pub fn drain(fd: BorrowedFd<'_>) {
    let mut told = [0_u8; 1024];
    while rustix::io::read(fd.as_fd(), &mut told).is_ok_and(|read| read > 0) {}
}
