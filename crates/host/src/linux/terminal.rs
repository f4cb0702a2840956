//! A pseudo-terminal, to try whether terminals of the owner's can be opened.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A terminal that is there while this is held.
#[derive(Debug)]
pub struct Terminal {
    /// Its name under `/dev/pts`.
    pub path: PathBuf,
    _ends: [OwnedFd; 2],
}

impl Terminal {
    /// Makes one that nothing uses.
    ///
    /// # Errors
    /// When the system has none left, or no `/dev/ptmx`.
    pub fn open() -> io::Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let path = PathBuf::from(OsString::from_vec(ptsname(&ours, Vec::new())?.into_bytes()));
        let theirs = rustix::fs::open(&path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path, _ends: [ours, theirs] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_while_it_is_held() {
        let terminal = Terminal::open().unwrap();
        assert!(terminal.path.starts_with("/dev/pts/"), "{terminal:?}");
        std::fs::File::options().read(true).write(true).open(&terminal.path).unwrap();
    }
}
