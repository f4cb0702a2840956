//! What Python's own records say of an environment: distributions and the hashes of their files. Nothing is run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::lock::normalize;

/// The head of a METADATA file ends long before this.
const METADATA_BYTES: u64 = 64 * 1024;
/// The largest RECORD seen is about 400 KiB.
const RECORD_BYTES: u64 = 16 * 1024 * 1024;

/// Name and version out of a METADATA file's head.
fn name_and_version(metadata: &str) -> Option<(String, String)> {
    let field = |wanted: &str| {
        metadata
            .lines()
            .take_while(|line| !line.is_empty())
            .find_map(|line| line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case(wanted)))
            .map(|(_, value)| value.trim().to_owned())
    };
    Some((normalize(&field("Name")?), field("Version")?))
}

fn read_text(path: &Path, most_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The `lib/python3.*/site-packages` of an environment; exactly one must exist.
pub(crate) fn site_packages(root: &Path) -> io::Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("lib"))? {
        let entry = entry?;
        let packages = entry.path().join("site-packages");
        if entry.file_name().to_string_lossy().starts_with("python3.") && packages.is_dir() {
            found.push(packages);
        }
    }
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(io::Error::new(io::ErrorKind::NotFound, "no lib/python3.*/site-packages")),
        (Some(_), false) => Err(io::Error::new(io::ErrorKind::InvalidData, "several lib/python3.*/site-packages")),
    }
}

fn dist_infos(site_packages: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(site_packages)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with(".dist-info") {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Every distribution of an environment with its version, by normalized name. A distribution described twice, or not
/// readable, is an error: it could not be told which one counts.
pub(crate) fn distributions(site_packages: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for info in dist_infos(site_packages)? {
        let path = info.join("METADATA");
        let unreadable = || io::Error::new(io::ErrorKind::InvalidData, format!("{} is not readable", path.display()));
        let metadata = read_text(&path, METADATA_BYTES).map_err(|_| unreadable())?;
        let (name, version) = name_and_version(&metadata).ok_or_else(unreadable)?;
        if found.insert(name.clone(), version).is_some() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{name} is installed twice")));
        }
    }
    Ok(found)
}

/// One line of a RECORD that carries a hash.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Relative to the environment's root.
    pub(crate) path: PathBuf,
    /// Lower-case hexadecimal.
    pub(crate) sha256: String,
}

/// The hashes that the distributions came with. Lines without a hash, and the scripts of `bin/` (an installer makes
/// them, they are no part of a distribution) are left out; a path that leaves the environment is an error.
pub(crate) fn recorded(root: &Path, site_packages: &Path) -> io::Result<Vec<Recorded>> {
    let inside = site_packages.strip_prefix(root).map_err(|_| io::Error::other("site-packages is not in the root"))?;
    let mut found = Vec::new();
    for info in dist_infos(site_packages)? {
        let path = info.join("RECORD");
        for line in read_text(&path, RECORD_BYTES)?.lines() {
            let bad = || io::Error::new(io::ErrorKind::InvalidData, format!("{}: {line:.200}", path.display()));
            let (file, hash) = split_line(line).ok_or_else(bad)?;
            let Some(encoded) = hash.strip_prefix("sha256=") else { continue };
            let file = resolve(inside, Path::new(&file)).ok_or_else(bad)?;
            if file.starts_with("bin") {
                continue;
            }
            let sha256 = hex::encode(URL_SAFE_NO_PAD.decode(encoded).map_err(|_| bad())?);
            found.push(Recorded { path: file, sha256 });
        }
    }
    Ok(found)
}

/// The first two of a line's three comma-separated fields; the first may be quoted.
fn split_line(line: &str) -> Option<(String, &str)> {
    let (file, rest) = match line.strip_prefix('"') {
        Some(quoted) => {
            let end = quoted.find("\",")?;
            (quoted[..end].replace("\"\"", "\""), &quoted[end + 2..])
        }
        None => line.split_once(',').map(|(file, rest)| (file.to_owned(), rest))?,
    };
    rest.split_once(',').map(|(hash, _)| (file, hash))
}

fn resolve(base: &Path, relative: &Path) -> Option<PathBuf> {
    let mut out = base.to_path_buf();
    for part in relative.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_line_is_split_and_its_path_stays_inside() {
        assert_eq!(split_line("a/b.py,sha256=xx,12"), Some(("a/b.py".to_owned(), "sha256=xx")));
        assert_eq!(split_line("\"a,b\"\"c.py\",sha256=xx,1"), Some(("a,b\"c.py".to_owned(), "sha256=xx")));
        assert_eq!(split_line("nonsense"), None);
        let base = Path::new("lib/python3.12/site-packages");
        assert_eq!(resolve(base, Path::new("../../../share/x")), Some(PathBuf::from("share/x")));
        assert_eq!(resolve(base, Path::new("../../../../x")), None);
        assert_eq!(resolve(base, Path::new("/etc/passwd")), None);
    }

    #[test]
    fn the_head_of_metadata_is_read_and_its_body_is_not() {
        let head = "Metadata-Version: 2.1\nName: Open_Hands.sdk\nVersion: 1.2\n\nVersion: 9\n";
        assert_eq!(name_and_version(head), Some(("open-hands-sdk".to_owned(), "1.2".to_owned())));
        assert_eq!(name_and_version("Name: x\n\nVersion: 9\n"), None);
    }
}
