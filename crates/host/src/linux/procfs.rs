//! What `/proc` says about processes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// One line of `/proc/<pid>/stat`. The values of a process that ends meanwhile may be zero: check its descriptor after
/// reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent_pid: u32,
    /// 0 when it is not of our view.
    pub(crate) session: u32,
    pub(crate) start_time_ticks: u64,
}

/// What a process without privileges can give up and never get back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenUp {
    /// It gains no privileges by executing a program.
    pub no_new_privileges: bool,
    /// Number of filters of system calls that it is under.
    pub filters: u32,
    /// The hard limit of its core files is zero.
    pub no_core_files: bool,
}

impl Stat {
    /// Ended, and not reaped yet.
    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Reads one process; `NotFound` when it is gone.
pub(crate) fn stat(pid: u32) -> io::Result<Stat> {
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).map_err(|error| {
        if is_gone(&error) { io::Error::new(io::ErrorKind::NotFound, "the process is gone") } else { error }
    })?;
    let text = String::from_utf8_lossy(&bytes);
    parse_stat(&text)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat is not understood")))
}

/// A process that ends between opening and reading gives another error than one that is gone.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Reads every process that can be seen.
pub(crate) fn all() -> io::Result<Vec<Stat>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|text| text.parse::<u32>().ok()) else { continue };
        match stat(pid) {
            Ok(stat) => found.push(stat),
            // Gone meanwhile, or hidden (`hidepid`), which only other users' processes are.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The children of this process, ended ones too. Exact when none is reaped meanwhile: the kernel lists those of each
/// thread in the order in which they came, and only reaping takes one off its list.
pub(crate) fn own_children() -> io::Result<Vec<u32>> {
    children_of(std::process::id())
}

/// The children of a process, ended ones too. What it reaps meanwhile can hide others.
pub(crate) fn children_of(pid: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        match std::fs::read_to_string(thread?.path().join("children")) {
            Ok(text) => found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok())),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    if found.is_empty() && !std::fs::exists("/proc/thread-self/children")? {
        // A kernel built without these lists.
        return Ok(all()?.into_iter().filter(|stat| stat.parent_pid == pid).map(|stat| stat.pid).collect());
    }
    Ok(found)
}

/// The number of the process behind a pidfd: `None` when it was reaped or is outside our view.
pub(crate) fn pid_of(pidfd: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    let value = text.lines().find_map(|line| line.strip_prefix("Pid:"));
    let value = value.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the descriptor is no pidfd"))?;
    Ok(value.trim().parse::<u32>().ok().filter(|pid| *pid > 0))
}

/// The name stands in parentheses and may hold anything, parentheses too; after the last one only numbers follow.
fn parse_stat(text: &str) -> Option<Stat> {
    let (pid, rest) = text.split_once(" (")?;
    let (name, fields) = rest.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent_pid = fields.next()?.parse().ok()?;
    // The group (5) lies between the parent (4) and the session (6), and 7 to 21 between that and the start time (22).
    // While a process is taken apart the kernel says -1: it has no session any more, as one that is not visible has none.
    let session = fields.nth(1)?.parse::<i32>().ok()?.max(0).cast_unsigned();
    let start_time_ticks = fields.nth(15)?.parse().ok()?;
    Some(Stat { pid: pid.parse().ok()?, name: name.to_owned(), state, parent_pid, session, start_time_ticks })
}

/// What a process has given up for good, as `/proc/<pid>/status` and `limits` say. As with [`stat`], check the process's
/// descriptor after reading.
pub(crate) fn given_up(pid: u32) -> io::Result<GivenUp> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits"))?;
    parse_given_up(&status, &limits)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/status is not understood")))
}

fn parse_given_up(status: &str, limits: &str) -> Option<GivenUp> {
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse::<u32>().ok())
    };
    // Soft limit, hard limit, unit.
    let core_files = limits.lines().find_map(|line| line.strip_prefix("Max core file size"))?;
    Some(GivenUp {
        no_new_privileges: number("NoNewPrivs")? != 0,
        filters: number("Seccomp_filters")?,
        no_core_files: core_files.split_ascii_whitespace().nth(1)? == "0",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_name_that_looks_like_the_rest_of_the_line() {
        let line = "42 (a) R 1 (x) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 10 11 12\n";
        let stat = parse_stat(line).unwrap();
        assert_eq!(
            stat,
            Stat {
                pid: 42,
                name: "a) R 1 (x".to_owned(),
                state: 'S',
                parent_pid: 7,
                session: 42,
                start_time_ticks: 9876
            }
        );
    }

    #[test]
    fn a_process_that_is_being_taken_apart_has_no_session() {
        let line = "42 (a) X 7 -1 -1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 10 11 12\n";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.state, stat.parent_pid, stat.session, stat.start_time_ticks), ('X', 7, 0, 9876));
    }

    #[test]
    fn what_was_given_up_is_read_and_nothing_is_guessed() {
        let status = "Name:\tNoNewPrivs:\t1\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t3\n";
        let limits =
            |hard: &str| format!("Limit  Soft Limit  Hard Limit  Units\nMax core file size   0   {hard}   bytes\n");
        let given_up = |hard: &str| parse_given_up(status, &limits(hard)).unwrap();
        let all = GivenUp { no_new_privileges: false, filters: 3, no_core_files: true };
        assert_eq!(given_up("0"), all);
        assert_eq!(given_up("unlimited"), GivenUp { no_core_files: false, ..all });
        assert_eq!(parse_given_up("NoNewPrivs:\t1\n", &limits("0")), None);
        assert_eq!(parse_given_up(status, ""), None);
    }

    #[test]
    fn a_line_that_is_cut_short_is_not_understood() {
        for line in ["", "42 (a", "42 (a) S", "42 (a) S 7 42 42 0", "x (a) S 7 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 5"] {
            assert_eq!(parse_stat(line), None, "{line}");
        }
    }

    #[test]
    fn finds_itself() {
        let own = stat(std::process::id()).unwrap();
        assert!(own.start_time_ticks > 0);
        assert!(!own.is_zombie());
        assert!(all().unwrap().iter().any(|stat| stat.pid == own.pid && stat.start_time_ticks == own.start_time_ticks));
        assert_eq!(stat(u32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
        let fd = super::super::pidfd::open(own.pid).unwrap();
        assert_eq!(pid_of(std::os::fd::AsFd::as_fd(&fd)).unwrap(), Some(own.pid));
    }
}
