//! See [`crate::confine`].

mod call_numbers;
mod capabilities;
mod files;
mod filters;

use std::io;
use std::os::fd::OwnedFd;

use landlock::RulesetCreated;
use rustix::thread::set_no_new_privs;
use seccompiler::BpfProgram;

use crate::confine::{ConfineError, DeniedCall, FileGrant, Missing, Parts, missing};

/// A confinement that is ready to be enforced and has no effect yet.
pub struct Confinement {
    gives_up_privileges: bool,
    domain: Option<RulesetCreated>,
    filters: Vec<BpfProgram>,
    missing: Vec<Missing>,
}

impl Confinement {
    /// Opens the granted paths and makes the filters.
    ///
    /// # Errors
    /// When the kernel has no Landlock, a path cannot be opened, or a call is unknown.
    pub fn prepare(files: &[FileGrant], calls: &[DeniedCall]) -> Result<Self, ConfineError> {
        Self::prepare_parts(files, calls, Parts::ALL)
    }

    /// The same with some parts only.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub fn prepare_parts(files: &[FileGrant], calls: &[DeniedCall], parts: Parts) -> Result<Self, ConfineError> {
        let abi = crate::kernel::landlock_abi().ok_or(ConfineError::NoLandlock)?;
        Ok(Self {
            gives_up_privileges: parts.privileges,
            domain: files::domain(abi, files, parts)?,
            filters: if parts.calls { filters::compile(calls)? } else { Vec::new() },
            missing: missing(Some(abi)),
        })
    }

    /// What the running kernel does not know, and so will not be enforced.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// The file rules alone, with nothing given up: a thread that restricts itself to them must have given up new
    /// privileges before. They may be used any number of times.
    ///
    /// # Errors
    /// When the kernel made no rules.
    pub fn into_domain(self) -> io::Result<OwnedFd> {
        self.domain.and_then(Option::<OwnedFd>::from).ok_or_else(|| io::Error::other("the kernel made no file rules"))
    }

    /// Gives everything up, for the calling thread and whatever it will start or execute. To be called in a process with
    /// this thread only. After an error part of it is in force, and nothing may be executed.
    ///
    /// # Errors
    /// What the kernel refused or took in part only.
    pub fn enforce(self) -> Result<(), ConfineError> {
        if self.gives_up_privileges {
            set_no_new_privs(true).map_err(ConfineError::step("no new privileges"))?;
            super::hygiene::forbid_core_files().map_err(ConfineError::step("no core files"))?;
            capabilities::drop_all()?;
        }
        self.domain.map_or(Ok(()), files::restrict)?;
        // Last: the filters refuse nothing that stands above, and need not allow it either.
        self.filters.iter().try_for_each(|filter| {
            seccompiler::apply_filter(filter).map_err(ConfineError::step("the filter of system calls"))
        })
    }
}
