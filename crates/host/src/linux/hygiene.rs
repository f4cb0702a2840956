//! Hardening of the calling process.

use std::io;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, child_subreaper, dumpable_behavior, set_child_subreaper, set_dumpable_behavior,
    setrlimit,
};

/// Makes the calling process unreadable to others of the same user (`PR_SET_DUMPABLE` 0: memory, environment,
/// descriptors) and forbids core files (`RLIMIT_CORE` 0, which its children inherit). Call it first in `main`.
///
/// # Errors
/// When the kernel refuses either.
pub fn harden_self() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

/// Whether this process gains no privileges by executing programs.
///
/// # Errors
/// When the kernel does not say.
pub fn has_no_new_privileges() -> io::Result<bool> {
    rustix::thread::no_new_privs().map_err(io::Error::from)
}

/// Whether this process is root, whom little of what is built here stops.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes the calling process the one that orphans of its tree fall to (`PR_SET_CHILD_SUBREAPER`). The daemon calls it
/// before its first child: [`crate::tree`] and [`crate::peer`] rely on it.
///
/// # Errors
/// When the kernel refuses.
pub fn become_subreaper() -> io::Result<()> {
    // The kernel only looks at whether the argument is zero.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Whether orphans of the calling process's tree fall to it.
///
/// # Errors
/// When the kernel cannot say.
pub fn is_subreaper() -> io::Result<bool> {
    Ok(child_subreaper()?.is_some())
}

/// Whether others of the same user may read the calling process.
///
/// # Errors
/// When the kernel cannot say.
pub fn is_dumpable() -> io::Result<bool> {
    Ok(dumpable_behavior()? != DumpableBehavior::NotDumpable)
}
