//! Nothing of it is built for this system: every attempt fails, so that nothing runs that was to be confined.

use std::ffi::{OsStr, OsString};
use std::io;

use crate::confine::{ConfineError, DeniedCall, FileGrant, Missing};

/// See [`crate::confine`]. No value of it exists here.
pub enum Confinement {}

impl Confinement {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn prepare(_files: &[FileGrant], _calls: &[DeniedCall]) -> Result<Self, ConfineError> {
        Err(ConfineError::Unsupported("confinement"))
    }

    /// Never called.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn enforce(self) -> Result<(), ConfineError> {
        match self {}
    }
}

/// A program to become. No value of it exists here.
pub enum Execution {}

impl Execution {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn prepare(_program: &OsStr, _arguments: &[OsString], _stripped: impl Fn(&[u8]) -> bool) -> io::Result<Self> {
        Err(super::unsupported("confinement"))
    }

    /// Never called.
    #[must_use]
    pub fn run(&self) -> io::Error {
        match *self {}
    }
}
