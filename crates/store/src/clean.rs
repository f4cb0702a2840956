//! The mark of an orderly stop: what both files were when they were closed.
//!
//! It stands beside them, so that taking it writes to neither. A file that anything touched since, if only its name or
//! mode, does not match it, and is checked whole.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::StoreError;
use crate::file::{Check, JOURNAL_FILE, LEDGER_FILE};

/// Name of the mark in the state directory.
const MARK_FILE: &str = "records.clean";
/// More than any mark has.
const MAX_MARK_BYTES: u64 = 1024;

/// Leaves the mark. Only for when both files were closed with nothing to be written any more, and neither told of damage.
///
/// # Errors
/// `Io`, `DiskFull`, `NotWritable`: then there is no mark, and the next start checks the files whole.
pub fn mark_clean(directory: &Path) -> Result<(), StoreError> {
    let Some(state) = state(directory)? else { return Ok(()) };
    let (mark, new) = (directory.join(MARK_FILE), directory.join(format!("{MARK_FILE}.new")));
    remove(&new)?;
    let write = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(state.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &mark)?;
        File::open(directory)?.sync_all()
    };
    write().map_err(|error| StoreError::io(&mark, &error))
}

/// Takes the mark away, before anything is written to the files, and says how much of them must be checked.
///
/// # Errors
/// `Io`, `NotWritable` when it is there and cannot be taken away: nothing must be written then.
pub fn take_clean_mark(directory: &Path) -> Result<Check, StoreError> {
    let mark = directory.join(MARK_FILE);
    let mut said = String::new();
    match File::open(&mark).and_then(|file| file.take(MAX_MARK_BYTES).read_to_string(&mut said)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Check::Whole),
        // Whatever it is, it is no mark of ours.
        Err(error) if error.kind() == ErrorKind::InvalidData => {}
        Err(error) => return Err(StoreError::io(&mark, &error)),
    }
    let matches = state(directory)?.is_some_and(|state| state == said);
    remove(&mark)?;
    File::open(directory).and_then(|handle| handle.sync_all()).map_err(|error| StoreError::io(directory, &error))?;
    Ok(if matches { Check::Cheap } else { Check::Whole })
}

/// What both files are; `None` when one is not there, or a log says that it was not closed.
fn state(directory: &Path) -> Result<Option<String>, StoreError> {
    let mut lines = String::new();
    for name in [LEDGER_FILE, JOURNAL_FILE] {
        for suffix in ["-wal", "-journal"] {
            if directory.join(format!("{name}{suffix}")).symlink_metadata().is_ok() {
                return Ok(None);
            }
        }
        let path = directory.join(name);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(&path, &error)),
        };
        // The time of the last change of anything: unlike that of the content, nobody can set it.
        let (second, nanosecond) = (found.ctime(), found.ctime_nsec());
        lines.push_str(&format!("{name} {} {} {second}.{nanosecond:09}\n", found.ino(), found.len()));
    }
    Ok(Some(lines))
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io(path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
