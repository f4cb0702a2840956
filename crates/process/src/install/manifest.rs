//! Our own record of an install: every file, link and directory, bytecode included.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The manifest's name in an install's root.
pub(crate) const MANIFEST_NAME: &str = "gatepost-manifest.json";
/// The format this code writes and reads.
const FORMAT: u32 = 1;
/// About 30,000 entries take 4 MiB.
const MANIFEST_BYTES: u64 = 64 * 1024 * 1024;
/// More entries than any reviewed version has, by far.
const MAX_ENTRIES: usize = 300_000;
/// Read at once while hashing.
const CHUNK_BYTES: usize = 128 * 1024;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileEntry {
    pub(crate) sha256: String,
    pub(crate) size_bytes: u64,
}

/// What an install is, without the list of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) format: u32,
    pub(crate) version: String,
    pub(crate) installer: String,
    pub(crate) python_version: String,
    /// The interpreter that `bin/python` leads to; it lies outside the install.
    pub(crate) interpreter: PathBuf,
    pub(crate) interpreter_sha256: String,
    pub(crate) requirements_sha256: String,
    pub(crate) build_requirements_sha256: String,
    pub(crate) distributions: BTreeMap<String, String>,
}

/// The whole record. Paths are relative to the root; an install whose names are not UTF-8 is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    #[serde(flatten)]
    pub(crate) head: Head,
    pub(crate) files: BTreeMap<String, FileEntry>,
    pub(crate) links: BTreeMap<String, String>,
    pub(crate) directories: BTreeSet<String>,
}

/// What stands in a root now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, FileEntry>,
    pub(crate) links: BTreeMap<String, String>,
    pub(crate) directories: BTreeSet<String>,
    /// Sockets, devices, pipes: nothing an install has.
    pub(crate) strange: Vec<String>,
}

impl Head {
    /// The current format's number.
    pub(crate) const FORMAT: u32 = FORMAT;
}

fn text(bytes: &[u8]) -> io::Result<String> {
    let not_utf8 = || io::Error::new(io::ErrorKind::InvalidData, "a name in the install is not UTF-8");
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| not_utf8())
}

/// SHA-256 and size of a file, read piece by piece. A symbolic link is not followed.
pub(crate) fn hash_file(path: &Path) -> io::Result<FileEntry> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; CHUNK_BYTES];
    let mut size_bytes = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                size_bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(FileEntry { sha256: hex::encode(hasher.finalize()), size_bytes })
}

/// Look at everything below `root` but the manifest, hashing with all processors. `report` hears a percentage.
pub(crate) fn scan(root: &Path, report: &dyn Fn(u8)) -> io::Result<Tree> {
    let mut tree = Tree::default();
    let mut names = Vec::new();
    walk(root, &mut tree, &mut names)?;
    let next = AtomicUsize::new(0);
    let hashed = Mutex::new(Vec::with_capacity(names.len()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let work = || -> io::Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(name) = names.get(index) else { return Ok(()) };
            let entry = hash_file(&root.join(name))?;
            hashed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((name.clone(), entry));
        }
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        while !handles.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let done = next.load(Ordering::Relaxed).min(names.len());
            report(u8::try_from(done * 100 / names.len().max(1)).unwrap_or(100));
        }
        handles
            .into_iter()
            .try_for_each(|handle| handle.join().unwrap_or_else(|_| Err(io::Error::other("a hashing thread failed"))))
    })?;
    tree.files = hashed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_iter().collect();
    Ok(tree)
}

fn walk(root: &Path, tree: &mut Tree, names: &mut Vec<String>) -> io::Result<()> {
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            let relative = path.strip_prefix(root).map_err(|_| io::Error::other("a path outside the root"))?;
            let name = text(relative.as_os_str().as_bytes())?;
            let kind = entry.file_type()?;
            if name == MANIFEST_NAME && kind.is_file() {
                continue;
            }
            if kind.is_symlink() {
                let target = text(fs::read_link(&path)?.as_os_str().as_bytes())?;
                tree.links.insert(name, target);
            } else if kind.is_dir() {
                tree.directories.insert(name);
                pending.push(path);
            } else if kind.is_file() {
                names.push(name);
            } else {
                tree.strange.push(name);
            }
            if names.len() + tree.links.len() + tree.directories.len() + tree.strange.len() > MAX_ENTRIES {
                return Err(io::Error::other("too many files for an install"));
            }
        }
    }
    Ok(())
}

fn read_bounded(root: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(root.join(MANIFEST_NAME))?;
    if file.metadata()?.len() > MANIFEST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the manifest is too large"));
    }
    file.take(MANIFEST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn known_format<T>(head: &Head, value: T) -> io::Result<T> {
    if head.format == FORMAT {
        return Ok(value);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("the manifest has format {}, not {FORMAT}", head.format)))
}

/// Read an install's head, and the SHA-256 of the whole manifest.
pub(crate) fn read_head(root: &Path) -> io::Result<(Head, String)> {
    let bytes = read_bounded(root)?;
    let head: Head = serde_json::from_slice(&bytes)?;
    known_format(&head.clone(), (head, hex::encode(Sha256::digest(&bytes))))
}

/// Read a manifest whole.
pub(crate) fn read(root: &Path) -> io::Result<Manifest> {
    let manifest: Manifest = serde_json::from_slice(&read_bounded(root)?)?;
    known_format(&manifest.head.clone(), manifest)
}

/// Write the manifest, as the last thing that makes an install whole.
pub(crate) fn write(root: &Path, manifest: &Manifest) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(root.join(MANIFEST_NAME))?;
    file.write_all(&serde_json::to_vec(manifest)?)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_the_root_is_seen_and_the_manifest_is_not() {
        let dir = tempfile::tempdir().expect("dir");
        fs::create_dir_all(dir.path().join("a/empty")).expect("dirs");
        fs::write(dir.path().join("a/x.py"), "x").expect("write");
        fs::write(dir.path().join(MANIFEST_NAME), "{}").expect("write");
        fs::write(dir.path().join("a").join(MANIFEST_NAME), "{}").expect("write");
        std::os::unix::fs::symlink("/usr/bin/python3", dir.path().join("py")).expect("link");
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).expect("socket");
        let tree = scan(dir.path(), &|_| {}).expect("scan");
        assert_eq!(tree.files.keys().collect::<Vec<_>>(), ["a/gatepost-manifest.json", "a/x.py"]);
        assert_eq!(tree.files["a/x.py"].sha256, hex::encode(Sha256::digest(b"x")));
        assert_eq!(tree.links["py"], "/usr/bin/python3");
        assert_eq!(tree.directories.iter().collect::<Vec<_>>(), ["a", "a/empty"]);
        assert_eq!(tree.strange, ["s"]);
    }
}
