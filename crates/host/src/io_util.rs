//! Small helpers over descriptors.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest single wait: keeps every conversion to the kernel's time in range.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Waits until `fd` is readable or at its end; false when `timeout` passed first.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + timeout.min(LONGEST_WAIT);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(0), tv_nsec: left.subsec_nanos().into() };
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        match poll(&mut fds, Some(&wait)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A new stream socket, close-on-exec from the start.
#[cfg(target_os = "linux")]
pub(crate) fn stream_socket(family: rustix::net::AddressFamily) -> io::Result<OwnedFd> {
    use rustix::net::{SocketFlags, SocketType, socket_with};
    Ok(socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// A new stream socket, close-on-exec. macOS has no flag for it, so there is a moment before the second call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn stream_socket(family: rustix::net::AddressFamily) -> io::Result<OwnedFd> {
    let fd = rustix::net::socket(family, rustix::net::SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}
