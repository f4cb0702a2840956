//! The Agent Server that the tests share, installed by the product's own command.

use super::build::{cache_dir, gatepost_binary, lock_file};
use super::python::copy_base_python;
use super::users::{as_user, give_tree, make_private_dir};
use crate::failure::{Doing, Failure, Outcome};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The reviewed version that the tests use.
pub const SERVER_VERSION: &str = "1.40.0";
/// The user that stands for an ordinary one when the tests run as root: a number that nobody has.
pub const UNPRIVILEGED_USER: u32 = 23_517;

/// The state directory whose managed install all tests share; installed first when it is missing.
///
/// It stands below the workspace's target directory. Progress goes to standard error.
///
/// # Errors
/// When the installation fails.
pub fn shared_install() -> Outcome<PathBuf> {
    static MADE: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(state) = made.as_ref() {
        return Ok(state.clone());
    }
    let _turn = lock_file("install.lock")?;
    let state = cache_dir()?.join("shared");
    make_private_dir(&state)?;
    // Asked for even when one stands: the command finds it in no time, or sees that the locked requirements changed.
    let mut command = Command::new(gatepost_binary()?);
    command.args(["server", "install", "--version", SERVER_VERSION, "--state-dir"]).arg(&state);
    install(command, &state)?;
    *made = Some(state.clone());
    Ok(state)
}

/// A managed install that an ordinary user made, in directories that this user can read.
#[derive(Debug, Clone)]
pub struct UnprivilegedInstall {
    /// The user.
    pub user: u32,
    /// The state directory that holds the managed server.
    pub state: PathBuf,
    /// A directory with `python3.12`, for the user's PATH.
    pub python_bin: PathBuf,
}

/// The managed install of [`UNPRIVILEGED_USER`], with a copy of the base Python that this user can read.
///
/// Only root can make it; the first call takes minutes, later ones find it.
///
/// # Errors
/// When this is not root, or a copy or the installation fails.
pub fn unprivileged_install() -> Outcome<UnprivilegedInstall> {
    if !rustix::process::getuid().is_root() {
        return Err(Failure::new("only root can become another user"));
    }
    let _turn = lock_file("unprivileged.lock")?;
    let root = world_reachable(&cache_dir()?.join("unprivileged"))?;
    let user = UNPRIVILEGED_USER;
    let python_bin = copy_base_python(&root.join("python"))?;
    let state = root.join("state");
    if !is_installed(&state) {
        make_private_dir(&state)?;
        make_private_dir(&root.join("home"))?;
        let binary = root.join("gatepost");
        fs::copy(gatepost_binary()?, &binary).doing("the binary could not be copied")?;
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).doing("a mode could not be set")?;
        give_tree(&state, user)?;
        give_tree(&root.join("home"), user)?;
        let mut command = as_user(user, &binary);
        command.args(["server", "install", "--version", SERVER_VERSION, "--state-dir"]).arg(&state);
        command.env_clear().envs(inherited_network_settings());
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", python_bin.display()));
        command.env("HOME", root.join("home")).env("LANG", "C.UTF-8").current_dir(&root);
        install(command, &state)?;
    }
    Ok(UnprivilegedInstall { user, state, python_bin })
}

/// What a package installer needs to know of the network: certificates, proxies, indexes. Nothing else is passed on.
fn inherited_network_settings() -> Vec<(String, String)> {
    let wanted = ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTPS_PROXY", "https_proxy", "NO_PROXY"];
    let pass = |name: &String| name.starts_with("PIP_") || name.starts_with("UV_") || wanted.contains(&name.as_str());
    std::env::vars().filter(|(name, _)| pass(name)).collect()
}

fn install(mut command: Command, state: &Path) -> Outcome<()> {
    // The daemon's progress is the test run's progress, so it goes to standard error as it is.
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).status();
    let status = status.doing("the installation could not be started")?;
    if !status.success() {
        return Err(Failure::new(format!("gatepost server install ended with {status}")));
    }
    if is_installed(state) {
        return Ok(());
    }
    Err(Failure::new(format!("gatepost server install succeeded, but {} holds no server", state.display())))
}

/// A managed install is `servers/<version>-<digest>`; one in the making has another name.
fn is_installed(state: &Path) -> bool {
    let Ok(entries) = fs::read_dir(state.join("servers")) else { return false };
    let prefix = format!("{SERVER_VERSION}-");
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
}

/// Makes the managed servers of one state directory those of another, by a link to the directory that holds them.
pub(super) fn place_managed(from: &Path, into: &Path) -> Outcome<()> {
    symlink(from.join("servers"), into.join("servers")).doing("the managed server could not be placed")
}

/// The directory when every user can enter it, else one of the same purpose below the temporary directory.
fn world_reachable(wanted: &Path) -> Outcome<PathBuf> {
    let enterable = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0);
    let reachable = wanted.ancestors().skip(1).all(enterable);
    let path = if reachable { wanted.to_owned() } else { std::env::temp_dir().join("gatepost-test-unprivileged") };
    fs::create_dir_all(&path).doing("a directory could not be made")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).doing("a mode could not be set")?;
    Ok(path)
}
