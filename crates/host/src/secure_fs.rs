//! Private files and directories.
//!
//! Files: opened without following a link at the end, then checked on the open descriptor, so that what was checked is
//! what is read. A private file is a regular file of ours with no permission for anyone else and no second name.
//!
//! Directories: mode 0700 and ours, and no one else can swap a directory above them (see [`ensure_private_dir`]).

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use zeroize::Zeroizing;

use crate::secret::Secret;

mod directory;
mod error;
#[cfg(test)]
mod tests;

pub use directory::ensure_private_dir;
pub use error::SecureFsError;

use error::io_error;

/// Permission bits of everyone but the owner.
const OTHERS_MASK: u32 = 0o077;
/// Largest secret of [`load_or_create_secret`] in random bytes.
const MAX_SECRET_BYTES: usize = 512;

/// Reads a private file of at most `max_bytes` bytes. The content is wiped when dropped.
///
/// # Errors
/// When the file does not exist ([`SecureFsError::is_not_found`]), is a link, is not a regular file, belongs to someone
/// else, can be used by others, has a second name, or is too large.
pub fn read_private(path: &Path, max_bytes: u64) -> Result<Zeroizing<Vec<u8>>, SecureFsError> {
    let (file, size_bytes) = open_private(path)?;
    let too_large = || SecureFsError::TooLarge { path: path.to_path_buf(), max_bytes };
    if size_bytes > max_bytes {
        return Err(too_large());
    }
    // One byte more than allowed is asked for, since the file may have grown; sized at once, since growing would leave
    // copies behind.
    let mut content = Zeroizing::new(Vec::with_capacity(usize::try_from(size_bytes).unwrap_or(0).saturating_add(1)));
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut content).map_err(io_error("read", path))?;
    if content.len() as u64 > max_bytes {
        return Err(too_large());
    }
    Ok(content)
}

/// Reads a private file that holds one secret; white space at the end is dropped.
///
/// # Errors
/// As [`read_private`]; also when the content is not UTF-8 text or is empty.
pub fn read_secret(path: &Path, max_bytes: u64) -> Result<Secret, SecureFsError> {
    let content = read_private(path, max_bytes)?;
    let malformed = |wanted| SecureFsError::Malformed { path: path.to_path_buf(), wanted };
    let text = std::str::from_utf8(&content).map_err(|_| malformed("UTF-8 text"))?.trim_end();
    if text.is_empty() {
        return Err(malformed("a secret, and it is empty"));
    }
    Ok(Secret::new(text.to_owned()))
}

/// Writes a file that must not exist yet: mode 0600 whatever the umask, on disk before this returns. A file that could
/// not be written whole is removed again.
///
/// # Errors
/// When the file exists ([`SecureFsError::is_already_there`]) or cannot be written.
pub fn write_private_new(path: &Path, content: &[u8]) -> Result<(), SecureFsError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(io_error("create", path))?;
    let written = fill_and_sync(fd, path, content).and_then(|()| sync_directory_of(path));
    if written.is_err() {
        // The first error is the one to report; a leftover is found by the next call.
        std::fs::remove_file(path).ok();
    }
    written
}

/// Writes a private file, replacing what has that name: a reader sees the old content or the new, never a part.
///
/// # Errors
/// When the directory cannot be written. The old file is then untouched.
pub fn write_private_atomic(path: &Path, content: &[u8]) -> Result<(), SecureFsError> {
    let suffix = crate::sign::random_hex(8).map_err(io_error("choose a temporary name beside", path))?;
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{suffix}.new"));
    let temporary = path.with_file_name(name);
    write_private_new(&temporary, content)?;
    let replaced =
        rustix::fs::rename(&temporary, path).map_err(io_error("replace", path)).and_then(|()| sync_directory_of(path));
    if replaced.is_err() {
        std::fs::remove_file(&temporary).ok();
    }
    replaced
}

