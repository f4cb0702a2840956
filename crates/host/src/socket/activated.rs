//! A socket that a service manager bound and handed over.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{SocketError, check_mode, io_error};
use crate::secure_fs::SecureFsError;

/// First descriptor that a service manager hands over, as `sd_listen_fds(3)` says.
const FIRST_ACTIVATED_FD: RawFd = 3;

/// Takes over the one listening socket that a service manager handed over as descriptor 3. It must be a Unix stream
/// socket that listens under a name of ours with mode 0600. The name is the service manager's to remove.
///
/// Call it only when the environment says that the descriptor was handed to this very process (`LISTEN_PID`), and
/// before anything else opens descriptors. A second call is refused.
///
/// # Errors
/// [`SocketError::NotFit`], or [`SocketError::Directory`] when others may use the socket.
pub fn adopt_activated() -> Result<UnixListener, SocketError> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let unfit = |what: &str| SocketError::NotFit(what.to_owned());
    if TAKEN.swap(true, Ordering::AcqRel) {
        return Err(unfit("was taken already"));
    }
    // SAFETY: asks about a number, and changes nothing.
    if unsafe { libc::fcntl(FIRST_ACTIVATED_FD, libc::F_GETFD) } == -1 {
        return Err(unfit("is not open"));
    }
    // SAFETY: it is open, was handed to this process, and by the flag above nobody took it before.
    let fd = unsafe { OwnedFd::from_raw_fd(FIRST_ACTIVATED_FD) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC).map_err(|_| unfit("cannot be closed on exec"))?;
    activated(fd)
}

fn activated(fd: OwnedFd) -> Result<UnixListener, SocketError> {
    use rustix::net::sockopt;
    let unfit = |what: &str| SocketError::NotFit(what.to_owned());
    if !listens(&fd) || sockopt::socket_type(&fd).ok() != Some(rustix::net::SocketType::STREAM) {
        return Err(unfit("is no listening stream socket"));
    }
    let listener = UnixListener::from(fd);
    let address = listener.local_addr().map_err(|_| unfit("is no Unix socket"))?;
    let path = address.as_pathname().ok_or_else(|| unfit("has no name in the file system"))?;
    let metadata = std::fs::symlink_metadata(path).map_err(io_error("inspect", path))?;
    if !metadata.file_type().is_socket() {
        return Err(SocketError::NotASocket { path: path.to_path_buf() });
    }
    let (found, wanted) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if found != wanted {
        return Err(SecureFsError::WrongOwner { path: path.to_path_buf(), found, wanted }.into());
    }
    check_mode(&metadata, path)?;
    Ok(listener)
}

#[cfg(target_os = "linux")]
fn listens(fd: &OwnedFd) -> bool {
    rustix::net::sockopt::socket_acceptconn(fd).unwrap_or(false)
}

/// launchd hands sockets over in another way.
#[cfg(not(target_os = "linux"))]
fn listens(_fd: &OwnedFd) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_a_private_listening_unix_socket_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let bound = UnixListener::bind(&path).unwrap();
        let handed = || OwnedFd::from(bound.try_clone().unwrap());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(activated(handed()), Err(SocketError::Directory(SecureFsError::WrongMode { .. }))));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(activated(handed()).unwrap().local_addr().unwrap().as_pathname(), Some(path.as_path()));
        let _client = UnixStream::connect(&path).unwrap();
        let connected = OwnedFd::from(bound.accept().unwrap().0);
        assert!(matches!(activated(connected), Err(SocketError::NotFit(_))));
        let tcp = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        assert!(matches!(activated(tcp.into()), Err(SocketError::NotFit(_))));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(activated(handed()), Err(SocketError::Io { .. })));
    }
}
