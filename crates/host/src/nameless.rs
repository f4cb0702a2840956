//! A file on disk that has no name any more and can only be read: for what is set aside, and to hand over where there are
//! no files in memory (macOS). Tried on Linux, never on a Mac.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
#[cfg(any(not(target_os = "linux"), test))]
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

#[cfg(any(not(target_os = "linux"), test))]
use rustix::fs::OFlags;

/// A file that holds `content`, close-on-exec, at offset 0. It is made with mode 0600 in `directory` and unlinked at once, so
/// its content may reach the disk. `name` is part of its short-lived name. Nobody who gets the descriptor can change it: it is
/// open for reading only, and the file has no name by which it could be opened otherwise.
pub(crate) fn make(directory: &Path, name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    let path = directory.join(format!("{}.{}", name.replace('/', "_"), crate::sign::random_hex(16)?));
    let mut writer = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let reader = File::open(&path);
    std::fs::remove_file(&path)?;
    let reader = reader?;
    writer.write_all(content)?;
    // Another file could have been put there meanwhile.
    let (written, read) = (writer.metadata()?, reader.metadata()?);
    if (written.dev(), written.ino()) != (read.dev(), read.ino()) {
        return Err(io::Error::other("a file was replaced while it was made"));
    }
    Ok(reader.into())
}

/// The whole content of such a file that was handed over. The offset, which all processes with it share, is neither used nor moved.
#[cfg(any(not(target_os = "linux"), test))]
pub(crate) fn read(file: OwnedFd, max_bytes: usize) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::fcntl_getfl(file.as_fd())?;
    let file = File::from(file);
    let found = file.metadata()?;
    let is_own = found.uid() == crate::hygiene::effective_user();
    if !found.is_file() || found.nlink() != 0 || !is_own || flags.intersection(OFlags::RWMODE) != OFlags::RDONLY {
        let what = "it is not an own file without a name that can only be read";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    crate::io_util::read_whole(&file, max_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_can_be_read_again_and_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let made = make(directory.path(), "a/plan", b"abc").unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "it has a name");
        assert!(rustix::io::fcntl_getfd(&made).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        let mut file = File::from(made.try_clone().unwrap());
        assert!(file.write_all(b"x").is_err() && file.set_len(0).is_err());
        for _ in 0..2 {
            assert_eq!(read(made.try_clone().unwrap(), 3).unwrap(), b"abc");
        }
        assert!(read(made, 2).unwrap_err().to_string().contains("too large"));
    }

    #[test]
    fn what_could_be_changed_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let refused = |file: OwnedFd| read(file, 9).unwrap_err().to_string();
        let writable = open();
        let named = File::open(&path).unwrap();
        assert!(refused(named.try_clone().unwrap().into()).contains("without a name"));
        std::fs::remove_file(&path).unwrap();
        assert!(refused(writable.into()).contains("only be read"));
        assert_eq!(read(named.into(), 9).unwrap(), b"");
        let (pipe, _other) = io::pipe().unwrap();
        assert!(refused(pipe.into()).contains("only be read"));
    }
}
