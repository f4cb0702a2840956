//! The home of a developer: git's settings and a Rust toolchain in their usual places.

use super::build::{cache_dir, lock_file, workspace_root};
use super::python::copy_tree;
use crate::failure::{Doing, Failure, Outcome};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const GIT_SETTINGS: &str =
    "[user]\n\tname = Developer\n\temail = developer@example.org\n[init]\n\tdefaultBranch = main\n";
/// The toolchain's name; rustup reads which one is meant from its settings.
const TOOLCHAIN: &str = "tests";
const RUSTUP_SETTINGS: &str = "version = \"12\"\ndefault_toolchain = \"tests\"\nprofile = \"minimal\"\n\n[overrides]\n";
/// What rustup stands in for.
const PROXIES: [&str; 3] = ["cargo", "rustc", "rustdoc"];

/// Where such a home has the programs of its toolchains.
pub(super) fn programs(home: &Path) -> PathBuf {
    home.join(".cargo/bin")
}

/// Furnishes a home. Where this machine has no rustup, it gets no Rust either.
pub(super) fn furnish(home: &Path) -> Outcome<()> {
    fs::write(home.join(".gitconfig"), GIT_SETTINGS).doing("git's settings could not be written")?;
    let Some(rustup) = program_on_path("rustup") else { return Ok(()) };
    let kept = kept_toolchain()?;
    let toolchains = home.join(".rustup/toolchains");
    fs::create_dir_all(&toolchains).doing("no directory for a toolchain")?;
    link_tree(&kept, &toolchains.join(TOOLCHAIN))?;
    fs::write(home.join(".rustup/settings.toml"), RUSTUP_SETTINGS).doing("rustup's settings could not be written")?;
    let bin = programs(home);
    fs::create_dir_all(&bin).doing("no directory for programs")?;
    copy_tree(&rustup.canonicalize().doing("rustup is gone")?, &bin.join("rustup"))?;
    for proxy in PROXIES {
        symlink("rustup", bin.join(proxy)).doing("a program could not be placed")?;
    }
    Ok(())
}

fn program_on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// A copy of what the workspace's toolchain needs to build for this machine, made once. Not the original: the homes that
/// link to it change the owner of its files.
fn kept_toolchain() -> Outcome<PathBuf> {
    let _turn = lock_file("toolchain.lock")?;
    let sysroot = said("rustc", &["--print", "sysroot"])?;
    let host = said("rustc", &["--print", "host-tuple"])?;
    let from = PathBuf::from(&sysroot);
    let name = from.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let kept = cache_dir()?.join(format!("toolchain-{name}"));
    if kept.exists() {
        return Ok(kept);
    }
    let part = kept.with_extension("part");
    if part.exists() {
        fs::remove_dir_all(&part).doing("an unfinished copy could not be removed")?;
    }
    let rustlib = Path::new("lib/rustlib").join(host);
    for directory in [Path::new("bin"), rustlib.as_path()] {
        fs::create_dir_all(part.join(directory)).doing("no directory for a toolchain")?;
    }
    for proxy in PROXIES {
        copy_tree(&from.join("bin").join(proxy), &part.join("bin").join(proxy))?;
    }
    for entry in fs::read_dir(from.join("lib")).doing("the toolchain could not be read")? {
        let entry = entry.doing("the toolchain could not be read")?;
        if !entry.path().is_dir() {
            copy_tree(&entry.path(), &part.join("lib").join(entry.file_name()))?;
        }
    }
    copy_tree(&from.join(&rustlib), &part.join(&rustlib))?;
    fs::rename(&part, &kept).doing("the toolchain could not be put in place")?;
    Ok(kept)
}

fn said(program: &str, arguments: &[&str]) -> Outcome<String> {
    let output = Command::new(program).args(arguments).current_dir(workspace_root()).output();
    let output = output.doing("the toolchain could not be asked")?;
    if !output.status.success() {
        return Err(Failure::new(format!("{program} {arguments:?} ended with {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The same tree by further names of its files, as it is large; copied where the file system differs.
fn link_tree(from: &Path, to: &Path) -> Outcome<()> {
    fs::create_dir_all(to).doing("a directory could not be made")?;
    for entry in fs::read_dir(from).doing("a directory could not be read")? {
        let from = entry.doing("a directory could not be read")?.path();
        let to = to.join(from.file_name().unwrap_or_default());
        if from.is_dir() && !from.is_symlink() {
            link_tree(&from, &to)?;
        } else if fs::hard_link(&from, &to).is_err() {
            copy_tree(&from, &to)?;
        }
    }
    Ok(())
}
