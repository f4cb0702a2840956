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
    let _turn = lock_file("build.lock")?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--locked", "--quiet", "--message-format=json", "--package", package, "--bin", binary])
        .current_dir(workspace_root())
        .stdin(Stdio::null())
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

/// The directory below the target directory where the tests keep what is expensive to make.
///
/// # Errors
/// When it cannot be made.
pub fn cache_dir() -> Outcome<PathBuf> {
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => workspace_root().join(dir),
        None => workspace_root().join("target"),
    };
    let cache = target.join("gatepost-test-state");
    fs::create_dir_all(&cache).doing("the test cache could not be made")?;
    Ok(cache)
}

/// Waits for its turn on a file of the cache; the turn ends when the file is closed.
pub(super) fn lock_file(name: &str) -> Outcome<File> {
    let file = File::create(cache_dir()?.join(name)).doing("a lock file could not be made")?;
    file.lock().doing("a lock file could not be locked")?;
    Ok(file)
}
