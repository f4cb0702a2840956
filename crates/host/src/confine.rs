//! Giving up for good what the agent's processes may not do, in the calling process and all that it will ever start.
//!
//! [`Confinement::prepare`] does whatever may fail and changes nothing; [`Confinement::enforce`] then gives up, in this
//! order: new privileges by `exec`, all capabilities, files and outside processes (Landlock), system calls (seccomp).
//! Nothing of it can be taken back. What cannot be enforced in full is an error. The one exception are the parts that the
//! running kernel is too old to know: [`missing`] names them, so that a level can be told from them.
//!
//! That is Linux. A process on macOS is confined by the program that it executes (`sandbox-exec`), so there is no such value there.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;

mod execution;

pub use execution::Execution;

#[cfg(target_os = "linux")]
pub use crate::platform::confine::Confinement;

/// What may be done at a path and below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read, list and execute.
    Read,
    /// That, and create, change, rename and remove; no device files.
    Write,
    /// Read, write and control devices.
    Device,
}

/// What a symbolic link on the way to a granted path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Links {
    /// It is followed.
    Followed,
    /// It is an error.
    Refused,
    /// Nothing is granted.
    Skipped,
}

/// One path that stays reachable. Where nothing stands, nothing is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileGrant {
    /// Absolute.
    pub path: PathBuf,
    /// What stays possible there.
    pub access: Access,
    /// What a symbolic link on the way means.
    pub links: Links,
    /// What must stand there, as [`identity`] tells it; another thing is taken as a link. `None`: whatever stands there.
    pub identity: Option<(u64, u64)>,
}

/// What stands at a path, as the kernel tells it from others: its device, and its number there. A link is not followed.
///
/// # Errors
/// When nothing does, or it cannot be looked at.
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = path.symlink_metadata()?;
    Ok((found.dev(), found.ino()))
}

/// One system call that will be refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedCall {
    /// Its name in the kernel's headers.
    pub name: String,
    /// What it fails with, 1 to 4095.
    pub errno: i32,
    /// Refused when all comparisons of at least one of these hold; always when there are none.
    pub alternatives: Vec<Vec<ArgumentIs>>,
}

/// A comparison of the low 32 bits of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentIs {
    /// Which argument, from 0 to 5.
    pub argument: u8,
    /// How it is compared.
    pub comparison: Comparison,
}

/// How an argument is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Equal to the value.
    Equal(u32),
    /// Not equal to the value.
    NotEqual(u32),
    /// All bits of the value are set.
    AllSet(u32),
}

/// A part of the confinement that the running kernel does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Missing {
    /// No file rules at all; [`Confinement::prepare`] fails.
    Landlock,
    /// Files are never moved between directories, not even where both may be written.
    Refer,
    /// Files that can be opened in no other way can be cut to any length.
    Truncate,
    /// Devices that are open or readable can be controlled.
    DeviceControl,
    /// Signals reach outside processes of the same user.
    SignalScope,
    /// Connections reach abstract Unix sockets of outside processes.
    AbstractSocketScope,
    /// Connections reach Unix sockets outside, by their path.
    PathSocketScope,
}

impl Missing {
    /// Each with the first version of Landlock's interface that has it.
    const SINCE: [(Self, u32); 7] = [
        (Self::Landlock, 1),
        (Self::Refer, 2),
        (Self::Truncate, 3),
        (Self::DeviceControl, 5),
        (Self::SignalScope, 6),
        (Self::AbstractSocketScope, 6),
        (Self::PathSocketScope, 9),
    ];

    /// A stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Refer => "refer",
            Self::Truncate => "truncate",
            Self::DeviceControl => "device_control",
            Self::SignalScope => "signal_scope",
            Self::AbstractSocketScope => "abstract_socket_scope",
            Self::PathSocketScope => "path_socket_scope",
        }
    }
}

/// What a kernel with this version of Landlock's interface ([`crate::kernel::landlock_abi`]) cannot enforce.
#[must_use]
pub fn missing(landlock_abi: Option<u32>) -> Vec<Missing> {
    let has = landlock_abi.unwrap_or(0);
    Missing::SINCE.iter().filter(|(_, since)| has < *since).map(|(part, _)| *part).collect()
}

/// A program, open to be executed by this very descriptor and for nothing else; close-on-exec.
///
/// # Errors
/// When it cannot be opened.
pub fn open_program(path: &Path) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    Ok(rustix::fs::open(path, access | OFlags::CLOEXEC, Mode::empty())?)
}

/// Where the file of this inherited descriptor is now. There, programs cannot be executed by a descriptor.
///
/// # Errors
/// When there is none, or its file has no name any more.
#[cfg(target_os = "macos")]
pub fn path_of(number: RawFd) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    // SAFETY: the number is borrowed for this one call, which fails where nothing is open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let path = rustix::fs::getpath(descriptor)?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(path.into_bytes())))
}

/// Has the descriptor of this number end with the program that runs now.
///
/// # Errors
/// When there is none, or it is a standard descriptor.
pub fn close_on_execution(number: RawFd) -> io::Result<()> {
    if number <= 2 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a standard descriptor"));
    }
    // SAFETY: the number is borrowed for this one call, which fails where nothing is open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC)?)
}

/// Which parts of a confinement are made: all of them in everything that ships. A test that shows what a part is needed for
/// leaves it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// No new privileges, no capabilities. An ordinary user can have none of the others without it.
    pub privileges: bool,
    /// Rules of files.
    pub files: bool,
    /// No signals and no abstract sockets to the outside.
    pub scopes: bool,
    /// The filters of system calls.
    pub calls: bool,
}

impl Parts {
    /// Everything.
    pub const ALL: Self = Self { privileges: true, files: true, scopes: true, calls: true };
}

/// What could not be enforced. Nothing may be executed then.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// This system or processor has no confinement of ours.
    #[error("{0} is not built for this system")]
    Unsupported(&'static str),
    /// The kernel has no Landlock, or it is turned off.
    #[error("the kernel offers no Landlock")]
    NoLandlock,
    /// A symbolic link where none may be.
    #[error("a symbolic link leads to {}", .0.display())]
    Link(PathBuf),
    /// Another thing stands at a path than when it was granted.
    #[error("{} is not what it was when the server was started: stop the server, or start the daemon anew", .0.display())]
    Replaced(PathBuf),
    /// A granted path could not be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// A system call of a name that is not known.
    #[error("{0} is no known system call")]
    UnknownCall(String),
    /// The kernel refused a step, or took it in part only.
    #[error("{step}: {detail}")]
    Step {
        /// Which.
        step: &'static str,
        /// Why.
        detail: String,
    },
}

impl ConfineError {
    #[cfg(target_os = "linux")]
    pub(crate) fn step<E: std::fmt::Display>(step: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Step { step, detail: error.to_string() }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn open(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Open { path: path.to_path_buf(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_of_landlock_adds_what_it_is_known_for() {
        let names = |abi| missing(abi).into_iter().map(Missing::name).collect::<Vec<_>>();
        assert_eq!(names(None).len(), 7);
        assert_eq!(names(Some(0)), names(None));
        assert_eq!(names(Some(1)).first(), Some(&"refer"));
        assert_eq!(names(Some(2)).first(), Some(&"truncate"));
        assert_eq!(names(Some(4)).first(), Some(&"device_control"));
        assert_eq!(names(Some(5)), ["signal_scope", "abstract_socket_scope", "path_socket_scope"]);
        assert_eq!(names(Some(8)), ["path_socket_scope"]);
        assert_eq!(names(Some(9)), [""; 0]);
        assert_eq!(names(Some(99)), [""; 0]);
    }
}
