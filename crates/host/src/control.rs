//! The private channel between the daemon and a child.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// Most descriptors that one message carries.
pub const MAX_SENT_DESCRIPTORS: usize = 8;

/// Two connected Unix stream sockets, both close-on-exec: one stays here, the other goes to a child by
/// [`crate::spawn::SpawnSpec::fds`].
///
/// # Errors
/// When the kernel has no descriptor left.
pub fn control_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((ours.into(), theirs.into()))
}

/// Sends a few bytes, and with them duplicates of descriptors. Blocks as the socket does.
///
/// # Errors
/// When there are too many, when they could not be sent whole, or when the other end is closed.
pub fn send_descriptors(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SENT_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if descriptors.len() > MAX_SENT_DESCRIPTORS || !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
    }
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{IoSliceMut, Read, Seek, Write};
    use std::os::fd::AsFd;

    #[test]
    fn descriptors_arrive_with_their_bytes_and_too_many_are_refused() {
        let (left, right) = UnixStream::pair().unwrap();
        let file = crate::memfile::memfile("told", b"content").unwrap();
        send_descriptors(&left, b"go\n", &[file.as_fd()]).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = rustix::net::RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; 8];
        let flags = rustix::net::RecvFlags::empty();
        let got = rustix::net::recvmsg(&right, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags).unwrap();
        assert_eq!(&bytes[..got.bytes], b"go\n");
        let Some(rustix::net::RecvAncillaryMessage::ScmRights(mut sent)) = control.drain().next() else {
            panic!("none")
        };
        let mut file_there = std::fs::File::from(sent.next().unwrap());
        let mut text = String::new();
        file_there.rewind().unwrap();
        file_there.read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
        let many = vec![file.as_fd(); MAX_SENT_DESCRIPTORS + 1];
        assert_eq!(send_descriptors(&left, b"go\n", &many).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        drop(right);
        assert!(send_descriptors(&left, b"go\n", &[file.as_fd()]).is_err());
    }

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
