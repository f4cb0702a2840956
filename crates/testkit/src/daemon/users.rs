//! Acting for another user: programs, files.

use crate::failure::{Doing, Outcome};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

/// A command that runs a program as another user, without root's groups.
#[must_use]
pub fn as_user(user: u32, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    let user = user.to_string();
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]).arg(program);
    command
}

pub(crate) fn make_private_dir(path: &Path) -> Outcome<()> {
    fs::create_dir_all(path).doing("a directory could not be made")?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).doing("a mode could not be set")
}

/// Gives a tree to a user, symbolic links (not what they point at) included.
pub(crate) fn give_tree(path: &Path, user: u32) -> Outcome<()> {
    let kind = fs::symlink_metadata(path).doing("a file could not be looked at")?.file_type();
    if kind.is_symlink() {
        return std::os::unix::fs::lchown(path, Some(user), Some(user)).doing("a link could not be given away");
    }
    chown(path, Some(user), Some(user)).doing("a file could not be given away")?;
    if kind.is_dir() {
        for entry in fs::read_dir(path).doing("a directory could not be read")? {
            give_tree(&entry.doing("a directory could not be read")?.path(), user)?;
        }
    }
    Ok(())
}
