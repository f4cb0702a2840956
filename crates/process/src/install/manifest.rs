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

use super::stat::{Stat, Stats};

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
    /// Of all of these and the root, each read before its content was.
    pub(crate) stats: Stats,
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
    hash_open(&mut open(path)?)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?))
}

fn hash_open(file: &mut File) -> io::Result<FileEntry> {
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
    tree.stats = walk(root, &mut |name, path, kind| {
        if kind.is_symlink() {
            tree.links.insert(name, text(fs::read_link(path)?.as_os_str().as_bytes())?);
        } else if kind.is_dir() {
            tree.directories.insert(name);
        } else if kind.is_file() {
            names.push(name);
        } else {
            tree.strange.push(name);
        }
        Ok(())
    })?;
    let next = AtomicUsize::new(0);
    let hashed = Mutex::new(Vec::with_capacity(names.len()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let work = || -> io::Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(name) = names.get(index) else { return Ok(()) };
            let mut file = open(&root.join(name))?;
            let stat = Stat::of(&file.metadata()?);
            let entry = hash_open(&mut file)?;
            hashed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((name.clone(), entry, stat));
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
    for (name, entry, stat) in hashed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        // Of the very file whose content was read: another one may have stood there when the directory was.
        tree.stats.insert(name.clone(), stat);
        tree.files.insert(name, entry);
    }
    Ok(tree)
}

/// What the file system says of everything that [`scan`] looks at. No content is read.
pub(crate) fn stats(root: &Path) -> io::Result<Stats> {
    walk(root, &mut |_, _, _| Ok(()))
}

/// What the file system says of the root and of the manifest itself.
pub(crate) fn own_stats(root: &Path) -> io::Result<Stats> {
    let of = |path: &Path| fs::symlink_metadata(path).map(|data| Stat::of(&data));
    Ok(Stats::from([(String::new(), of(root)?), (MANIFEST_NAME.to_owned(), of(&root.join(MANIFEST_NAME))?)]))
}

/// Hands over each entry below the root but the manifest: relative name, path, kind.
fn walk(root: &Path, visit: &mut dyn FnMut(String, &Path, fs::FileType) -> io::Result<()>) -> io::Result<Stats> {
    let mut stats = Stats::from([(String::new(), Stat::of(&fs::symlink_metadata(root)?))]);
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            let relative = path.strip_prefix(root).map_err(|_| io::Error::other("a path outside the root"))?;
            let name = text(relative.as_os_str().as_bytes())?;
            let metadata = entry.metadata()?;
            let kind = metadata.file_type();
            if name == MANIFEST_NAME && kind.is_file() {
                continue;
            }
            stats.insert(name.clone(), Stat::of(&metadata));
            visit(name, &path, kind)?;
            if kind.is_dir() {
                pending.push(path);
            }
            if stats.len() > MAX_ENTRIES {
                return Err(io::Error::other("too many files for an install"));
            }
        }
    }
    Ok(stats)
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

/// Read a manifest whole, and its SHA-256.
pub(crate) fn read(root: &Path) -> io::Result<(Manifest, String)> {
    let bytes = read_bounded(root)?;
    let manifest: Manifest = serde_json::from_slice(&bytes)?;
    known_format(&manifest.head.clone(), (manifest, hex::encode(Sha256::digest(&bytes))))
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
