//! An Agent Server that the owner installed: what it is, read from its environment and never by running it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::install::{hash_file, record};

/// The distributions whose versions the contract fixes.
pub const DISTRIBUTIONS: [&str; 4] =
    ["openhands-agent-server", "openhands-sdk", "openhands-tools", "openhands-workspace"];
/// Where a script names its interpreter.
const SCRIPT_HEAD_BYTES: u64 = 4 * 1024;

/// An own install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnInstall {
    /// The executable to start.
    pub executable: PathBuf,
    /// SHA-256 of it, lower-case hexadecimal.
    pub executable_sha256: String,
    /// The environment it belongs to.
    pub root: PathBuf,
    /// Versions of the four distributions, by name; one that is not installed is left out.
    pub distributions: BTreeMap<String, String>,
}

/// Why a configured executable cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// It is not there or cannot be read.
    #[error("{path} cannot be read: {source}; name the bin/agent-server of an environment in [agent_server]")]
    Unreadable {
        /// What was looked at.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no executable file.
    #[error("{0} is not an executable file; name the bin/agent-server of an environment in [agent_server]")]
    NotExecutable(PathBuf),
    /// Somebody else could replace it.
    #[error("{0} may be changed by other users; make it and its directory writable by you alone")]
    WritableByOthers(PathBuf),
    /// No environment was found around it.
    #[error("{0} is not in the bin directory of a Python environment that holds openhands-agent-server")]
    NoEnvironment(PathBuf),
    /// It would run with another environment's interpreter, so what was read would not be what runs.
    #[error("{0} does not run with the interpreter of its own environment; install openhands-agent-server there again")]
    ForeignInterpreter(PathBuf),
}

/// Read what an executable is from the `dist-info` of its environment, without running anything.
///
/// # Errors
/// Anything that leaves it unclear what would run.
pub fn inspect_executable(path: &Path) -> Result<OwnInstall, OwnError> {
    let unreadable = |source| OwnError::Unreadable { path: path.to_path_buf(), source };
    let executable = path.canonicalize().map_err(unreadable)?;
    if !crate::install::is_executable(&executable) {
        return Err(OwnError::NotExecutable(executable));
    }
    let bin = executable.parent().ok_or_else(|| OwnError::NoEnvironment(executable.clone()))?;
    let root = bin.parent().ok_or_else(|| OwnError::NoEnvironment(executable.clone()))?;
    for file in [executable.as_path(), bin] {
        let data = fs::metadata(file).map_err(unreadable)?;
        let trusted_owner = data.uid() == host::hygiene::effective_user() || data.uid() == host::hygiene::root_uid();
        if !trusted_owner || data.mode() & 0o022 != 0 {
            return Err(OwnError::WritableByOthers(file.to_path_buf()));
        }
    }
    let no_environment = |_| OwnError::NoEnvironment(executable.clone());
    let site_packages = record::site_packages(root).map_err(no_environment)?;
    let mut distributions = record::distributions(&site_packages).map_err(unreadable)?;
    distributions.retain(|name, _| DISTRIBUTIONS.contains(&name.as_str()));
    if !distributions.contains_key(DISTRIBUTIONS[0]) {
        return Err(OwnError::NoEnvironment(executable));
    }
    if !names_interpreter_in(&executable, path, bin).map_err(unreadable)? {
        return Err(OwnError::ForeignInterpreter(executable));
    }
    let executable_sha256 = hash_file(&executable).map_err(unreadable)?.sha256;
    Ok(OwnInstall { root: root.to_path_buf(), executable_sha256, distributions, executable })
}

/// The script's first lines name `<bin>/python…`: directly, or through `/bin/sh` where the path is long.
fn names_interpreter_in(executable: &Path, as_given: &Path, bin: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(executable)?.take(SCRIPT_HEAD_BYTES).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let named = match first.strip_prefix("#!") {
        Some("/bin/sh") => lines.next().and_then(|line| line.strip_prefix("'''exec' ")).unwrap_or_default(),
        Some(interpreter) => interpreter,
        None => return Ok(false),
    };
    let named = named.trim().trim_start_matches('"');
    let bins = [Some(bin), as_given.parent()];
    Ok(bins.into_iter().flatten().any(|bin| {
        let start = bin.join("python");
        named.strip_prefix(&*start.to_string_lossy()).is_some_and(|rest| !rest.contains('/') || rest.starts_with('"'))
    }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn environment(versions: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("dir");
        let root = dir.path().canonicalize().expect("root");
        let packages = root.join("lib/python3.12/site-packages");
        for (name, version) in versions {
            let info = packages.join(format!("{}-{version}.dist-info", name.replace('-', "_")));
            fs::create_dir_all(&info).expect("dist-info");
            fs::write(info.join("METADATA"), format!("Name: {name}\nVersion: {version}\n\nbody")).expect("metadata");
        }
        fs::create_dir_all(root.join("bin")).expect("bin");
        let script = root.join("bin/agent-server");
        write_script(&script, &format!("#!{}/bin/python3\nraise SystemExit('must not run')\n", root.display()));
        fs::set_permissions(root.join("bin"), fs::Permissions::from_mode(0o755)).expect("mode");
        (dir, script)
    }

    fn write_script(path: &Path, text: &str) {
        fs::write(path, text).expect("script");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("mode");
    }

    #[test]
    fn versions_are_read_and_other_distributions_left_out() {
        let (_dir, script) =
            environment(&[("openhands-agent-server", "1.2.3"), ("openhands-sdk", "1.2"), ("six", "1")]);
        let own = inspect_executable(&script).expect("own");
        assert_eq!(own.distributions.len(), 2);
        assert_eq!(own.distributions["openhands-agent-server"], "1.2.3");
        assert_eq!(own.executable_sha256.len(), 64);
    }

    #[test]
    fn a_link_elsewhere_leads_to_the_real_environment() {
        let (dir, script) = environment(&[("openhands-agent-server", "1.2.3")]);
        let link = dir.path().join("agent-server");
        std::os::unix::fs::symlink(&script, &link).expect("link");
        assert_eq!(inspect_executable(&link).expect("own").executable, script);
    }

    #[test]
    fn a_script_of_another_interpreter_is_refused() {
        let (_dir, script) = environment(&[("openhands-agent-server", "1.2.3")]);
        for head in ["#!/usr/bin/python3\n", "#!/usr/bin/env python3\n", "\u{7f}ELF", "#!/bin/sh\nexec evil\n"] {
            write_script(&script, head);
            assert!(matches!(inspect_executable(&script), Err(OwnError::ForeignInterpreter(_))), "{head}");
        }
        let long = format!(
            "#!/bin/sh\n'''exec' \"{}/python\" \"$0\" \"$@\"\n' '''\n",
            script.parent().expect("bin").display()
        );
        write_script(&script, &long);
        assert!(inspect_executable(&script).is_ok());
    }

    #[test]
    fn no_environment_no_bit_and_loose_modes_are_refused() {
        let (_dir, script) = environment(&[("openhands-sdk", "1.2.3")]);
        assert!(matches!(inspect_executable(&script), Err(OwnError::NoEnvironment(_))));
        let (_dir, script) = environment(&[("openhands-agent-server", "1.2.3")]);
        fs::set_permissions(&script, fs::Permissions::from_mode(0o777)).expect("mode");
        assert!(matches!(inspect_executable(&script), Err(OwnError::WritableByOthers(_))));
        fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).expect("mode");
        assert!(matches!(inspect_executable(&script), Err(OwnError::NotExecutable(_))));
        assert!(matches!(inspect_executable(Path::new("/nonexistent")), Err(OwnError::Unreadable { .. })));
    }
}
