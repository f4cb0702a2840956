//! Ending what a child left behind: not built for macOS, where orphans fall to launchd and cannot be told apart.

use std::io;
use std::time::Duration;

use crate::child::ChildProcess;

/// A process as it was seen in a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRef {
    /// Process id.
    pub pid: u32,
    /// Its parent's process id.
    pub parent_pid: u32,
    /// When it started, in clock ticks since the machine did.
    pub start_time_ticks: u64,
    /// Its name, chosen by itself.
    pub name: String,
}

/// What ending a tree came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndReport {
    /// Processes that were sent SIGKILL one by one.
    pub killed: usize,
    /// Process ids that were still there when the time was up.
    pub left: Vec<u32>,
}

/// Not built for macOS.
///
/// # Errors
/// Always.
pub fn descendants_of(_root: u32) -> io::Result<Vec<ProcessRef>> {
    Err(super::unsupported("listing descendants"))
}

/// Not built for macOS.
///
/// # Errors
/// Always.
pub fn process(_pid: u32) -> io::Result<Option<ProcessRef>> {
    Err(super::unsupported("looking at a process"))
}

/// Not built for macOS.
///
/// # Errors
/// Always.
pub fn end_descendants(_exempt: &[u32], _budget: Duration) -> io::Result<EndReport> {
    Err(super::unsupported("ending what a child left behind"))
}

/// Not built for macOS.
///
/// # Errors
/// Always.
pub fn end_tree(_child: &ChildProcess, _grace: Duration, _exempt: &[u32], _budget: Duration) -> io::Result<EndReport> {
    Err(super::unsupported("ending a process tree"))
}
