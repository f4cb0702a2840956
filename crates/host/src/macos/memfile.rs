//! A file that has no name any more. Never run.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// A file that holds `content`, close-on-exec, at offset 0. macOS has no files in memory: it is made with mode 0600 in
/// the directory for temporary files and unlinked at once, so that its content may reach the disk, and opening it again
/// as `/dev/fd/N` shares the offset. `name` is part of its short-lived name.
///
/// # Errors
/// When the file cannot be made or written.
pub fn memfile(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    let path = std::env::temp_dir().join(format!("{}.{}", name.replace('/', "_"), crate::sign::random_hex(16)?));
    let mut file: File = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

/// Fails: a file that cannot be changed any more does not exist here.
///
/// # Errors
/// Always.
pub fn take_sealed(_number: RawFd, _max_bytes: usize) -> io::Result<Vec<u8>> {
    Err(super::unsupported("a sealed file"))
}
