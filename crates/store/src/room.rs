//! Whether there is room for records, and a way to write them.

use std::io::Write as _;
use std::path::Path;

use crate::error::StoreError;

/// Room for many writes, so that it is not found just before the next one fails.
const ROOM_BYTES: usize = 256 * 1024;

/// Finds out whether files of this directory can be written, by writing one of 256 KiB. It has no name, so that it meets no
/// other and does not stay, however this ends. **Blocks.**
///
/// # Errors
/// `DiskFull`, `NotWritable`, `Io`.
pub fn check_room(directory: &Path) -> Result<(), StoreError> {
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::tempfile_in(directory)?;
        file.write_all(&vec![0; ROOM_BYTES])?;
        file.sync_all()
    };
    write().map_err(|error| StoreError::io(directory, &error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::private_directory;

    #[test]
    fn room_is_found_by_many_at_once_and_nothing_stays() {
        let directory = private_directory();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..50).for_each(|_| check_room(directory.path()).unwrap()));
            }
        });
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(matches!(check_room(&directory.path().join("gone")), Err(StoreError::Io { .. })));
    }
}
