//! A file that has no name: content handed to a child by descriptor.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

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
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

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
    fn a_name_with_a_nul_byte_is_an_error() {
        assert_eq!(memfile("a\0b", b"").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
