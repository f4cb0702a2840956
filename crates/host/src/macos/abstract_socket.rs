//! Unix sockets whose names are in no file system: macOS has none.

use std::io;
use std::os::fd::OwnedFd;

/// None.
///
/// # Errors
/// Never.
pub fn listen(_name: &str) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}

/// Fails, so that nothing counts as tried.
///
/// # Errors
/// Always.
pub fn connect(_name: &str) -> io::Result<()> {
    Err(super::unsupported("a socket with an abstract name"))
}
