//! A pseudo-terminal, to try whether terminals of the owner's can be opened. Never run on a Mac.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A terminal that is there while this is held.
#[derive(Debug)]
pub struct Terminal {
    /// Its name under `/dev`.
    pub path: PathBuf,
    _ends: [OwnedFd; 2],
}

impl Terminal {
    /// Makes one that nothing uses. macOS opens none close-on-exec, so there is a moment before that is set.
    ///
    /// # Errors
    /// When the system has none left, or no `/dev/ptmx`.
    pub fn open() -> io::Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        rustix::io::fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let path = PathBuf::from(OsString::from_vec(ptsname(&ours, Vec::new())?.into_bytes()));
        let theirs = rustix::fs::open(&path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path, _ends: [ours, theirs] })
    }
}
