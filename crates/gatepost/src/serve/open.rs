//! Everything that must be there before the daemon answers; the records are opened after it. Nothing that exists is ever
//! overwritten.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_types::ExitCode;
use cli::{Failure, ServeArgs};
use host::lock::{FileLock, LockError};
use host::secure_fs::{self, SecureFsError};
use host::sign::{SignError, SigningKey};
use host::socket::SocketError;
use host::{Secret, Spawner};
use process::launch::WrapperProgram;
use rules::passage::Watch;
use rules::refusal::RefusalCode;
use session::{Dependencies, KnownSecrets};

use super::door::Door;
use super::log::Logging;
use super::system;
use crate::ContractInForce;
use crate::places::{self, Places};
use crate::server::reviewed;

/// Version of gatepost.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Random bytes of the key of what servers store, and of the owner's token.
const KEY_BYTES: usize = 32;
/// Keeps two daemons off one state, whatever sockets they have.
const LOCK_NAME: &str = "daemon.lock";
/// Where programs are when the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What the daemon runs with.
pub(super) struct Opened {
    pub(super) dependencies: Dependencies,
    pub(super) door: Door,
    pub(super) retention_days: u64,
}

/// Opens it all. The lock is to be held as long as anything of the state is used.
///
/// # Errors
/// The first thing that is not as it must be, with what mends it.
pub(super) fn open(
    places: &Places,
    args: &ServeArgs,
    in_force: ContractInForce,
    watch: &Watch,
    handed_over: Option<Door>,
    known_secrets: Arc<KnownSecrets>,
    logging: &Logging,
) -> Result<(Opened, FileLock), Failure> {
    let state_dir = &places.paths.state_dir;
    secure_fs::ensure_private_dir(state_dir).map_err(|error| unusable(&error))?;
    let lock = lock(state_dir)?;
    let door = match handed_over {
        Some(door) => door,
        None => Door::bind(&places.paths.socket).map_err(|error| no_door(&error))?,
    };
    let mut settings = places.settings()?;
    logging.configure(&settings.log)?;
    // A socket that was handed over stands elsewhere than configured.
    settings.paths.socket = Some(door.path()).filter(|path| path.is_absolute()).unwrap_or(settings.paths.socket);
    let contract = in_force(reviewed(&settings.agent_server.version)?);
    let signing_key =
        SigningKey::load_or_create(&settings.paths.signing_key).map(Arc::new).map_err(|error| match error {
            SignError::File(error) => unusable(&error),
            SignError::NotAKey { .. } | SignError::NoRandomness => {
                Failure::new(ExitCode::Failed, "state_unusable", error.to_string())
            }
        })?;
    let retention_days = settings.events.retention_days;
    let model_key = settings.read_model_key().map_err(|error| places::unusable(&error))?.map(Arc::new);
    let dependencies = Dependencies {
        install_dir: install_dir(args, state_dir)?,
        contract,
        spawner: Spawner::start().map_err(|error| system("no thread to start servers from", &error))?,
        secret_key: secret(&settings.paths.secret_key)?,
        owner_token: secret(&settings.paths.owner_token)?,
        model_key,
        signing_key,
        path: search_path(std::env::var_os("PATH")),
        wrapper: wrapper()?,
        // This very program, whatever stands in its file's place by now.
        guard: cfg!(target_os = "linux").then(|| PathBuf::from("/proc/self/exe")),
        home: places.sources.home.clone(),
        version: VERSION,
        watch: watch.clone(),
        settings,
        known_secrets,
    };
    dependencies.tell_secrets();
    Ok((Opened { dependencies, door, retention_days }, lock))
}

/// Where the lock of a state directory is.
pub(crate) fn lock_path(state_dir: &Path) -> PathBuf {
    state_dir.join(LOCK_NAME)
}

/// Keeps every other daemon off this state directory.
pub(crate) fn lock(state_dir: &Path) -> Result<FileLock, Failure> {
    FileLock::try_acquire(&lock_path(state_dir)).map_err(|error| match error {
        LockError::Held { holder, .. } => {
            let by = holder.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            already_running(format!("a gatepost daemon{by} uses the state directory {}", state_dir.display()))
        }
        LockError::File(error) => unusable(&error),
    })
}

