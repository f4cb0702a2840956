//! A file that has no name any more. Never run on a Mac.

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use crate::nameless;

/// A file that holds `content`, close-on-exec, at offset 0. macOS has no files in memory: it is made with mode 0600 in
/// the directory for temporary files and unlinked at once, so that its content may reach the disk, and opening it again
/// as `/dev/fd/N` shares the offset. `name` is part of its short-lived name. It is open for reading only.
///
/// # Errors
/// When the file cannot be made or written.
pub fn memfile(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    nameless::make(&std::env::temp_dir(), name, content)
}

/// Takes over the inherited descriptor `number`, reads the whole file behind it, and closes it. The offset, which all
/// processes with that file share, is neither used nor moved.
///
/// Call it only for a descriptor that was handed to this very process, and that nothing else in it uses.
///
/// # Errors
/// When it is not open, is standard input, output or error, is a file that anybody could change, or holds more than
/// `max_bytes`.
pub fn take_sealed(number: RawFd, max_bytes: usize) -> io::Result<Vec<u8>> {
    nameless::read(crate::io_util::take_fd(number)?, max_bytes)
}
