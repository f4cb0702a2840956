//! Where installs stand, who may build one, and how one becomes whole: all at once.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::manifest::{self, Head, Manifest};
use super::{InstallError, InstallPhase, InstallRequest, Installed, Reporter, lock, record, verify};

const BUILDING_PREFIX: &str = ".building-";
const LOCK_NAME: &str = ".lock";
/// How long an install waits for another one.
const WAIT_LIMIT_MS: u64 = 40 * 60 * 1_000;
const WAIT_STEP_MS: u64 = 100;
const WAIT_REPORT_MS: u64 = 1_000;
/// A dead installer's tools may write into its directory while it is being removed.
const REMOVE_ATTEMPTS: u32 = 5;

/// What fills an empty directory with an environment, and says how.
pub(crate) type Populate<'f> = dyn Fn(&Building<'_>) -> Result<Populated, InstallError> + 'f;

/// An install in the making.
pub(crate) struct Building<'a> {
    pub(crate) request: &'a InstallRequest<'a>,
    pub(crate) root: &'a Path,
    /// Where it will stand.
    pub(crate) target: &'a Path,
    /// Held; a copy as a tool's standard input keeps it held while that tool lives.
    pub(crate) lock: &'a File,
    pub(crate) reporter: &'a Reporter<'a>,
}

/// How it was filled.
pub(crate) struct Populated {
    pub(crate) installer: &'static str,
    pub(crate) python_version: String,
    pub(crate) interpreter: PathBuf,
}

pub(crate) fn servers_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("servers")
}

/// Where the request's install stands, or will.
pub(crate) fn target(request: &InstallRequest<'_>) -> Result<PathBuf, InstallError> {
    let version = &request.version;
    let plain = version.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+'));
    if !plain || version.is_empty() || version.len() > 64 || version.starts_with('.') {
        return Err(InstallError::Version(version.clone()));
    }
    let digest = lock::install_digest(request.requirements, request.build_requirements);
    Ok(servers_dir(&request.state_dir).join(format!("{version}-{}", &digest[..12])))
}

/// The install in that directory, if it is a whole one and stands under its own name.
pub(crate) fn whole(root: &Path) -> Option<Installed> {
    let name = root.file_name()?.to_str()?;
    if name.starts_with('.') || !fs::symlink_metadata(root).ok()?.is_dir() {
        return None;
    }
    let (head, manifest_sha256) = manifest::read_head(root).ok()?;
    name.strip_prefix(head.version.as_str())?.strip_prefix('-')?;
    Some(Installed {
        version: head.version,
        root: root.to_path_buf(),
        executable: root.join("bin/python"),
        python: head.python_version,
        distributions: head.distributions,
        manifest_sha256,
    })
}

/// Build under the lock, unless it stands already.
pub(crate) fn install(
    request: &InstallRequest<'_>,
    reporter: &Reporter<'_>,
    populate: &Populate<'_>,
) -> Result<Installed, InstallError> {
    lock::parse(request.requirements)?;
    lock::parse(request.build_requirements)?;
    let target = target(request)?;
    let servers = servers_dir(&request.state_dir);
    make_private(&servers).map_err(InstallError::files(format!("cannot make {}", servers.display())))?;
    let lock = acquire(&servers.join(LOCK_NAME), reporter)?;
    remove_leftovers(&servers);
    if let Some(installed) = whole(&target) {
        reporter.say(InstallPhase::Done, "installed already", Some(100));
        return Ok(installed);
    }
    let root = servers.join(format!("{BUILDING_PREFIX}{}", random_name()?));
    let building = Building { request, root: &root, target: &target, lock: &lock, reporter };
    let built = build(&building, populate);
    if built.is_err() {
        remove(&root);
    }
    built?;
    let installed = whole(&target);
    reporter.say(InstallPhase::Done, "installed", Some(100));
    installed.ok_or_else(|| InstallError::NotAsLocked(format!("{} cannot be read", target.display())))
}

