//! Finding the binaries under test, building each once.
//!
//! `cargo test --workspace` builds no other package's binaries, so the tests ask for them.

use crate::failure::{Doing, Failure, Outcome};
use serde_json::Value;
use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The workspace's root directory.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    crates.ancestors().nth(2).unwrap_or(crates).to_owned()
}

/// The `gatepost` binary: the one that `GATEPOST_BIN` names, else the workspace's, built when needed.
///
/// # Errors
/// When the build fails.
pub fn gatepost_binary() -> Outcome<PathBuf> {
    match env::var_os("GATEPOST_BIN") {
        Some(path) => Ok(PathBuf::from(path)),
        None => built_binary("gatepost", "gatepost"),
    }
}

/// A binary of this workspace, built at most once per process and never by two processes at a time.
///
/// # Errors
/// When the build fails; the build's own words are on standard error.
pub fn built_binary(package: &str, binary: &str) -> Outcome<PathBuf> {
    static BUILT: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let built = built.get_or_insert_with(HashMap::new);
    if let Some(path) = built.get(binary) {
        return Ok(path.clone());
    }
    let path = build(package, binary)?;
    built.insert(binary.to_owned(), path.clone());
    Ok(path)
}

fn build(package: &str, binary: &str) -> Outcome<PathBuf> {
    // As this tool was built itself, so that what is measured is what ships.
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--profile", profile]).current_dir(workspace_root()).stdin(Stdio::null());
    build_with(cargo, package, binary)
}

/// The same with this command of cargo's, whose further arguments are put behind.
///
/// # Errors
/// When the build fails; the build's own words are on standard error.
pub(crate) fn build_with(mut cargo: Command, package: &str, binary: &str) -> Outcome<PathBuf> {
    let _turn = lock_file("build.lock")?;
    // What cargo tells a test of its package: build scripts that look at it would run again, and all that depends on them.
    for (name, _) in env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    let output = cargo
        .args([
            "--locked",
            "--quiet",
            "--message-format=json-render-diagnostics",
            "--package",
            package,
            "--bin",
            binary,
        ])
        .stderr(Stdio::inherit())
        .output()
        .doing("cargo could not be started")?;
    if !output.status.success() {
        return Err(Failure::new(format!("cargo build of {binary} failed: {}", output.status)));
    }
    let artifacts = String::from_utf8_lossy(&output.stdout);
    let executable =
        artifacts.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
            let named = message["target"]["name"].as_str() == Some(binary);
            message["executable"].as_str().filter(|_| named).map(PathBuf::from)
        });
    executable.ok_or_else(|| Failure::new(format!("cargo named no executable for {binary}")))
}

/// The directory that cargo builds into.
#[must_use]
pub fn target_dir() -> PathBuf {
    workspace_root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The directory below the target directory where the tests keep what is expensive to make.
///
/// # Errors
/// When it cannot be made.
pub fn cache_dir() -> Outcome<PathBuf> {
    let cache = target_dir().join("gatepost-test-state");
    fs::create_dir_all(&cache).doing("the test cache could not be made")?;
    Ok(cache)
}

/// Waits for its turn on a file of the cache; the turn ends when the file is closed.
///
/// # Errors
/// When the file cannot be made or locked.
pub fn lock_file(name: &str) -> Outcome<File> {
    let file = File::create(cache_dir()?.join(name)).doing("a lock file could not be made")?;
    file.lock().doing("a lock file could not be locked")?;
    Ok(file)
}
