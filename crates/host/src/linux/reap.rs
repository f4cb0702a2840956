//! Reaping orphans that fell to this process, one by one and by number.

use std::io;

use super::registry;

/// Reaps every ended child of this process that is neither held by a [`crate::child::ChildProcess`] nor named in
/// `known` (children started in other ways, whose exit someone else waits for). Never waits. Returns how many.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn reap_orphans(known: &[u32]) -> io::Result<usize> {
    registry::reap_unheld(known)
}
