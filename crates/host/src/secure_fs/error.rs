//! What can be wrong with a file or directory that must be private, each with its remedy.

use std::io;
use std::path::{Path, PathBuf};

/// Why a private file or directory is refused, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum SecureFsError {
    /// Others than the owner may use it.
    #[error("{path} has mode {found:04o} and must have {wanted:04o}: run `chmod {wanted:o} {path}`", path = path.display())]
    WrongMode {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        found: u32,
        /// The permission bits it must have.
        wanted: u32,
    },
    /// It belongs to another user.
    #[error("{path} belongs to user id {found} and must belong to {wanted}: remove it, or run `chown {wanted} {path}` as root", path = path.display())]
    WrongOwner {
        /// The file or directory.
        path: PathBuf,
        /// Its owner's user id.
        found: u32,
        /// Our user id.
        wanted: u32,
    },
    /// The last component is a symbolic link.
    #[error("{} is a symbolic link: name the real place, or replace the link", path.display())]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// A regular file is wanted.
    #[error("{} is not a regular file: remove it", path.display())]
    NotRegular {
        /// What was found.
        path: PathBuf,
    },
    /// A directory is wanted.
    #[error("{} is not a directory: remove it, or choose another place", path.display())]
    NotDirectory {
        /// What was found.
        path: PathBuf,
    },
    /// The file has a second name (hard link) that someone else may have made.
    #[error("{} has more than one name (hard link): copy it, and remove the original", path.display())]
    SecondName {
        /// The file.
        path: PathBuf,
    },
    /// The file is larger than what may be read.
    #[error("{} is larger than the {max_bytes} bytes it may have", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound in bytes.
        max_bytes: u64,
    },
    /// The content is not what the file is for.
    #[error("{} does not hold {wanted}: restore it, or move it away", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        wanted: &'static str,
    },
    /// Somebody else can replace a directory above, and so everything below it.
    #[error("{} cannot be private: {} above it {reason}; {remedy}", path.display(), ancestor.display())]
    UnsafeAncestor {
        /// The directory that should be private.
        path: PathBuf,
        /// The directory or link above it.
        ancestor: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// The path has to start at the root and may not step up.
    #[error("{} is not an absolute path without `..`: write it out in full", path.display())]
    NotAbsolute {
        /// The path.
        path: PathBuf,
    },
    /// The system call itself failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SecureFsError {
    /// Whether the file simply does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// What kind of failure the system reported, where it did.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::WrongMode { .. }
            | Self::WrongOwner { .. }
            | Self::Symlink { .. }
            | Self::NotRegular { .. }
            | Self::NotDirectory { .. }
            | Self::SecondName { .. }
            | Self::TooLarge { .. }
            | Self::Malformed { .. }
            | Self::UnsafeAncestor { .. }
            | Self::NotAbsolute { .. } => None,
        }
    }

    /// Whether a file that should be new exists.
    #[must_use]
    pub fn is_already_there(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }
}

/// Makes an error of a failed system call.
pub(crate) fn io_error<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> SecureFsError {
    let path = path.to_path_buf();
    move |source| SecureFsError::Io { action, path, source: source.into() }
}

/// Refuses what belongs to anyone but the effective user.
pub(super) fn check_owner(path: &Path, found: u32) -> Result<(), SecureFsError> {
    let wanted = rustix::process::geteuid().as_raw();
    if found == wanted { Ok(()) } else { Err(SecureFsError::WrongOwner { path: path.to_path_buf(), found, wanted }) }
}
