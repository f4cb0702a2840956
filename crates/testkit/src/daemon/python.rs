//! A copy of the base Python that every user can read and run.
//!
//! A Python below root's home is closed to other users. Its executable names the directory of its shared library
//! absolutely; in the copy that name is overwritten in place with one relative to the executable.

use crate::failure::{Doing, Failure, Outcome};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the loader replaces by the executable's own directory.
const RELATIVE_LIBRARIES: &[u8] = b"$ORIGIN/../lib";
/// Directories of the standard library that a server never reads.
const LEFT_OUT: [&str; 4] = ["test", "idlelib", "__pycache__", "share"];

/// Copies the base Python 3.12 into this directory, once, and answers its `bin`.
pub(super) fn copy_base_python(into: &Path) -> Outcome<PathBuf> {
    let bin = into.join("bin");
    if bin.join("python3.12").is_file() {
        return Ok(bin);
    }
    let base = base_prefix()?;
    let part = into.with_extension("part");
    if part.exists() {
        fs::remove_dir_all(&part).doing("an unfinished copy could not be removed")?;
    }
    copy_tree(&base, &part)?;
    let executable = part.join("bin/python3.12");
    let patched = relocate(&fs::read(&executable).doing("the copy could not be read")?, &base.join("lib"));
    fs::write(&executable, patched).doing("the copy could not be written")?;
    fs::rename(&part, into).doing("the copy could not be put in place")?;
    let version = Command::new(bin.join("python3.12")).args(["-c", "import ssl, ctypes"]).env_clear().status();
    if version.doing("the copied Python could not be started")?.success() {
        return Ok(bin);
    }
    Err(Failure::new("the copied Python does not run"))
}

fn base_prefix() -> Outcome<PathBuf> {
    let script = "import sys; print(sys.base_prefix)";
    let output = Command::new("python3.12").args(["-c", script]).output().ok().filter(|output| output.status.success());
    let asked = output.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim().to_owned()));
    asked.or_else(newest_pyenv).ok_or_else(|| Failure::new("no Python 3.12 on PATH or below ~/.pyenv/versions"))
}

fn newest_pyenv() -> Option<PathBuf> {
    let versions = PathBuf::from(std::env::var_os("HOME")?).join(".pyenv/versions");
    let mut found: Vec<PathBuf> = fs::read_dir(versions).ok()?.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.join("bin/python3.12").is_file());
    found.sort();
    found.pop()
}

pub(super) fn copy_tree(from: &Path, to: &Path) -> Outcome<()> {
    let metadata = fs::symlink_metadata(from).doing("a file could not be looked at")?;
    if metadata.is_symlink() {
        let target = fs::read_link(from).doing("a link could not be read")?;
        return symlink(target, to).doing("a link could not be made");
    }
    if metadata.is_file() {
        fs::copy(from, to).doing("a file could not be copied")?;
    } else {
        fs::create_dir_all(to).doing("a directory could not be made")?;
        for entry in fs::read_dir(from).doing("a directory could not be read")? {
            let entry = entry.doing("a directory could not be read")?;
            if !LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
                copy_tree(&entry.path(), &to.join(entry.file_name()))?;
            }
        }
    }
    let mode = metadata.permissions().mode();
    let readable = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
    fs::set_permissions(to, fs::Permissions::from_mode(readable)).doing("a mode could not be set")
}

/// Overwrites the library directory with the relative one where it stands as a whole string.
fn relocate(executable: &[u8], library_dir: &Path) -> Vec<u8> {
    let mut bytes = executable.to_vec();
    let mut needle = library_dir.to_string_lossy().into_owned().into_bytes();
    needle.push(0);
    if needle.len() <= RELATIVE_LIBRARIES.len() {
        return bytes;
    }
    let mut replacement = RELATIVE_LIBRARIES.to_vec();
    replacement.resize(needle.len(), 0);
    let at: Vec<usize> = (0..bytes.len().saturating_sub(needle.len()))
        .filter(|at| bytes[*at..].starts_with(&needle) && (*at == 0 || bytes[*at - 1] == 0))
        .collect();
    for start in at {
        bytes[start..start + replacement.len()].copy_from_slice(&replacement);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_library_path_is_replaced_in_place() {
        let executable = b"\x7fELF\0/a/long/prefix/versions/lib\0/a/long/prefix/versions/lib/x\0end";
        let patched = relocate(executable, Path::new("/a/long/prefix/versions/lib"));
        assert_eq!(patched.len(), executable.len());
        let text = String::from_utf8_lossy(&patched);
        assert!(text.contains("\0$ORIGIN/../lib\0"), "{text}");
        assert!(text.contains("\0/a/long/prefix/versions/lib/x\0end"), "{text}");
    }

    #[test]
    fn the_copy_runs_as_another_user() {
        if !rustix::process::getuid().is_root() {
            // Nothing to relocate for: an ordinary user runs its own Python.
            assert!(super::super::unprivileged_install().is_err());
            return;
        }
        let directory = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
        let bin = copy_base_python(&directory.path().join("python")).unwrap();
        let script = "import os, sys, ssl, sqlite3, venv; print(os.getuid(), sys.prefix)";
        let python = bin.join("python3.12");
        let mut command = super::super::users::as_user(super::super::UNPRIVILEGED_USER, &python);
        let output = command.args(["-c", script]).env_clear().env("PATH", "/usr/bin:/bin").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let prefix = directory.path().join("python");
        assert_eq!(said.trim(), format!("{} {}", super::super::UNPRIVILEGED_USER, prefix.display()), "{output:?}");
    }
}
