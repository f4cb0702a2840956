//! Programs to be found on PATH.

use crate::failure::{Doing, Outcome};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Fills a directory, which everybody may then read, with a link to each program of the system's but this one.
///
/// # Errors
/// When a link cannot be made.
pub fn link_programs_without(left_out: &str, directory: &Path) -> Outcome<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o755)).doing("a mode could not be set")?;
    let system = ["/usr/bin", "/usr/local/bin"].iter().filter_map(|bin| fs::read_dir(bin).ok());
    for program in system.flat_map(|bin| bin.flatten()) {
        let link = directory.join(program.file_name());
        if program.file_name() != OsStr::new(left_out) && fs::symlink_metadata(&link).is_err() {
            symlink(program.path(), link).doing("a link could not be made")?;
        }
    }
    Ok(())
}
