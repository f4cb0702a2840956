//! Tools from outside that tests need, in the versions that a file of the repository pins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::daemon::{cache_dir, lock_file};

/// The directory of a tool below the target directory. `install` puts the tool there when it is missing, or when `pins`,
/// the text of the file that pins its versions, is not what was installed last. One process at a time.
///
/// # Panics
/// When files cannot be read or written, or the install fails.
#[must_use]
#[expect(clippy::unwrap_used, reason = "a test without its tool ends")]
pub fn locked_tool(name: &str, pins: &Path, install: impl FnOnce(&Path)) -> PathBuf {
    let directory = cache_dir().unwrap().join(name);
    fs::create_dir_all(&directory).unwrap();
    let _turn = lock_file(&format!("{name}.lock")).unwrap();
    let wanted = fs::read(pins).unwrap();
    let installed = directory.join("installed");
    if fs::read(&installed).ok().as_deref() != Some(&wanted[..]) {
        install(&directory);
        fs::write(&installed, &wanted).unwrap();
    }
    directory
}

/// Runs one step of an install.
///
/// # Panics
/// When it cannot be started or fails.
#[track_caller]
pub fn install_step(command: &mut Command) {
    let status = command.status();
    assert!(status.as_ref().is_ok_and(|status| status.success()), "{command:?}: {status:?}");
}
