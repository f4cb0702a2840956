//! What the kernel counts of a process.

use crate::failure::{Doing, Failure, Outcome};
use std::fs;

/// What a process used since it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    /// Times that a thread of it gave up the processor or lost it.
    pub(super) context_switches: u64,
    /// Nanoseconds that its threads ran.
    pub(super) cpu_ns: u64,
}

/// Its resident memory in MB of a million bytes: all of it, and what of it is no file's.
pub(crate) fn resident_mb(pid: u32) -> Outcome<(f64, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).doing("the process cannot be looked at")?;
    let mb = |name| Ok::<f64, Failure>(number(&status, name)? as f64 * 1024.0 / 1e6);
    Ok((mb("VmRSS:")?, mb("RssAnon:")?))
}

/// What its threads used, those that have ended aside.
pub(super) fn used(pid: u32) -> Outcome<Used> {
    let mut used = Used { context_switches: 0, cpu_ns: 0 };
    for thread in fs::read_dir(format!("/proc/{pid}/task")).doing("the threads cannot be listed")?.flatten() {
        // A thread may end between the two looks.
        let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
        let Ok(times) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
        used.context_switches += number(&status, "voluntary_ctxt_switches:")?;
        used.context_switches += number(&status, "nonvoluntary_ctxt_switches:")?;
        let ran = times.split(' ').next().and_then(|word| word.parse::<u64>().ok());
        used.cpu_ns += ran.ok_or_else(|| Failure::new("the kernel does not tell how long a thread ran"))?;
    }
    Ok(used)
}

/// Threads that it has.
pub(crate) fn threads(pid: u32) -> Outcome<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/task")).doing("the threads cannot be listed")?.count())
}

/// Descriptors that it has open.
pub(crate) fn descriptors(pid: u32) -> Outcome<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd")).doing("the descriptors cannot be listed")?.count())
}

fn number(status: &str, name: &str) -> Outcome<u64> {
    let found = status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    found.ok_or_else(|| Failure::new(format!("the kernel does not tell {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_counted() {
        let own = std::process::id();
        let (all, anonymous) = resident_mb(own).unwrap();
        assert!(all >= anonymous && anonymous > 0.1, "{all} {anonymous}");
        assert!(used(own).unwrap().cpu_ns > 0 && threads(own).unwrap() > 0 && descriptors(own).unwrap() > 2);
        assert!(number("a: 1\nb: 2 kB\n", "c:").is_err());
        assert_eq!(number("a: 1\nb: 2 kB\n", "b:").unwrap(), 2);
    }
}
