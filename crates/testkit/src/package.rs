//! The Debian package: the binary with the list of what it was built from in it, what the program says of itself in files,
//! and both put together by `cargo deb` as `[package.metadata.deb]` of the program's manifest has it.

use crate::daemon::{build_with, target_dir, workspace_root};
use crate::failure::{Doing, Failure, Outcome};
use crate::verdict::Findings;
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The most that the binary of a release may have, in bytes.
const MAX_BINARY_BYTES: u64 = 15_000_000;
/// Which packaging of a version it is.
const REVISION: &str = "1";
/// The shells whose completions are installed.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// How a package is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// As it is shipped: with no path of this machine in it, and compressed well.
    Release,
    /// With what a build for tests has compiled already, and compressed fast.
    Trial,
}

/// A package that was built.
#[derive(Debug, Clone)]
pub struct Package {
    /// The package's file.
    pub deb: PathBuf,
    /// The binary in it, as it was built.
    pub binary: PathBuf,
    build: Build,
    deb_bytes: u64,
    binary_bytes: u64,
}

impl Findings for Package {
    fn is_sound(&self) -> bool {
        self.build == Build::Trial || self.binary_bytes <= MAX_BINARY_BYTES
    }

    fn json(&self) -> Value {
        json!({
            "deb": self.deb,
            "deb_bytes": self.deb_bytes,
            "binary": self.binary,
            "binary_bytes": self.binary_bytes,
            "binary_bytes_at_most": MAX_BINARY_BYTES,
        })
    }

    fn text(&self) -> String {
        format!(
            "{} ({} bytes)\n{} ({} bytes; at most {MAX_BINARY_BYTES} in a release)\n",
            self.deb.display(),
            self.deb_bytes,
            self.binary.display(),
            self.binary_bytes
        )
    }
}

/// Builds the package into this directory, which is made where it is missing.
///
/// # Errors
/// When `cargo auditable` or `cargo deb` is missing or fails, or a file cannot be written.
pub fn build(build: Build, directory: &Path) -> Outcome<Package> {
    fs::create_dir_all(directory).doing("the directory of the package could not be made")?;
    let binary = binary(build)?;
    let profile = binary.parent().ok_or_else(|| Failure::new("the binary lies in no directory"))?;
    lay_out(&binary, &profile.join("package"))?;
    let deb = put_together(build, directory)?;
    let bytes = |path: &Path| fs::metadata(path).map(|about| about.len()).doing("what was built cannot be read");
    Ok(Package { deb_bytes: bytes(&deb)?, binary_bytes: bytes(&binary)?, deb, binary, build })
}

/// The binary, with the list of the packages it was built from in the section `.dep-v0`.
///
/// # Errors
/// When `cargo auditable` is missing or fails.
pub fn binary(build: Build) -> Outcome<PathBuf> {
    let mut command = cargo();
    command.args(["auditable", "build"]);
    if build == Build::Release {
        let flags = [(workspace_root(), "/usr/src/gatepost"), (cargo_home()?, "/usr/src/cargo")]
            .map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).arg("--release");
    }
    build_with(command, "gatepost", "gatepost")
}

/// Cargo, which leaves what is built for packages in a place of its own and shares with other builds what is compiled.
fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace_root()).stdin(Stdio::null());
    command.env("CARGO_TARGET_DIR", target_dir().join("packages")).env("CARGO_BUILD_BUILD_DIR", target_dir());
    command
}

fn cargo_home() -> Outcome<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    home.ok_or_else(|| Failure::new("neither CARGO_HOME nor HOME is set"))
}

/// When the source was last changed, in seconds since 1970.
fn time_of_source() -> Outcome<String> {
    if let Some(told) = env::var_os("SOURCE_DATE_EPOCH") {
        return told.into_string().map_err(|_| Failure::new("SOURCE_DATE_EPOCH is no text"));
    }
    let mut git = Command::new("git");
    git.current_dir(workspace_root()).args(["log", "-1", "--format=%ct"]);
    let said = said_by(&mut git).map_err(|why| Failure::new(format!("{why}: set SOURCE_DATE_EPOCH")))?;
    Ok(said.trim().to_owned())
}

