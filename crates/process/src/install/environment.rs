//! What the installation tools see of our own environment: an allowlist, never the rest.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "NETRC",
    "PYENV_ROOT",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

/// Settings of the tools: where the packages come from, how to get there.
const PREFIXES: &[&str] = &["PIP_", "UV_"];

/// Settings of the tools that would move the install elsewhere or change what is installed.
const REFUSED: &[&str] = &[
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_PYTHON",
    "PIP_DRY_RUN",
    "PIP_REQUIREMENT",
    "PIP_CONSTRAINT",
    "PIP_EDITABLE",
    "PIP_COMPILE",
    "PIP_NO_COMPILE",
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
    "UV_BREAK_SYSTEM_PACKAGES",
    "UV_CONSTRAINT",
    "UV_BUILD_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_EXCLUDE_NEWER",
    "UV_COMPILE_BYTECODE",
    "UV_LINK_MODE",
    "UV_PROJECT_ENVIRONMENT",
    "UV_VENV_CLEAR",
    "UV_VENV_SEED",
    "UV_NO_VERIFY_HASHES",
    "UV_REQUIRE_HASHES",
    "UV_NO_BUILD",
    "UV_NO_BINARY",
];

fn allowed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    !REFUSED.contains(&name) && (NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

/// The environment of every installation tool.
#[derive(Clone)]
pub(crate) struct Environment {
    variables: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Take what is allowed out of `variables`.
    pub(crate) fn from_variables(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut variables: Vec<_> = variables.into_iter().filter(|(name, _)| allowed(name)).collect();
        variables.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        variables.push(("PIP_DISABLE_PIP_VERSION_CHECK".into(), "1".into()));
        variables.push(("PIP_NO_INPUT".into(), "1".into()));
        Self { variables }
    }

    /// Take it out of this process's environment.
    pub(crate) fn of_this_process() -> Self {
        Self::from_variables(std::env::vars_os())
    }

    pub(crate) fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    fn get(&self, wanted: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_os_str())
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        self.get("HOME").filter(|home| !home.is_empty()).map(Path::new)
    }

    /// Every executable file of that name on PATH, in PATH's order; relative PATH entries are passed over.
    pub(crate) fn on_path(&self, name: &str) -> Vec<PathBuf> {
        let path = self.get("PATH").unwrap_or_else(|| OsStr::from_bytes(b"/usr/local/bin:/usr/bin:/bin"));
        std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name))
            .filter(|file| is_executable(file))
            .collect()
    }
}

/// A file that may be run.
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Root's, as its directory is, and neither is to be written by another: whoever runs it can rely on what it is.
pub(crate) fn is_roots(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let own = |file: &Path| {
        std::fs::metadata(file).is_ok_and(|data| data.uid() == host::hygiene::root_uid() && data.mode() & 0o022 == 0)
    };
    own(file) && file.parent().is_some_and(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_redirections_do_not_reach_the_tools() {
        let given = [
            ("PATH", "/usr/bin"),
            ("PIP_CERT", "/c"),
            ("https_proxy", "http://proxy"),
            ("PIP_TARGET", "/elsewhere"),
            ("UV_NO_VERIFY_HASHES", "1"),
            ("ANTHROPIC_API_KEY", "k"),
            ("PYTHONPATH", "/evil"),
            ("VIRTUAL_ENV", "/other"),
        ];
        let environment =
            Environment::from_variables(given.map(|(name, value)| (OsString::from(name), OsString::from(value))));
        let names: Vec<_> = environment.variables().iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(&names[..3], ["PATH", "PIP_CERT", "https_proxy"]);
        assert!(!names.iter().any(|name| ["PIP_TARGET", "UV_NO_VERIFY_HASHES", "PYTHONPATH"].contains(name)));
    }

    #[test]
    fn relative_path_entries_are_not_searched() {
        let environment = Environment::from_variables([("PATH".into(), ".:bin:/bin".into())]);
        assert_eq!(environment.on_path("sh"), [PathBuf::from("/bin/sh")]);
    }
}
