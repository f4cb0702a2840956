//! One holder at a time, across processes.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use crate::secure_fs::{self, SecureFsError};

/// How often a waiting caller tries again.
const RETRY_EVERY: Duration = Duration::from_millis(20);
/// A process id and a newline.
const MAX_NOTE_BYTES: u64 = 32;

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process (or another holder in this one) has it.
    #[error("{} is locked{}", path.display(), holder.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The process id that the holder wrote down, if it could be read. For people: it proves nothing.
        holder: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error(transparent)]
    File(#[from] SecureFsError),
}

/// A held lock (`flock`). It ends when this is dropped and when the process ends, however it ends. The file stays:
/// removing it would let two holders lock two files of one name.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Takes the lock now or not at all. The file is made with mode 0600 when it does not exist; its directory must.
    ///
    /// # Errors
    /// [`LockError::Held`] when someone has it.
    pub fn try_acquire(path: &Path) -> Result<Self, LockError> {
        let mut file = open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(LockError::Held { path: path.to_path_buf(), holder: noted_holder(&mut file) });
            }
            Err(error) => return Err(io_error("lock", path, error.into())),
        }
        note_holder(&mut file).map_err(|error| io_error("write", path, error))?;
        Ok(Self { file, path: path.to_path_buf() })
    }

    /// Takes the lock, waiting at most `timeout` for it.
    ///
    /// # Errors
    /// [`LockError::Held`] when someone still has it afterwards.
    pub fn acquire_within(path: &Path, timeout: Duration) -> Result<Self, LockError> {
        let deadline = Instant::now() + timeout;
        loop {
            match Self::try_acquire(path) {
                Err(LockError::Held { .. }) if Instant::now() < deadline => {
                    std::thread::sleep(RETRY_EVERY.min(deadline.saturating_duration_since(Instant::now())));
                }
                other => return other,
            }
        }
    }

    /// The lock file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Said explicitly, because a child between fork and exec may still hold a copy of the descriptor. Closing it
        // gives up the lock in any other case, so an error leaves nothing to do.
        flock(&self.file, FlockOperation::Unlock).ok();
    }
}

fn open(path: &Path) -> Result<File, LockError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
        if error == rustix::io::Errno::LOOP {
            LockError::File(SecureFsError::Symlink { path: path.to_path_buf() })
        } else {
            io_error("open", path, error.into())
        }
    })?;
    let file = File::from(fd);
    secure_fs::check_private_file(&file, path)?;
    Ok(file)
}

fn note_holder(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn noted_holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(MAX_NOTE_BYTES).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn io_error(action: &'static str, path: &Path, source: std::io::Error) -> LockError {
    LockError::File(SecureFsError::Io { action, path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_second_holder_is_told_who_has_it_and_gets_it_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = FileLock::try_acquire(&path).unwrap();
        let error = FileLock::try_acquire(&path).unwrap_err();
        let LockError::Held { holder, .. } = &error else { panic!("{error}") };
        assert_eq!(*holder, Some(std::process::id()));
        drop(first);
        let second = FileLock::try_acquire(&path).unwrap();
        assert_eq!(second.path(), path);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn waiting_ends_with_the_holder_or_with_the_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let holder = FileLock::try_acquire(&path).unwrap();
        let started = Instant::now();
        let error = FileLock::acquire_within(&path, Duration::from_millis(80)).unwrap_err();
        assert!(matches!(error, LockError::Held { .. }));
        assert!(started.elapsed() >= Duration::from_millis(80) && started.elapsed() < Duration::from_secs(5));
        let release = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            drop(holder);
        });
        FileLock::acquire_within(&path, Duration::from_secs(10)).unwrap();
        release.join().unwrap();
    }

    #[test]
    fn a_link_and_an_open_file_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        std::fs::write(&target, "").unwrap();
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = FileLock::try_acquire(&target).unwrap_err();
        assert!(matches!(error, LockError::File(SecureFsError::WrongMode { found: 0o644, .. })), "{error}");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let error = FileLock::try_acquire(&link).unwrap_err();
        assert!(matches!(error, LockError::File(SecureFsError::Symlink { .. })), "{error}");
    }
}
