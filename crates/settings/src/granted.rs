//! Further directories for the agent's processes, looked at when the configuration is read.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rules::confinement::{Further, Kept, check_further};

use crate::paths::Paths;
use crate::text;

/// Most directories of each list.
pub(crate) const MAX_GRANTED: usize = 16;

/// An existing directory of the owner's, or one of root's to be read, without a link on the way, that may be granted.
pub(crate) fn directory(text: &str, home: &Path, paths: &Paths, way: Further) -> Result<PathBuf, String> {
    let path = text::path(text, home)?;
    let resolved = path.canonicalize().map_err(|_| "a directory that exists".to_owned())?;
    if resolved != path {
        return Err("a path without a symbolic link on the way; write where it leads".to_owned());
    }
    let found = path.metadata().map_err(|_| "a directory that exists".to_owned())?;
    if !found.is_dir() {
        return Err("a directory".to_owned());
    }
    let owner = found.uid();
    if owner != host::hygiene::effective_user() && !(way == Further::Read && owner == host::hygiene::root_uid()) {
        return Err("a directory of your own".to_owned());
    }
    let resolve = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let own = paths.own().map(resolve);
    check_further(&path, way, &Kept { home: resolve(home), own: own.into() })?;
    Ok(path)
}
