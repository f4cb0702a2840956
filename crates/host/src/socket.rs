//! The daemon's Unix socket: bound inside a private directory, never replaced while a live daemon answers.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, bind, connect, listen};

use crate::lock::{FileLock, LockError};
use crate::secure_fs::{self, SecureFsError};

mod activated;

pub use activated::adopt_activated;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Why the socket was not bound.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The directory is not private.
    #[error(transparent)]
    Directory(#[from] SecureFsError),
    /// Another daemon serves there, or is about to.
    #[error("a daemon is running already at {}: use it, or stop it first", path.display())]
    AlreadyRunning {
        /// The socket.
        path: PathBuf,
    },
    /// Something that is no socket has the name.
    #[error("{} exists and is no socket: remove it", path.display())]
    NotASocket {
        /// What is in the way.
        path: PathBuf,
    },
    /// The kernel takes about a hundred bytes.
    #[error("{} is too long for a Unix socket: choose a shorter directory, for example with --state-dir", path.display())]
    PathTooLong {
        /// The socket.
        path: PathBuf,
    },
    /// What a service manager handed over is no socket of ours to serve on.
    #[error("the descriptor that was handed over for socket activation {0}: correct the socket unit")]
    NotFit(String),
    /// The system call itself failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A bound socket. Dropping it removes the socket's name if it still is ours, then gives up the lock.
#[derive(Debug)]
pub struct PrivateSocket {
    listener: UnixListener,
    path: PathBuf,
    device: u64,
    inode: u64,
    _lock: FileLock,
}

impl PrivateSocket {
    /// The listener, blocking. Clone it (`try_clone`) to hand it to an event loop, and keep this value as the guard.
    #[must_use]
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Where it is bound.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        let ours =
            std::fs::symlink_metadata(&self.path).is_ok_and(|now| now.dev() == self.device && now.ino() == self.inode);
        if ours {
            // Whatever cannot be removed is found dead, and replaced, by the next start.
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// Binds the socket `name` inside `directory`, which is made private (0700) first, and listens. The socket has mode
/// 0600 from the moment it has a name. A lock file `<name>.lock` beside it keeps two daemons from racing; a socket that
/// nobody answers on is replaced.
///
/// # Errors
/// [`SocketError::AlreadyRunning`] when a daemon answers or holds the lock; otherwise what is in the way.
pub fn bind_private_unix(directory: &Path, name: &str) -> Result<PrivateSocket, SocketError> {
    secure_fs::ensure_private_dir(directory)?;
    let path = directory.join(name);
    let address = SocketAddrUnix::new(&path).map_err(|error| match error {
        Errno::NAMETOOLONG => SocketError::PathTooLong { path: path.clone() },
        other => io_error("name", &path)(other),
    })?;
    let lock = FileLock::try_acquire(&directory.join(format!("{name}.lock"))).map_err(|error| match error {
        LockError::Held { .. } => SocketError::AlreadyRunning { path: path.clone() },
        LockError::File(error) => SocketError::Directory(error),
    })?;
    clear_dead_socket(&path, &address)?;
    let fd = unbound(&path)?;
    // Before binding: on Linux the name gets the mode of the socket itself, less the umask.
    fchmod(&fd, Mode::RUSR | Mode::WUSR).map_err(io_error("set the mode of", &path))?;
    bind(&fd, &address).map_err(io_error("bind", &path))?;
    let metadata = std::fs::symlink_metadata(&path).map_err(io_error("inspect", &path))?;
    let bound = PrivateSocket {
        listener: UnixListener::from(fd),
        device: metadata.dev(),
        inode: metadata.ino(),
        path,
        _lock: lock,
    };
    // It cannot be connected to before it listens, so a mode that is not as wanted is refused in time.
    check_mode(&metadata, &bound.path)?;
    listen(&bound.listener, BACKLOG).map_err(io_error("listen at", &bound.path))?;
    Ok(bound)
}

fn check_mode(metadata: &std::fs::Metadata, path: &Path) -> Result<(), SocketError> {
    let found = metadata.mode() & 0o777;
    if found & 0o077 == 0 {
        return Ok(());
    }
    Err(SecureFsError::WrongMode { path: path.to_path_buf(), found, wanted: 0o600 }.into())
}

/// Removes a socket that nobody answers on; refuses anything else.
fn clear_dead_socket(path: &Path, address: &SocketAddrUnix) -> Result<(), SocketError> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error("inspect", path)(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(SocketError::NotASocket { path: path.to_path_buf() });
        }
        Ok(_) => {}
    }
    let probe = unbound(path)?;
    // A full backlog must not hang the start: it means a living daemon.
    rustix::fs::fcntl_setfl(&probe, rustix::fs::OFlags::NONBLOCK).map_err(io_error("probe", path))?;
    match connect(&probe, address) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path).map_err(io_error("remove the dead socket", path)),
        Err(Errno::NOENT) => Ok(()),
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Err(SocketError::AlreadyRunning { path: path.to_path_buf() }),
        Err(error) => Err(io_error("probe", path)(error)),
    }
}

