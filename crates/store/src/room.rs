//! Whether there is room for records, and a way to write them.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::StoreError;

/// Name of the file that is written to find out, in the state directory.
const PROBE_FILE: &str = "records.room";
/// Room for many writes, so that it is not found just before the next one fails.
const ROOM_BYTES: usize = 256 * 1024;

/// Finds out whether files of this directory can be written, by writing one of 256 KiB, which does not stay. **Blocks.**
///
/// # Errors
/// `DiskFull`, `NotWritable`, `Io`.
pub fn check_room(directory: &Path) -> Result<(), StoreError> {
    let path = directory.join(PROBE_FILE);
    let remove = || match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    let write = || -> std::io::Result<()> {
        // One that a killed daemon left.
        remove()?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(&vec![0; ROOM_BYTES])?;
        file.sync_all()
    };
    let written = write();
    let removed = remove();
    written.and(removed).map_err(|error| StoreError::io(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::private_directory;

    #[test]
    fn room_is_found_and_nothing_stays_and_what_a_killed_daemon_left_is_no_hindrance() {
        let directory = private_directory();
        check_room(directory.path()).unwrap();
        fs::write(directory.path().join(PROBE_FILE), "part").unwrap();
        check_room(directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(matches!(check_room(&directory.path().join("gone")), Err(StoreError::Io { .. })));
    }
}
