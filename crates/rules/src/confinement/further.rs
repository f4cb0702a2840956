//! Which further directories an owner may grant: none that holds keys or what the owner's other programs run by themselves.

use std::path::{Path, PathBuf};

/// How a further directory is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Further {
    /// Read.
    Read,
    /// Read and written.
    Write,
}

/// Directories that stay closed, whatever is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The owner's home.
    pub home: PathBuf,
    /// Those of gatepost: configuration, state, runtime.
    pub own: Vec<PathBuf>,
}

/// Below the home: keys, credentials, and records of other programs.
const PRIVATE: &[&str] = &[
    ".aws",
    ".azure",
    ".docker",
    ".gnupg",
    ".kube",
    ".mozilla",
    ".password-store",
    ".ssh",
    ".config/chromium",
    ".config/containers",
    ".config/gcloud",
    ".config/gh",
    ".config/google-chrome",
    ".config/op",
    ".config/sops",
    ".local/share/keyrings",
    "Library/Keychains",
];

/// Below the home: what is written there runs later as the owner, and nobody is asked.
const RUN_LATER: &[&str] = &[
    "bin",
    ".bashrc.d",
    ".cargo/bin",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/systemd",
    ".local/bin",
    ".local/share/applications",
    ".local/share/systemd",
    ".nvm",
    ".pyenv",
    ".rustup",
    ".zshrc.d",
    "Library/LaunchAgents",
];

/// What it must be, when this resolved directory may not be granted in this way.
///
/// # Errors
/// In words that follow "must be".
pub fn check_further(path: &Path, way: Further, kept: &Kept) -> Result<(), String> {
    if kept.home.starts_with(path) {
        return Err("a directory that does not hold the home directory".to_owned());
    }
    if kept.own.iter().any(|own| overlap(own, path)) {
        return Err("a directory apart from gatepost's own".to_owned());
    }
    let closed = |names: &[&'static str]| names.iter().find(|name| overlap(&kept.home.join(name), path)).copied();
    if let Some(name) = closed(PRIVATE) {
        return Err(format!("a directory apart from ~/{name}, which holds what commands must not have"));
    }
    match (way, closed(RUN_LATER)) {
        (Further::Write, Some(name)) => Err(format!(
            "a directory apart from ~/{name}: what a command writes there runs later without being asked for"
        )),
        (Further::Write, None) | (Further::Read, Some(_) | None) => Ok(()),
    }
}

/// Whether one is the other or lies in it.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, way: Further) -> Result<(), String> {
        let own =
            ["/home/a/.local/state/gatepost", "/home/a/.config/gatepost", "/run/user/1/gatepost"].map(PathBuf::from);
        check_further(Path::new(path), way, &Kept { home: "/home/a".into(), own: own.into() })
    }

    #[test]
    fn caches_and_other_directories_are_granted() {
        for path in ["/home/a/.cargo/registry", "/home/a/.npm", "/home/a/.cache", "/srv/target", "/home/b", "/home/ab"]
        {
            assert_eq!((check(path, Further::Read), check(path, Further::Write)), (Ok(()), Ok(())), "{path}");
        }
    }

    #[test]
    fn what_holds_keys_or_is_gateposts_is_granted_in_no_way() {
        for (path, word) in [
            ("/", "home directory"),
            ("/home", "home directory"),
            ("/home/a", "home directory"),
            ("/home/a/.local/state", "gatepost"),
            ("/home/a/.local/state/gatepost", "gatepost"),
            ("/home/a/.local/state/gatepost/bindings", "gatepost"),
            ("/run/user/1", "gatepost"),
            ("/home/a/.config", "gatepost"),
            ("/home/a/.ssh", ".ssh"),
            ("/home/a/.ssh/sockets", ".ssh"),
            ("/home/a/.local/share", ".local/share/keyrings"),
        ] {
            for way in [Further::Read, Further::Write] {
                let refused = check(path, way).unwrap_err();
                assert!(refused.contains(word), "{path}: {refused}");
            }
        }
    }

    #[test]
    fn what_runs_later_may_be_read_and_not_written() {
        for path in ["/home/a/.cargo", "/home/a/.cargo/bin", "/home/a/.pyenv/versions", "/home/a/bin"] {
            assert_eq!(check(path, Further::Read), Ok(()), "{path}");
            assert!(check(path, Further::Write).unwrap_err().contains("runs later"), "{path}");
        }
    }
}