pub(super) fn no_door(error: &SocketError) -> Failure {
    match error {
        SocketError::AlreadyRunning { .. } => already_running(error.to_string()),
        SocketError::Directory(directory) => no_room(directory.io_kind(), "socket_unusable", error.to_string()),
        SocketError::Io { source, .. } => no_room(Some(source.kind()), "socket_unusable", error.to_string()),
        SocketError::NotASocket { .. } | SocketError::PathTooLong { .. } | SocketError::NotFit(_) => {
            Failure::new(ExitCode::Failed, "socket_unusable", error.to_string())
        }
    }
}

fn already_running(detail: String) -> Failure {
    Failure::new(ExitCode::Conflict, "already_running", detail)
        .hint("use the running one, stop it first, or give this one another --state-dir")
}

fn unusable(error: &SecureFsError) -> Failure {
    no_room(error.io_kind(), "state_unusable", error.to_string())
}

/// A full or read-only file system has a code of its own, whatever could not be written to it.
fn no_room(kind: Option<ErrorKind>, otherwise: &str, detail: String) -> Failure {
    match kind {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            Failure::new(ExitCode::Blocked, RefusalCode::DiskFull.as_str(), detail)
        }
        Some(ErrorKind::ReadOnlyFilesystem) => {
            Failure::new(ExitCode::Blocked, RefusalCode::RecordsReadOnly.as_str(), detail)
        }
        _ => Failure::new(ExitCode::Failed, otherwise, detail),
    }
}

fn secret(path: &Path) -> Result<Arc<Secret>, Failure> {
    secure_fs::load_or_create_secret(path, KEY_BYTES).map(Arc::new).map_err(|error| unusable(&error))
}

fn install_dir(args: &ServeArgs, state_dir: &Path) -> Result<PathBuf, Failure> {
    args.install_dir.as_deref().map_or_else(|| Ok(state_dir.to_path_buf()), places::absolute)
}

/// This very program, where the kernel can confine what it starts.
fn wrapper() -> Result<Option<WrapperProgram>, Failure> {
    let own = WrapperProgram::own().map_err(|error| system("this program's own file cannot be found", &error))?;
    Ok(host::kernel::can_confine().then_some(own))
}

/// PATH of the servers and of the agent's commands: absolute directories only, for what the others mean depends on where a
/// command runs.
fn search_path(path: Option<OsString>) -> OsString {
    let path = path.unwrap_or_default();
    let absolute: Vec<PathBuf> = std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect();
    let joined = std::env::join_paths(absolute).unwrap_or_default();
    if joined.is_empty() { OsStr::new(DEFAULT_PATH).to_owned() } else { joined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_directories_are_not_searched() {
        assert_eq!(search_path(Some("/a:.::/b:c".into())), "/a:/b");
        for nothing in [None, Some("".into()), Some("relative:.".into())] {
            assert_eq!(search_path(nothing), DEFAULT_PATH);
        }
    }

    #[test]
    fn the_second_daemon_on_a_state_is_told_who_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let _first = lock(directory.path()).unwrap();
        let failure = lock(directory.path()).unwrap_err();
        assert_eq!((failure.exit, failure.code.as_str()), (ExitCode::Conflict, "already_running"));
        assert!(failure.detail.contains(&std::process::id().to_string()), "{}", failure.detail);
    }

    #[test]
    fn a_secret_is_made_once_and_a_damaged_one_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("owner.token");
        let made = secret(&path).unwrap();
        assert_eq!(made.len_bytes(), 2 * KEY_BYTES);
        assert!(secret(&path).unwrap().eq_constant_time(made.expose()));
        std::fs::write(&path, "short").unwrap();
        let failure = secret(&path).unwrap_err();
        assert_eq!(failure.code, "state_unusable");
        assert_eq!(std::fs::read(&path).unwrap(), b"short");
    }
}
