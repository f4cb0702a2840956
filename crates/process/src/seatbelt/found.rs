//! What stands at a granted path, for a sandbox that goes by paths (macOS). Tried on Linux, never on a Mac.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use host::confine::{ConfineError, FileGrant, Links};

/// What stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it is, without a symbolic link on the way.
    pub(super) path: PathBuf,
    /// Whether it is a directory.
    pub(super) is_directory: bool,
}

/// What stands at the path of a grant; `None` where nothing is to be granted.
///
/// It may be another thing a moment later. The sandbox then grants what stands at that path, never what a link there leads to:
/// it looks at where the kernel arrives.
///
/// # Errors
/// When a link, or another thing than was granted, is in the way of a grant that refuses it; when it cannot be looked at.
pub(super) fn found(grant: &FileGrant) -> Result<Option<Found>, ConfineError> {
    let link = || match grant.links {
        Links::Refused => Err(ConfineError::Link(grant.path.clone())),
        Links::Followed | Links::Skipped => Ok(None),
    };
    let path = match grant.path.canonicalize() {
        Ok(path) => path,
        Err(_) if has_link(&grant.path) => return link(),
        Err(error) if is_nothing(&error) => return Ok(None),
        Err(error) => return Err(unseen(grant)(error)),
    };
    if grant.links != Links::Followed && path != grant.path {
        return link();
    }
    let seen = path.symlink_metadata().map_err(unseen(grant))?;
    if grant.identity.is_some_and(|identity| identity != (seen.dev(), seen.ino())) {
        return match grant.links {
            Links::Refused => Err(ConfineError::Replaced(grant.path.clone())),
            Links::Followed | Links::Skipped => Ok(None),
        };
    }
    Ok(Some(Found { path, is_directory: seen.is_dir() }))
}

fn unseen(grant: &FileGrant) -> impl FnOnce(io::Error) -> ConfineError + '_ {
    |source| ConfineError::Open { path: grant.path.clone(), source }
}

/// Not there, or behind a directory that the user may not enter.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

fn has_link(path: &Path) -> bool {
    path.ancestors().any(Path::is_symlink)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use host::confine::{Access, identity};

    use super::*;

    fn look(path: &Path, links: Links) -> Result<Option<PathBuf>, String> {
        let grant = FileGrant { path: path.to_path_buf(), access: Access::Read, links, identity: None };
        found(&grant).map(|found| found.map(|found| found.path)).map_err(|error| error.to_string())
    }

    #[test]
    fn links_are_followed_refused_or_passed_over() {
        let directory = tempfile::tempdir().expect("made");
        let root = directory.path().canonicalize().expect("made");
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("real/below")).expect("made");
        symlink(at("real"), at("link")).expect("made");
        symlink(at("gone"), at("dangling")).expect("made");
        symlink(at("circle"), at("circle")).expect("made");
        for links in [Links::Followed, Links::Refused, Links::Skipped] {
            assert_eq!(look(&at("real/below"), links), Ok(Some(at("real/below"))));
            assert_eq!(look(&at("nothing/below"), links), Ok(None));
        }
        for name in ["link", "link/below"] {
            let led = root.join(name.replace("link", "real"));
            assert_eq!(look(&at(name), Links::Followed), Ok(Some(led)));
            assert!(look(&at(name), Links::Refused).expect_err("refused").contains("symbolic link"));
            assert_eq!(look(&at(name), Links::Skipped), Ok(None));
        }
        for name in ["dangling", "dangling/below", "circle"] {
            assert!(look(&at(name), Links::Refused).expect_err("refused").contains("symbolic link"), "{name}");
            for links in [Links::Followed, Links::Skipped] {
                assert_eq!(look(&at(name), links), Ok(None), "{name}");
            }
        }
    }

    #[test]
    fn another_thing_is_as_a_link() {
        let directory = tempfile::tempdir().expect("made");
        let root = directory.path().canonicalize().expect("made");
        fs::write(root.join("file"), "").expect("made");
        let known = identity(&root).expect("made");
        let grant = |links, identity| FileGrant { path: root.clone(), access: Access::Write, links, identity };
        let expected = Some(Found { path: root.clone(), is_directory: true });
        for links in [Links::Refused, Links::Skipped] {
            assert_eq!(found(&grant(links, Some(known))).expect("made"), expected);
        }
        let other = Some(identity(&root.join("file")).expect("made"));
        assert!(matches!(found(&grant(Links::Refused, other)), Err(ConfineError::Replaced(_))));
        assert_eq!(found(&grant(Links::Skipped, other)).expect("made"), None);
        let file = FileGrant { path: root.join("file"), ..grant(Links::Refused, None) };
        assert!(!found(&file).expect("made").expect("made").is_directory);
    }
}
