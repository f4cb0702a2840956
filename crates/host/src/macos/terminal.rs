//! Nothing is confined on this system, so nothing is tried.

use std::io;
use std::path::PathBuf;

/// A terminal. No value of it exists here.
#[derive(Debug)]
pub struct Terminal {
    /// Its name.
    pub path: PathBuf,
}

impl Terminal {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn open() -> io::Result<Self> {
        Err(super::unsupported("a terminal to try"))
    }
}
