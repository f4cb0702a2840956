//! Killing what is below an orphan, without waiting for the orphan to end.
//!
//! Killing direct children alone loses against a tree that forks as fast as each generation is killed: what is below
//! falls to us only when its parent has found the time to end. So each pass goes down, parents first: what has SIGKILL
//! before it forks no more, and its list of children is whole.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::{pidfd, procfs};
use crate::child::Signal;

/// How far down one pass goes: a descriptor is held for each level. What is deeper falls to us meanwhile.
const MAX_DEPTH: usize = 64;

/// A process whose children are being killed.
struct Level {
    pid: u32,
    /// `None` for a child of our own: its number stays its own until it is reaped, which only we do.
    pidfd: Option<OwnedFd>,
    children: Vec<u32>,
}

/// Sends SIGKILL to everything below `root`, an unreaped child of this process that was sent it before. What ends,
/// forks or falls to us meanwhile may be missed. Returns how many were signalled.
pub(crate) fn kill_below(root: u32) -> usize {
    let mut killed = 0;
    // A number in a list that is read while it is reused cannot send us round in circles.
    let mut seen = BTreeSet::from([root]);
    let mut path = vec![Level { pid: root, pidfd: None, children: children_of(root) }];
    while let Some(level) = path.last_mut() {
        let Some(child) = level.children.pop() else {
            path.pop();
            continue;
        };
        if !seen.insert(child) {
            continue;
        }
        // One that cannot be looked at has ended or falls to us in a later pass.
        if let Ok(Some(pidfd)) = kill_child(level, child) {
            killed += 1;
            if path.len() < MAX_DEPTH {
                path.push(Level { pid: child, pidfd: Some(pidfd), children: children_of(child) });
            }
        }
    }
    killed
}

/// Kills a process if it is a child of that parent. The descriptor is opened first, so a number that is used again
/// between the looks is either a child of the same parent or leaves us with the descriptor of an ended process.
fn kill_child(parent: &Level, pid: u32) -> io::Result<Option<OwnedFd>> {
    let pidfd = pidfd::open(pid)?;
    if procfs::stat(pid)?.parent_pid != parent.pid {
        return Ok(None);
    }
    if let Some(parent_pidfd) = &parent.pidfd
        && !pidfd::is_alive(parent_pidfd.as_fd())?
    {
        return Ok(None);
    }
    pidfd::send_signal(pidfd.as_fd(), Signal::Kill)?;
    Ok(Some(pidfd))
}

/// An ended process has none: they fell to us.
fn children_of(pid: u32) -> Vec<u32> {
    procfs::children_of(pid).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// A child of ours with a child, a grandchild and one below that; the numbers of those three.
    fn tree() -> (Child, Vec<u32>) {
        const SCRIPT: &str = "sh -c 'sh -c \"sleep 60 & echo \\$!; wait\" & echo $!; wait' & echo $!; wait";
        let mut child = Command::new("/bin/sh").args(["-c", SCRIPT]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(3);
        (child, lines.map(|line| line.unwrap().parse().unwrap()).collect())
    }

    fn runs(pid: u32) -> bool {
        procfs::stat(pid).is_ok_and(|stat| !stat.is_zombie())
    }

    fn end(mut child: Child, below: &[u32]) {
        child.kill().unwrap();
        child.wait().unwrap();
        for pid in below {
            let pid = rustix::process::Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    }

    /// One that ends before its children were listed leaves them to whoever orphans fall to, which is not the test: another
    /// tree is tried then.
    #[test]
    fn what_is_below_ends_although_the_root_lives() {
        for _tree in 0..20 {
            let (mut child, below) = tree();
            // The root is stopped: it could not end, reap, or hand anything down if it were killed now.
            let root = pidfd::open(child.id()).unwrap();
            pidfd::send_signal(root.as_fd(), Signal::Stop).unwrap();
            if kill_below(child.id()) < 3 {
                end(child, &below);
                continue;
            }
            let deadline = Instant::now() + Duration::from_secs(60);
            while below.iter().any(|pid| runs(*pid)) {
                assert!(Instant::now() < deadline, "{below:?} were not killed");
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(child.try_wait().unwrap(), None);
            return end(child, &[]);
        }
        panic!("of no tree all was killed");
    }

    #[test]
    fn what_is_not_proved_to_hang_there_lives() {
        let (child, below) = tree();
        let ended = {
            let mut ended = Command::new("true").spawn().unwrap();
            let pidfd = pidfd::open(ended.id()).unwrap();
            ended.wait().unwrap();
            pidfd
        };
        let grandchild = *below.iter().find(|pid| procfs::stat(**pid).unwrap().parent_pid == child.id()).unwrap();
        let of_another = Level { pid: std::process::id(), pidfd: None, children: Vec::new() };
        assert!(kill_child(&of_another, grandchild).unwrap().is_none());
        let of_an_ended = Level { pid: child.id(), pidfd: Some(ended), children: Vec::new() };
        assert!(kill_child(&of_an_ended, grandchild).unwrap().is_none());
        assert!(below.iter().all(|pid| runs(*pid)));
        end(child, &below);
    }
}
