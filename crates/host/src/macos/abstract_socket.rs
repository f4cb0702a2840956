//! There are no abstract names on this system: nobody listens and nobody connects.

use std::io;
use std::os::fd::OwnedFd;

/// Fails.
///
/// # Errors
/// Always.
pub fn listen(_name: &str) -> io::Result<OwnedFd> {
    Err(super::unsupported("a socket with an abstract name"))
}

/// Fails.
///
/// # Errors
/// Always.
pub fn connect(_name: &str) -> io::Result<()> {
    Err(super::unsupported("a socket with an abstract name"))
}
