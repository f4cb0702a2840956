//! Hardening of the calling process.

use std::io;
use std::sync::OnceLock;

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
    forbid_core_files()
}

/// Forbids core files, for the calling process and all that it will start. Without privileges nothing lifts that.
pub(crate) fn forbid_core_files() -> io::Result<()> {
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

/// The user id under which root's files show: 0, or, in a user namespace that root is not mapped into (as that of a hardened
/// service unit), the one that stands for all who are not. There, root cannot be told from other users by it.
#[must_use]
pub fn root_uid() -> u32 {
    static SEEN: OnceLock<u32> = OnceLock::new();
    *SEEN.get_or_init(|| match std::fs::read_to_string("/proc/self/uid_map") {
        Ok(map) if !maps_root(&map) => {
            let unmapped = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
            unmapped.and_then(|uid| uid.trim().parse().ok()).unwrap_or(DEFAULT_UNMAPPED_UID)
        }
        Ok(_) | Err(_) => 0,
    })
}

/// What stands for all users that are not mapped, unless the system was told otherwise.
const DEFAULT_UNMAPPED_UID: u32 = 65_534;

/// Whether user 0 is within one of the map's ranges, each of which is a line: its first inside, its first outside, its length.
fn maps_root(map: &str) -> bool {
    map.lines().any(|range| range.split_ascii_whitespace().next() == Some("0"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_mapped_where_a_range_begins_with_it() {
        for (map, mapped) in [
            ("         0          0 4294967295\n", true),
            ("      1000       1000          1\n", false),
            ("      1000       1000          1\n         0     100000      65536\n", true),
            ("", false),
        ] {
            assert_eq!(maps_root(map), mapped, "{map:?}");
        }
        assert_eq!(root_uid(), 0);
    }
}
