//! Whose descendant a process is, answered soundly although processes end and their numbers are reused.
//!
//! One step: read the parent's number, open the parent, read the number again. If it is unchanged and the process
//! still alive, the descriptor is of the parent. A process that ends falls to the nearest subreaper above it, so a
//! descendant of a subreaper stays one whatever ends in between, and a walk that was disturbed starts again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::{pidfd, procfs};

/// Longest chain of parents that is followed.
const MAX_DEPTH: usize = 256;
/// How often a disturbed walk starts again.
const MAX_ATTEMPTS: usize = 64;
/// Pause after a disturbance, so that what is ending can end.
const PAUSE: Duration = Duration::from_micros(200);

/// Where a walk up the parents ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// At this process, one of those looked for.
    Reached(u32),
    /// At the top, without meeting any of them.
    Top,
    /// Nowhere: the process has ended, or the walk was disturbed too often.
    Unknown,
}

enum Attempt {
    Done(Walk),
    /// A process on the way ended while it was looked at.
    Disturbed,
}

/// Walks up from the process `pid` that `process` is a descriptor of, to the first that `is_wanted`. It gets the number of
/// generations above `pid` (0 is `pid` itself, and comes again when a walk starts again) and a process's number; what it
/// looks up about that is of the right process, or its answer is dropped. An error disturbs the walk.
pub(crate) fn walk(
    pid: u32,
    process: BorrowedFd<'_>,
    mut is_wanted: impl FnMut(usize, u32) -> io::Result<bool>,
) -> Walk {
    for _ in 0..MAX_ATTEMPTS {
        match attempt(pid, process, &mut is_wanted) {
            Attempt::Done(end) => return end,
            Attempt::Disturbed => {
                // If the process itself is gone there is nothing to ask any more.
                if !matches!(pidfd::is_alive(process), Ok(true)) {
                    return Walk::Unknown;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
    Walk::Unknown
}

fn attempt(pid: u32, process: BorrowedFd<'_>, is_wanted: &mut impl FnMut(usize, u32) -> io::Result<bool>) -> Attempt {
    let mut current = pid;
    let mut opened: Option<OwnedFd> = None;
    for generation in 0..MAX_DEPTH {
        let fd = opened.as_ref().map_or(process, AsFd::as_fd);
        match is_wanted(generation, current) {
            Ok(false) => {}
            Ok(true) if matches!(pidfd::is_alive(fd), Ok(true)) => return Attempt::Done(Walk::Reached(current)),
            Ok(true) | Err(_) => return Attempt::Disturbed,
        }
        match step(current, fd, pidfd::open) {
            Step::Up(parent, parent_fd) => (current, opened) = (parent, Some(parent_fd)),
            Step::Top => return Attempt::Done(Walk::Top),
            Step::Disturbed => return Attempt::Disturbed,
        }
    }
    Attempt::Done(Walk::Unknown)
}

/// From a process to its parent.
enum Step {
    /// Its number, and a descriptor of it.
    Up(u32, OwnedFd),
    /// It has none.
    Top,
    /// One of them ended meanwhile.
    Disturbed,
}

/// `open` gives a descriptor of the process that has a number then, which may be another by then.
fn step(pid: u32, process: BorrowedFd<'_>, open: impl FnOnce(u32) -> io::Result<OwnedFd>) -> Step {
    let Some(parent) = living_parent(pid, process) else { return Step::Disturbed };
    if parent == 0 {
        return Step::Top;
    }
    match open(parent) {
        Ok(parent_fd) if living_parent(pid, process) == Some(parent) => Step::Up(parent, parent_fd),
        Ok(_) | Err(_) => Step::Disturbed,
    }
}

/// The parent's number, read while the process was certainly alive: the kernel shows 0 for one that is being removed.
fn living_parent(pid: u32, process: BorrowedFd<'_>) -> Option<u32> {
    let stat = procfs::stat(pid).ok()?;
    matches!(pidfd::is_alive(process), Ok(true)).then_some(stat.parent_pid)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A child with a child, whose number comes with it.
    fn pair() -> (Child, u32) {
        const SCRIPT: &str = "sleep 60 & echo $!; wait";
        let mut child = Command::new("/bin/sh").args(["-c", SCRIPT]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (child, line.trim().parse().unwrap())
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn end_stranger(process: BorrowedFd<'_>) {
        pidfd::send_signal(process, crate::child::Signal::Kill).unwrap();
    }

    #[test]
    fn a_parent_that_was_replaced_before_it_was_opened_is_not_taken_for_the_parent() {
        let (parent, child) = pair();
        let (parent_pid, own) = (parent.id(), std::process::id());
        let process = pidfd::open(child).unwrap();
        assert!(matches!(step(child, process.as_fd(), pidfd::open), Step::Up(pid, _) if pid == parent_pid));
        // The parent ends after its number was read, and the number is another's by the time that it is opened.
        let replaced = step(child, process.as_fd(), |_| {
            end(parent);
            pidfd::open(own)
        });
        assert!(matches!(replaced, Step::Disturbed));
        end_stranger(process.as_fd());
    }

    #[test]
    fn who_has_the_number_of_an_ended_process_is_not_taken_for_it() {
        let (parent, child) = pair();
        let ended = {
            let mut ended = Command::new("true").spawn().unwrap();
            let pidfd = pidfd::open(ended.id()).unwrap();
            ended.wait().unwrap();
            pidfd
        };
        // As if the child had been given the ended one's number.
        assert_eq!(walk(child, ended.as_fd(), |_, _| Ok(true)), Walk::Unknown);
        assert_eq!(walk(child, ended.as_fd(), |_, _| Ok(false)), Walk::Unknown);
        let process = pidfd::open(child).unwrap();
        assert_eq!(walk(child, process.as_fd(), |_, pid| Ok(pid == parent.id())), Walk::Reached(parent.id()));
        end_stranger(process.as_fd());
        end(parent);
    }
}