fn unbound(path: &Path) -> Result<OwnedFd, SocketError> {
    crate::io_util::stream_socket(AddressFamily::UNIX).map_err(io_error("make", path))
}

fn io_error<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> SocketError {
    let path = path.to_path_buf();
    move |source| SocketError::Io { action, path, source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn private_directory() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run");
        (directory, path)
    }

    #[test]
    fn is_private_reachable_and_removed_afterwards() {
        let (_guard, directory) = private_directory();
        let socket = bind_private_unix(&directory, "d.sock").unwrap();
        let path = socket.path().to_path_buf();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        UnixStream::connect(&path).unwrap();
        socket.listener().accept().unwrap();
        drop(socket);
        assert!(!path.exists());
        bind_private_unix(&directory, "d.sock").unwrap();
    }

    #[test]
    fn a_living_daemon_is_never_replaced() {
        let (_guard, directory) = private_directory();
        let first = bind_private_unix(&directory, "d.sock").unwrap();
        let error = bind_private_unix(&directory, "d.sock").unwrap_err();
        assert!(matches!(error, SocketError::AlreadyRunning { .. }), "{error}");
        UnixStream::connect(first.path()).unwrap();
        // One that answers without holding our lock counts too.
        drop(first);
        let path = directory.join("d.sock");
        let stranger = UnixListener::bind(&path).unwrap();
        let error = bind_private_unix(&directory, "d.sock").unwrap_err();
        assert!(matches!(error, SocketError::AlreadyRunning { .. }), "{error}");
        assert!(path.exists());
        drop(stranger);
    }

    #[test]
    fn a_full_backlog_is_a_living_daemon() {
        let (_guard, directory) = private_directory();
        secure_fs::ensure_private_dir(&directory).unwrap();
        let path = directory.join("d.sock");
        let stranger = crate::io_util::stream_socket(AddressFamily::UNIX).unwrap();
        bind(&stranger, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&stranger, 0).unwrap();
        let _waiting = UnixStream::connect(&path).unwrap();
        let error = bind_private_unix(&directory, "d.sock").unwrap_err();
        assert!(matches!(error, SocketError::AlreadyRunning { .. }), "{error}");
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_file_is_not() {
        let (_guard, directory) = private_directory();
        secure_fs::ensure_private_dir(&directory).unwrap();
        let path = directory.join("d.sock");
        drop(UnixListener::bind(&path).unwrap());
        let socket = bind_private_unix(&directory, "d.sock").unwrap();
        UnixStream::connect(&path).unwrap();
        drop(socket);
        std::fs::write(&path, "kept").unwrap();
        let error = bind_private_unix(&directory, "d.sock").unwrap_err();
        assert!(matches!(error, SocketError::NotASocket { .. }), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn the_socket_of_another_is_not_removed() {
        let (_guard, directory) = private_directory();
        let socket = bind_private_unix(&directory, "d.sock").unwrap();
        let path = socket.path().to_path_buf();
        std::fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists());
    }

    #[test]
    fn a_path_that_is_too_long_says_so() {
        let (_guard, directory) = private_directory();
        let error = bind_private_unix(&directory.join("x".repeat(100)), "d.sock").unwrap_err();
        assert!(matches!(error, SocketError::PathTooLong { .. }), "{error}");
    }
}
