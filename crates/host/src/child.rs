//! A process that was started here, held by its descriptor so that a reused number is never mistaken for it.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::platform::{pidfd, registry};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(signal) => write!(formatter, "signal {signal}"),
        }
    }
}

/// The signals that are sent from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: stop what you are doing.
    Interrupt,
    /// SIGTERM: please end.
    Terminate,
    /// SIGKILL: ends at once.
    Kill,
    /// SIGSTOP: stands still.
    Stop,
    /// SIGCONT: goes on.
    Continue,
}

/// A child started by [`crate::spawn::Spawner`]. It leads a session and a process group of its own, and is the
/// subreaper of its tree.
///
/// While this value lives and the child was not reaped, [`crate::tree::end_descendants`] and
/// [`crate::reap::reap_orphans`] leave the child and its tree alone. Dropping it without a reaped exit gives the child
/// up: it then counts as an orphan.
#[derive(Debug)]
pub struct ChildProcess {
    pid: u32,
    start_time_ticks: u64,
    pidfd: OwnedFd,
    /// Set once reaped. Also held while the group is signalled, so that the number cannot be given away meanwhile.
    exit: Mutex<Option<ExitStatus>>,
}

impl ChildProcess {
    /// The child is already in the registry; `pid` is ours and unreaped.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "no child can be started there yet"))]
    pub(crate) fn new(pid: u32, start_time_ticks: u64, pidfd: OwnedFd) -> Self {
        Self { pid, start_time_ticks, pidfd, exit: Mutex::new(None) }
    }

    /// The process id, which is also its process group and session.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When it started, in clock ticks since the machine did: with [`Self::pid`], names it for good.
    #[must_use]
    pub fn start_time_ticks(&self) -> u64 {
        self.start_time_ticks
    }

    /// Waits at most `timeout` for the end, and reaps. `None` when it still runs. Later calls repeat the answer.
    ///
    /// # Errors
    /// When the status was lost to someone else who reaped it, or the kernel refuses to wait.
    pub fn wait_exit(&self, timeout: Duration) -> io::Result<Option<ExitStatus>> {
        if let Some(status) = *self.exit() {
            return Ok(Some(status));
        }
        if !self.has_ended(timeout)? {
            return Ok(None);
        }
        self.try_wait()
    }

    /// Reaps if it has ended; never waits.
    ///
    /// # Errors
    /// As [`Self::wait_exit`].
    pub fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        let mut exit = self.exit();
        if exit.is_none() {
            *exit = registry::reap(self.pid, self.pidfd.as_fd())?;
        }
        Ok(*exit)
    }

    /// Waits at most `timeout` for the end, and does not reap: the process group stays ours to signal.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn has_ended(&self, timeout: Duration) -> io::Result<bool> {
        crate::io_util::wait_readable(self.pidfd.as_fd(), timeout)
    }

    /// Signals the process itself. `NotFound` when it is gone.
    ///
    /// # Errors
    /// When it is gone, or the kernel refuses.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        pidfd::send_signal(self.pidfd.as_fd(), signal)
    }

    /// Signals every process of its group. Only while the child is unreaped, since only then is the group's number
    /// certainly ours.
    ///
    /// # Errors
    /// `NotFound` when the child was reaped or no process of the group is left.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        let exit = self.exit();
        if exit.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the process was reaped, its group is not ours any more",
            ));
        }
        pidfd::signal_group(self.pid, signal)
    }

    fn exit(&self) -> MutexGuard<'_, Option<ExitStatus>> {
        // Nothing panics while it is held; and the value would be right all the same.
        self.exit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kills every child that a [`ChildProcess`] holds, with its group, for a daemon that is told to hurry. Whoever waits for
/// them goes on as after any other end. Returns how many there were.
pub fn kill_all_held() -> usize {
    registry::kill_held()
}

/// The pidfd: readable once the process has ended, for use with an event loop.
impl AsFd for ChildProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.exit().is_none() {
            registry::give_up(self.pid);
        }
    }
}
