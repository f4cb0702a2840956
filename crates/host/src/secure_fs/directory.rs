//! Private directories, and the directories above them.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::error::{SecureFsError, check_owner, io_error};

const PRIVATE_MODE: u32 = 0o700;
const STICKY: u32 = 0o1000;
const GROUP_WRITE: u32 = 0o020;
const WORLD_WRITE: u32 = 0o002;

/// Makes sure that the directory `path` (absolute) exists, is ours and has mode 0700, creating it and what is missing
/// above it with mode 0700. An existing directory is never changed, only refused.
///
/// Whoever can rename a directory above can put another tree in its place, so every directory from the root down, and
/// every link on the way, must satisfy this rule:
/// - it belongs to root or to us;
/// - unless it is sticky (as `/tmp` is), it is not writable by everyone, and writable by a group only when it is ours
///   (a file mode mask of 002 makes such directories for a group that has one member).
///
/// # Errors
/// What is wrong, where, and the remedy.
pub fn ensure_private_dir(path: &Path) -> Result<(), SecureFsError> {
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return Err(SecureFsError::NotAbsolute { path: path.to_path_buf() });
    }
    if let Some(parent) = path.parent() {
        check_ancestors(path, parent)?;
        create_missing(parent)?;
    }
    match std::fs::DirBuilder::new().mode(PRIVATE_MODE).create(path) {
        // The umask may have taken bits away.
        Ok(()) => rustix::fs::chmod(path, Mode::RWXU).map_err(io_error("set the mode of", path))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io_error("create", path)(error)),
    }
    check_itself(path)
}

/// Checks the directory on an open descriptor.
fn check_itself(path: &Path) -> Result<(), SecureFsError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| refusal_of_open(path, error))?;
    let metadata = File::from(fd).metadata().map_err(io_error("inspect", path))?;
    check_owner(path, metadata.uid())?;
    check_mode(path, metadata.mode())
}

fn check_mode(path: &Path, mode: u32) -> Result<(), SecureFsError> {
    let found = mode & 0o777;
    if found == PRIVATE_MODE {
        Ok(())
    } else {
        Err(SecureFsError::WrongMode { path: path.to_path_buf(), found, wanted: PRIVATE_MODE })
    }
}

/// Opening fails in the same way for a link and for a file, and for a directory that we may not read: look again, for
/// the message only.
fn refusal_of_open(path: &Path, error: rustix::io::Errno) -> SecureFsError {
    let failed = || io_error("open", path)(error);
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => SecureFsError::Symlink { path: path.to_path_buf() },
        Ok(found) if !found.is_dir() => SecureFsError::NotDirectory { path: path.to_path_buf() },
        Ok(found) => {
            check_owner(path, found.uid()).and_then(|()| check_mode(path, found.mode())).err().unwrap_or_else(failed)
        }
        Err(_) => failed(),
    }
}

fn create_missing(parent: &Path) -> Result<(), SecureFsError> {
    std::fs::DirBuilder::new().recursive(true).mode(PRIVATE_MODE).create(parent).map_err(io_error("create", parent))
}

/// Checks what exists of `parent` and above: as written, and once more with every link resolved.
fn check_ancestors(path: &Path, parent: &Path) -> Result<(), SecureFsError> {
    let existing = check_each_prefix(path, parent)?;
    let resolved = std::fs::canonicalize(&existing).map_err(io_error("resolve", &existing))?;
    if resolved != existing {
        check_each_prefix(path, &resolved)?;
    }
    Ok(())
}

/// Checks the prefixes of `parent` from the root down and returns the longest that exists.
fn check_each_prefix(path: &Path, parent: &Path) -> Result<PathBuf, SecureFsError> {
    let mut prefix = PathBuf::new();
    for component in parent.components() {
        let next = prefix.join(component);
        let metadata = match std::fs::symlink_metadata(&next) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(io_error("inspect", &next)(error)),
        };
        let above = Above {
            owner: metadata.uid(),
            group: metadata.gid(),
            mode: metadata.mode() & 0o7777,
            is_link: metadata.is_symlink(),
        };
        if let Some((reason, remedy)) =
            above.objection(&next, crate::hygiene::effective_user(), crate::hygiene::root_uid())
        {
            return Err(SecureFsError::UnsafeAncestor { path: path.to_path_buf(), ancestor: next, reason, remedy });
        }
        prefix = next;
    }
    Ok(prefix)
}

/// A directory or link above the private one.
struct Above {
    owner: u32,
    group: u32,
    mode: u32,
    is_link: bool,
}

impl Above {
    /// What the rule says against it, with the remedy.
    fn objection(&self, path: &Path, ours: u32, root: u32) -> Option<(String, String)> {
        let Self { owner, group, mode, is_link } = *self;
        let name = path.display();
        if owner != root && owner != ours {
            let reason = format!("belongs to user id {owner}, who could replace it");
            return Some((reason, "choose a place below a directory of your own".to_owned()));
        }
        // A link's own mode means nothing; in a sticky directory only owners rename.
        if is_link || mode & STICKY != 0 {
            return None;
        }
        if mode & WORLD_WRITE != 0 {
            return Some((format!("is writable by everyone (mode {mode:04o})"), format!("run `chmod o-w {name}`")));
        }
        if mode & GROUP_WRITE != 0 && owner != ours {
            let reason = format!("is writable by group {group} (mode {mode:04o})");
            return Some((reason, format!("run `chmod g-w {name}` as root, or choose a place of your own")));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: u32 = 1000;

    fn is_accepted(owner: u32, mode: u32, is_link: bool) -> bool {
        Above { owner, group: 50, mode, is_link }.objection(Path::new("/above"), OURS, 0).is_none()
    }

    #[test]
    fn where_root_is_not_mapped_its_directories_are_those_of_nobody() {
        let is_accepted = |owner, mode| {
            Above { owner, group: 50, mode, is_link: false }.objection(Path::new("/above"), OURS, 65_534).is_none()
        };
        assert!(is_accepted(65_534, 0o755) && is_accepted(65_534, 0o1777) && is_accepted(OURS, 0o700));
        assert!(!is_accepted(65_534, 0o777) && !is_accepted(65_534, 0o775) && !is_accepted(0, 0o755));
    }

    #[test]
    fn the_rule_for_what_is_above() {
        for (owner, mode, is_link, accepted) in [
            (0, 0o755, false, true),
            (0, 0o1777, false, true),
            (0, 0o777, false, false),
            (0, 0o775, false, false),
            (0, 0o777, true, true),
            (OURS, 0o700, false, true),
            (OURS, 0o775, false, true),
            (OURS, 0o777, false, false),
            (OURS, 0o777, true, true),
            (2000, 0o755, false, false),
            (2000, 0o1777, false, false),
            (2000, 0o777, true, false),
        ] {
            assert_eq!(is_accepted(owner, mode, is_link), accepted, "owner {owner} mode {mode:o} link {is_link}");
        }
    }

    #[test]
    fn an_objection_names_the_remedy() {
        let above = Above { owner: OURS, group: OURS, mode: 0o777, is_link: false };
        let (reason, remedy) = above.objection(Path::new("/above"), OURS, 0).unwrap();
        assert_eq!(
            (reason.as_str(), remedy.as_str()),
            ("is writable by everyone (mode 0777)", "run `chmod o-w /above`")
        );
    }
}
