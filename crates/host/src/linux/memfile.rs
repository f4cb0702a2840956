//! A file that has no name: content handed to a child by descriptor.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{OwnedFd, RawFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};

use crate::io_util;

/// Nobody can change a file with these, nor take them off.
const SEALS: SealFlags = SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// An anonymous file in memory that holds `content`, close-on-exec, at offset 0 and sealed: nobody who gets the
/// descriptor can change it. `name` shows in `/proc/<pid>/fd` only. It can be opened again, and so read more than once,
/// as `/dev/fd/N`.
///
/// # Errors
/// When there is no memory or descriptor left, or `name` holds a NUL byte or is longer than 249 bytes.
pub fn memfile(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(fd);
    file.write_all(content)?;
    file.rewind()?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

/// Takes over the inherited descriptor `number`, reads the whole sealed file behind it, and closes it. The offset, which
/// all processes with that file share, is neither used nor moved.
///
/// Call it only for a descriptor that was handed to this very process, and that nothing else in it uses.
///
/// # Errors
/// When it is not open, is standard input, output or error, is not a sealed file in memory, or holds more than
/// `max_bytes`.
pub fn take_sealed(number: RawFd, max_bytes: usize) -> io::Result<Vec<u8>> {
    let file = File::from(io_util::take_fd(number)?);
    if !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a sealed file in memory"));
    }
    io_util::read_whole(&file, max_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, IntoRawFd};

    #[test]
    fn can_be_read_twice_by_its_number_and_not_changed() {
        let fd = memfile("config", b"{\"a\":1}").unwrap();
        assert!(rustix::io::fcntl_getfd(&fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        let path = format!("/dev/fd/{}", fd.as_raw_fd());
        for _ in 0..2 {
            assert_eq!(std::fs::read(&path).unwrap(), b"{\"a\":1}");
        }
        let mut file = File::from(fd);
        assert_eq!(file.write_all(b"x").unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert_eq!(file.set_len(0).unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn what_is_taken_over_is_read_from_its_start_and_closed() {
        let fd = memfile("plan", b"abc").unwrap();
        let mut reader = File::from(fd.try_clone().unwrap());
        reader.seek(io::SeekFrom::End(0)).unwrap();
        let number = fd.into_raw_fd();
        let original = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
        assert_eq!(take_sealed(number, 3).unwrap(), b"abc");
        assert_eq!(reader.stream_position().unwrap(), 3, "the offset moved");
        // Other tests of this process may have the number by now.
        assert_ne!(std::fs::read_link(format!("/proc/self/fd/{number}")).ok(), Some(original));
    }

    #[test]
    fn nothing_but_a_small_sealed_file_is_taken_over() {
        let word = |number, max| take_sealed(number, max).unwrap_err().to_string();
        assert!(word(memfile("plan", b"abcd").unwrap().into_raw_fd(), 3).contains("too large"));
        for number in [-1, 0, 2] {
            assert!(word(number, 3).contains("standard"), "{number}");
        }
        let open = memfd_create("plan", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(word(open.into_raw_fd(), 3).contains("not a sealed"));
        let file = tempfile::tempfile().unwrap();
        assert!(word(file.into_raw_fd(), 3).contains("not a sealed"));
        assert_eq!(take_sealed(RawFd::MAX, 3).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn a_name_with_a_nul_byte_is_an_error() {
        assert_eq!(memfile("a\0b", b"").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
