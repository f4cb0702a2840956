//! Setting a damaged file aside: under a new name, with all that belongs to it, and never over anything.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::StoreError;

/// Names of one stamp that are tried.
const MAX_TRIES: u32 = 100;
/// What belongs to a file, itself first: without it nothing takes its log for one of another.
const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Renames the file `name` of `directory` to `NAME.damaged-STAMP`, or with a number behind where that is taken. Returns the
/// new path; `None` when neither the file nor anything of it was there.
///
/// # Errors
/// `NotWritable`, `Io`. A crash in between leaves the rest under the old name, which is refused as damaged and set aside
/// likewise.
pub(crate) fn set_aside(directory: &Path, name: &str, stamp: &str) -> Result<Option<PathBuf>, StoreError> {
    let present: Vec<&str> = SUFFIXES
        .into_iter()
        .filter(|suffix| directory.join(format!("{name}{suffix}")).symlink_metadata().is_ok())
        .collect();
    if present.is_empty() {
        return Ok(None);
    }
    let free = |base: &str| {
        SUFFIXES.iter().all(|suffix| directory.join(format!("{base}{suffix}")).symlink_metadata().is_err())
    };
    let named = |number: u32| match number {
        1 => format!("{name}.damaged-{stamp}"),
        further => format!("{name}.damaged-{stamp}-{further}"),
    };
    let base = (1..=MAX_TRIES).map(named).find(|base| free(base)).ok_or_else(|| StoreError::Database {
        detail: format!("{name} could not be set aside: too many were at the same time"),
    })?;
    for suffix in present {
        let from = directory.join(format!("{name}{suffix}"));
        let to = directory.join(format!("{base}{suffix}"));
        match renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(StoreError::io(&from, &error.into())),
        }
    }
    File::open(directory).and_then(|handle| handle.sync_all()).map_err(|error| StoreError::io(directory, &error))?;
    Ok(Some(directory.join(base)))
}
