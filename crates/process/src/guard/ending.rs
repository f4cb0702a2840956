//! Ending the tree, by one guard or by both at once.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use host::cgroup::Cgroup;
use host::guard::Outsider;
use host::{ChildProcess, ExitStatus, Signal, guard, tree};
use rules::guard::{Armament, Means};

use super::words::{Ended, Said};

/// For the child of a guard to be gone after SIGKILL.
const CHILD_WAIT: Duration = Duration::from_secs(5);
/// For all that hangs below a guard to be gone.
const WALK_BUDGET: Duration = Duration::from_secs(10);

/// What both guards hold.
pub(super) struct Watch {
    /// At its end, the daemon is gone or has given the server up.
    pub(super) life: std::os::fd::OwnedFd,
    pub(super) daemon: UnixStream,
    pub(super) outsider: Outsider,
    pub(super) armament: Armament,
    pub(super) cgroup: Option<Cgroup>,
}

impl Watch {
    /// Ends `child`, which is the other guard or the server, and everything else that this guard may and can, and says so.
    pub(super) fn end(&self, child: &ChildProcess, is_server: bool) {
        let began = Instant::now();
        // A server's group first: with it go most, whatever comes of the rest. It is not reaped yet, so the group is its own.
        child.signal_group(Signal::Kill).ok();
        if self.armament.means == Means::Scope {
            // What is refused here is left to the walk.
            guard::kill_domain(&self.outsider).ok();
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill().ok();
        }
        let status = child.wait_exit(CHILD_WAIT).ok().flatten().filter(|_| is_server);
        // Looks whether anything is left, and ends that too: what left the cgroup, or all, where there is no other means.
        let killed = tree::end_descendants(&[], WALK_BUDGET).map_or(0, |report| report.killed);
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove().ok();
        }
        let (code, signal) = match status {
            Some(ExitStatus::Code(code)) => (Some(code), None),
            Some(ExitStatus::Signal(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        Said::Ended(Ended { code, signal, killed, took_us }).say(&self.daemon);
    }
}
