//! Small helpers over descriptors.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest single wait: keeps every conversion to the kernel's time in range.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// The first number that is none of standard input, output and error.
pub(crate) const FIRST_OWN_FD: RawFd = 3;

/// Takes over an inherited descriptor, which no child is given any more.
///
/// Call it once for each descriptor that was handed to this very process.
///
/// # Errors
/// When it is not open, or is standard input, output or error.
pub fn take_fd(number: RawFd) -> io::Result<OwnedFd> {
    if number < FIRST_OWN_FD {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a standard descriptor"));
    }
    // SAFETY: changes a flag of a number, which need not be open.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and the caller says that nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The whole content of a file, whose offset, which all processes with it share, is neither used nor moved.
pub(crate) fn read_whole(file: &File, max_bytes: usize) -> io::Result<Vec<u8>> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if length > max_bytes {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is too large"));
    }
    let mut content = vec![0; length];
    file.read_exact_at(&mut content, 0)?;
    Ok(content)
}

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
