//! The second guard: it starts the server, reaps what falls to it, and does what the daemon orders.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use host::{ChildProcess, Signal, SpawnSpec, guard, hygiene, reap, tree};

use super::ending::Watch;
use super::words::{Named, Order, Said, Started};

/// The second guard watches.
pub(super) const READY: u8 = b'r';
/// The first one does too.
pub(super) const GO: u8 = b'g';

/// Runs it; the code that it ends with.
pub(super) fn run(watch: &Watch, spec: SpawnSpec, first: &OwnedFd, other: UnixStream) -> u8 {
    match start(watch, spec, first, other) {
        Ok(Some(server)) => {
            stand(watch, first, &server);
            watch.end(&server, true);
            0
        }
        Ok(None) => 1,
        Err(error) => {
            Said::Failed(error.to_string()).say(&watch.daemon);
            1
        }
    }
}

/// Starts the server, once both guards watch. `None` when the first is gone already.
fn start(watch: &Watch, spec: SpawnSpec, first: &OwnedFd, mut other: UnixStream) -> io::Result<Option<ChildProcess>> {
    hygiene::become_subreaper()?;
    other.write_all(&[READY])?;
    // Its own copy of the other end keeps it from seeing an end there: the first guard's shows at its descriptor.
    let mut word = [0];
    while let [false, false] = guard::wait_any([other.as_fd(), first.as_fd()], None)? {}
    other.set_nonblocking(true)?;
    if other.read_exact(&mut word).is_err() || word != [GO] {
        return Ok(None);
    }
    drop(other);
    let own = std::process::id();
    let own_start = tree::process(own)?.ok_or_else(|| io::Error::other("a guard does not see itself"))?;
    let entrance = watch.cgroup.as_ref().map(|cgroup| cgroup.entrance()).transpose()?;
    // Tied to this thread: with both guards killed, the server dies all the same.
    let server = guard::spawn_here(spec, entrance)?;
    let named = Named { pid: server.pid(), start_time_ticks: server.start_time_ticks() };
    let second = Named { pid: own, start_time_ticks: own_start.start_time_ticks };
    Said::Started(Started { server: named, second, armament: watch.armament }).say(&watch.daemon);
    Ok(Some(server))
}

/// Returns when the tree is to be ended.
fn stand(watch: &Watch, first: &OwnedFd, server: &ChildProcess) {
    // Without it orphans that ended would wait for the end.
    let ended = guard::ended_children().ok();
    let ended = ended.as_ref().map_or(server.as_fd(), AsFd::as_fd);
    loop {
        let fds = [watch.life.as_fd(), first.as_fd(), server.as_fd(), watch.daemon.as_fd(), ended];
        match guard::wait_any(fds, None) {
            Ok([false, false, false, ordered, orphans]) => {
                if ordered && !carry_out(watch, server) {
                    return;
                }
                if orphans {
                    guard::drain(ended);
                    reap::reap_orphans(&[]).ok();
                }
            }
            Ok(_) | Err(_) => return,
        }
    }
}

/// Whether to go on.
fn carry_out(watch: &Watch, server: &ChildProcess) -> bool {
    let mut order = [0];
    match (&watch.daemon).read(&mut order) {
        Ok(1) if Order::from_byte(order[0]) == Order::Terminate => {
            server.signal_group(Signal::Terminate).ok();
            true
        }
        Ok(_) | Err(_) => false,
    }
}