/// What Debian's own tools read: which version this is, whose and of when. What is new in it stands in the other changelog.
fn debian_changelog() -> Outcome<String> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--no-deps", "--format-version", "1", "--locked"]);
    let metadata: Value = serde_json::from_str(&said_by(&mut metadata)?).doing("what cargo knows could not be read")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let program = packages.into_iter().find(|package| package["name"] == "gatepost");
    let program = program.ok_or_else(|| Failure::new("cargo does not know the program"))?;
    let (version, maintainer) = (&program["version"], &program["metadata"]["deb"]["maintainer"]);
    let (Some(version), Some(maintainer)) = (version.as_str(), maintainer.as_str()) else {
        return Err(Failure::new("the manifest names no version or no maintainer"));
    };
    let at = format!("--date=@{}", time_of_source()?);
    let at = said_by(Command::new("date").args(["--utc", "--rfc-email", &at]).env("LC_ALL", "C"))?;
    Ok(format!(
        "gatepost ({version}-{REVISION}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {maintainer}  {at}"
    ))
}

/// What the program says of itself, in files of this directory, which holds nothing else afterwards.
fn lay_out(binary: &Path, directory: &Path) -> Outcome<()> {
    if directory.exists() {
        fs::remove_dir_all(directory).doing("files of an earlier build could not be removed")?;
    }
    let units = directory.join("units");
    fs::create_dir_all(&units).doing("a directory could not be made")?;
    let program = |words: &[&str]| {
        let mut command = Command::new(binary);
        // Nothing of who builds comes into it.
        said_by(command.args(words).env_clear().env("HOME", "/nonexistent").stdin(Stdio::null()))
    };
    let write = |path: PathBuf, text: &str| fs::write(path, text).doing("a file of the package could not be written");
    for shell in SHELLS {
        write(directory.join(format!("gatepost.{shell}")), &program(&["completions", shell])?)?;
    }
    let man = directory.join("man");
    program(&["man", "--dir", &man.to_string_lossy()])?;
    let changelog = directory.join("changelog.Debian");
    write(changelog.clone(), &debian_changelog()?)?;
    // `cargo deb` leaves what lies in a directory of cargo's as it is.
    said_by(Command::new("gzip").args(["--no-name", "--best", "--recursive"]).args([&man, &changelog]))?;
    let printed = program(&["--json", "service", "print", "--package"])?;
    let printed: Value = serde_json::from_str(&printed).doing("the units could not be read")?;
    for unit in printed["units"].as_array().into_iter().flatten() {
        let (Some(name), Some(text)) = (unit["name"].as_str(), unit["text"].as_str()) else {
            return Err(Failure::new(format!("a unit without a name or text: {unit}")));
        };
        write(units.join(name), text)?;
    }
    Ok(())
}

/// The package's file, of what was built and laid out.
fn put_together(build: Build, directory: &Path) -> Outcome<PathBuf> {
    let mut command = cargo();
    command.args(["deb", "--package", "gatepost", "--no-build", "--locked", "--no-dbgsym"]);
    command.args(["--deb-revision", REVISION, "--output"]).arg(directory);
    if build == Build::Release {
        command.env("SOURCE_DATE_EPOCH", time_of_source()?);
    }
    match build {
        Build::Release => command.args(["--profile", "release"]),
        // It warns that this is no build to ship, which is so.
        Build::Trial => command.args(["--profile", "dev", "--strip", "--fast", "--quiet"]),
    };
    let said = said_by(&mut command)?;
    // It says where the package is, last.
    said.lines().last().map(PathBuf::from).ok_or_else(|| Failure::new("cargo deb named no package"))
}

/// The standard output of a command, which must succeed.
fn said_by(command: &mut Command) -> Outcome<String> {
    let name = format!("{} {:?}", command.get_program().display(), command.get_args().collect::<Vec<_>>());
    let output = command.stderr(Stdio::inherit()).output().doing(&format!("{name} could not be started"))?;
    if !output.status.success() {
        return Err(Failure::new(format!("{name}: {}", output.status)));
    }
    String::from_utf8(output.stdout).doing(&format!("{name} printed no text"))
}
