//! Reaping orphans: on macOS they fall to launchd.

use std::io;

/// There is never an orphan to reap.
///
/// # Errors
/// Never.
pub fn reap_orphans(_known: &[u32]) -> io::Result<usize> {
    Ok(0)
}