fn build(building: &Building<'_>, populate: &Populate<'_>) -> Result<(), InstallError> {
    let (request, root) = (building.request, building.root);
    fs::DirBuilder::new()
        .mode(0o700)
        .create(root)
        .map_err(InstallError::files(format!("cannot make {}", root.display())))?;
    let populated = populate(building)?;
    let files = |what: &str| InstallError::files(format!("{what} {}", root.display()));
    let site_packages = record::site_packages(root).map_err(files("cannot find the packages of"))?;
    let distributions = record::distributions(&site_packages).map_err(files("cannot read the packages of"))?;
    let report = |percent| building.reporter.say(InstallPhase::Manifest, "hashing every file", Some(percent));
    let tree = manifest::scan(root, &every_ten(&report)).map_err(files("cannot read"))?;
    let interpreter = manifest::hash_file(&populated.interpreter).map_err(files("cannot read the interpreter of"))?;
    let head = Head {
        format: Head::FORMAT,
        version: request.version.clone(),
        installer: populated.installer.to_owned(),
        python_version: populated.python_version,
        interpreter: populated.interpreter,
        interpreter_sha256: interpreter.sha256,
        requirements_sha256: lock::digest(request.requirements),
        build_requirements_sha256: lock::digest(request.build_requirements),
        distributions,
    };
    let manifest =
        Manifest { head, files: tree.files.clone(), links: tree.links.clone(), directories: tree.directories.clone() };
    let mut found = std::collections::BTreeSet::new();
    verify::against_distributions(root, &manifest, &tree, &mut found).map_err(files("cannot check"))?;
    if let Some(first) = found.first() {
        return Err(InstallError::NotAsLocked(format!("{} {}", first.kind.as_str(), first.path)));
    }
    if manifest.head.distributions.get("openhands-agent-server") != Some(&request.version) {
        return Err(InstallError::NotAsLocked("openhands-agent-server has another version".to_owned()));
    }
    manifest::write(root, &manifest).map_err(files("cannot write the manifest of"))?;
    settle(root).map_err(files("cannot write back"))?;
    put_into_place(root, building.target).map_err(files("cannot rename"))
}

/// Everything on disk before the name that makes it count.
fn settle(root: &Path) -> io::Result<()> {
    let directory = File::open(root)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&directory)?;
    directory.sync_all()
}

/// A directory of that name that is no whole install is moved out of the way first: it was never one.
fn put_into_place(root: &Path, target: &Path) -> io::Result<()> {
    if fs::symlink_metadata(target).is_ok() {
        let aside = root.with_extension("aside");
        fs::rename(target, &aside)?;
        remove(&aside);
    }
    fs::rename(root, target)?;
    match target.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    if !fs::symlink_metadata(path)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "a symbolic link or a file stands there"));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

fn acquire(path: &Path, reporter: &Reporter<'_>) -> Result<File, InstallError> {
    let open = || fs::OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path);
    let file = open().map_err(InstallError::files(format!("cannot open {}", path.display())))?;
    let began = Instant::now();
    let mut reported: Option<Instant> = None;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => {}
            Err(fs::TryLockError::Error(source)) => {
                return Err(InstallError::Files { what: format!("cannot lock {}", path.display()), source });
            }
        }
        if began.elapsed() > Duration::from_millis(WAIT_LIMIT_MS) {
            return Err(InstallError::Busy { waited_s: began.elapsed().as_secs(), lock: path.to_path_buf() });
        }
        if reported.is_none_or(|last| last.elapsed() > Duration::from_millis(WAIT_REPORT_MS)) {
            reported = Some(Instant::now());
            reporter.say(InstallPhase::Waiting, "another install is running", None);
        }
        std::thread::sleep(Duration::from_millis(WAIT_STEP_MS));
    }
}

/// What dead installers left. The lock is held, so nobody alive is building.
fn remove_leftovers(servers: &Path) {
    let Ok(entries) = fs::read_dir(servers) else { return };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().starts_with(BUILDING_PREFIX) {
            remove(&entry.path());
        }
    }
}

fn remove(path: &Path) {
    for attempt in 1..=REMOVE_ATTEMPTS {
        match fs::remove_dir_all(path) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) if attempt == REMOVE_ATTEMPTS => {
                tracing::warn!(path = %path.display(), %error, "a half-made install could not be removed");
            }
            Err(_) => std::thread::sleep(Duration::from_millis(WAIT_STEP_MS)),
        }
    }
}

fn random_name() -> Result<String, InstallError> {
    host::sign::random_hex(8).map_err(|source| InstallError::Files { what: "no random name".to_owned(), source })
}

/// Hears every percentage, passes on each tenth.
fn every_ten<'a>(report: &'a dyn Fn(u8)) -> impl Fn(u8) + 'a {
    let last = std::cell::Cell::new(0);
    move |percent| {
        if percent >= last.get() + 10 {
            last.set(percent - percent % 10);
            report(percent);
        }
    }
}
