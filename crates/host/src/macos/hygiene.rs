//! Hardening of the calling process on macOS. Never run.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Forbids core files. macOS has nothing that hides a process from others of the same user.
///
/// # Errors
/// When the kernel refuses.
pub fn harden_self() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

/// Whether this process gains no privileges by executing programs.
///
/// # Errors
/// When the kernel does not say.
pub fn has_no_new_privileges() -> io::Result<bool> {
    Err(super::unsupported("giving up new privileges"))
}

/// The user whom this process acts as.
#[must_use]
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this process is root, whom little of what is built here stops.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user id under which root's files show.
#[must_use]
pub fn root_uid() -> u32 {
    0
}

/// macOS has no subreaper: orphans fall to launchd.
///
/// # Errors
/// Always.
pub fn become_subreaper() -> io::Result<()> {
    Err(super::unsupported("becoming the subreaper"))
}

/// Whether orphans of the calling process's tree fall to it: never.
///
/// # Errors
/// Never.
pub fn is_subreaper() -> io::Result<bool> {
    Ok(false)
}

/// Whether others of the same user may read the calling process: always.
///
/// # Errors
/// Never.
pub fn is_dumpable() -> io::Result<bool> {
    Ok(true)
}
