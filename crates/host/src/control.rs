//! The private channel between the daemon and a child.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Two connected Unix stream sockets, both close-on-exec: one stays here, the other goes to a child by
/// [`crate::spawn::SpawnSpec::fds`].
///
/// # Errors
/// When the kernel has no descriptor left.
pub fn control_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((ours.into(), theirs.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn the_ends_are_connected_and_close_on_exec() {
        let (left, right) = control_pair().unwrap();
        for end in [&left, &right] {
            let flags = rustix::io::fcntl_getfd(end).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
        UnixStream::from(left).write_all(b"line\n").unwrap();
        let mut text = String::new();
        UnixStream::from(right).read_to_string(&mut text).unwrap();
        assert_eq!(text, "line\n");
    }
}