/// The secret of `path`, made of `random_bytes` random bytes (hex digits in the file) when the file does not exist.
///
/// # Errors
/// As [`read_private`] and [`write_private_new`]; also when the file holds anything but the wanted number of hex digits.
pub fn load_or_create_secret(path: &Path, random_bytes: usize) -> Result<Secret, SecureFsError> {
    if random_bytes == 0 || random_bytes > MAX_SECRET_BYTES {
        return Err(SecureFsError::Malformed { path: path.to_path_buf(), wanted: "a secret of 1 to 512 bytes" });
    }
    match read_hex_secret(path, random_bytes) {
        Err(error) if error.is_not_found() => {}
        other => return other,
    }
    let secret = Secret::random_hex(random_bytes).map_err(io_error("make a secret for", path))?;
    match write_private_new(path, secret.expose().as_bytes()) {
        Ok(()) => Ok(secret),
        // Someone else was first: theirs counts.
        Err(error) if error.is_already_there() => read_hex_secret(path, random_bytes),
        Err(error) => Err(error),
    }
}

fn read_hex_secret(path: &Path, random_bytes: usize) -> Result<Secret, SecureFsError> {
    let digits = random_bytes * 2;
    let secret = read_secret(path, digits as u64 + 2)?;
    let is_whole = secret.len_bytes() == digits && secret.expose().bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_whole {
        Ok(secret)
    } else {
        Err(SecureFsError::Malformed { path: path.to_path_buf(), wanted: "the hex digits of a secret made here" })
    }
}

/// Opens a private file and returns its size in bytes.
/// Checks a file as [`read_private`] does, reads nothing of it, and returns its size in bytes.
///
/// # Errors
/// What is wrong with the file, with the remedy.
pub fn inspect_private(path: &Path) -> Result<u64, SecureFsError> {
    open_private(path).map(|(_, size_bytes)| size_bytes)
}

fn open_private(path: &Path) -> Result<(File, u64), SecureFsError> {
    // NONBLOCK: opening a pipe put in the file's place must not hang.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| {
        if error == rustix::io::Errno::LOOP {
            SecureFsError::Symlink { path: path.to_path_buf() }
        } else {
            io_error("open", path)(error)
        }
    })?;
    let file = File::from(fd);
    let size_bytes = check_private_file(&file, path)?;
    Ok((file, size_bytes))
}

/// Checks an open file and returns its size in bytes.
pub(crate) fn check_private_file(file: &File, path: &Path) -> Result<u64, SecureFsError> {
    let metadata = file.metadata().map_err(io_error("inspect", path))?;
    if !metadata.is_file() {
        return Err(SecureFsError::NotRegular { path: path.to_path_buf() });
    }
    error::check_owner(path, metadata.uid())?;
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS_MASK != 0 {
        return Err(SecureFsError::WrongMode { path: path.to_path_buf(), found: mode, wanted: 0o600 });
    }
    if metadata.nlink() != 1 {
        return Err(SecureFsError::SecondName { path: path.to_path_buf() });
    }
    Ok(metadata.len())
}

fn fill_and_sync(fd: OwnedFd, path: &Path, content: &[u8]) -> Result<(), SecureFsError> {
    // The umask may have taken bits from the mode given to `open`.
    rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR).map_err(io_error("set the mode of", path))?;
    let mut file = File::from(fd);
    file.write_all(content).map_err(|source| SecureFsError::Io {
        action: "write",
        path: path.to_path_buf(),
        source,
    })?;
    file.sync_all().map_err(|source| SecureFsError::Io { action: "flush", path: path.to_path_buf(), source })
}

/// Makes the name durable, not only the content.
fn sync_directory_of(path: &Path) -> Result<(), SecureFsError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(directory, flags, Mode::empty()).map_err(io_error("open", directory))?;
    rustix::fs::fsync(fd).map_err(io_error("flush", directory))
}
