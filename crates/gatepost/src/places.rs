//! Where everything is, from the command line and the environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use api_types::ExitCode;
use bytes::Bytes;
use cli::{Cli, Failure, TokenFile};
use host::Secret;
use settings::{Paths, Settings, SettingsError, Sources};

/// The places of one run, and what they were derived from.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// What the settings are loaded from.
    pub(crate) sources: Sources,
    /// Files and directories, `--socket` taken into account.
    pub(crate) paths: Paths,
    /// File with the token that commands use.
    pub(crate) token_file: PathBuf,
}

impl Places {
    /// For this command line and the process's environment.
    pub(crate) fn of(cli: &Cli) -> Result<Self, Failure> {
        Self::from(cli, |name| std::env::var_os(name))
    }

    fn from(cli: &Cli, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Failure> {
        let directory = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = directory("HOME").ok_or_else(|| Failure::usage("HOME is not set; set it to your home directory"))?;
        let sources = Sources {
            config_file: cli.config.as_deref().map(absolute).transpose()?,
            state_dir: cli.state_dir.as_deref().map(absolute).transpose()?,
            home,
            xdg_config_home: directory("XDG_CONFIG_HOME"),
            xdg_state_home: directory("XDG_STATE_HOME"),
            xdg_runtime_dir: directory("XDG_RUNTIME_DIR"),
            credentials_directory: directory("CREDENTIALS_DIRECTORY"),
        };
        let mut paths = Paths::resolve(&sources).map_err(|error| unusable(&error))?;
        if let Some(socket) = &cli.socket {
            paths.socket = absolute(socket)?;
        }
        let token_file = cli.token_file.clone().unwrap_or_else(|| paths.owner_token.clone());
        Ok(Self { sources, paths, token_file })
    }

    /// The token that commands use.
    pub(crate) fn token(&self) -> TokenFile {
        token_file(self.token_file.clone())
    }

    /// The configuration; every mistake of it is told at once.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = Settings::load(&self.sources).map_err(|error| unusable(&error))?;
        settings.paths.socket.clone_from(&self.paths.socket);
        Ok(settings)
    }
}

/// A file with a token, which is kept on locked memory and wiped at the end.
pub(crate) fn token_file(path: PathBuf) -> TokenFile {
    TokenFile::new(path, keep_locked)
}

fn keep_locked(text: String) -> Bytes {
    struct Kept(Secret);
    impl AsRef<[u8]> for Kept {
        fn as_ref(&self) -> &[u8] {
            self.0.expose().as_bytes()
        }
    }
    Bytes::from_owner(Kept(Secret::new(text)))
}

/// A path as typed, from where the user stands.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// The settings, or the key they name, cannot be had.
pub(crate) fn unusable(error: &SettingsError) -> Failure {
    Failure::new(ExitCode::Usage, "configuration_invalid", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(words: &[&str], environment: &[(&str, &str)]) -> Result<Places, Failure> {
        let words = ["gatepost"].iter().chain(words).copied();
        let cli::ParseOutcome::Run(cli) = cli::parse(words, &mut Vec::new(), &mut Vec::new()) else {
            panic!("no command")
        };
        let variable = |name: &str| environment.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).into());
        Places::from(&cli, variable)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_command_keeps_its_token_on_locked_memory() {
        let kept = keep_locked("Bearer token".to_owned());
        assert_eq!(kept, "Bearer token");
        let address = kept.as_ptr() as usize;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let holds = |line: &str| {
            let (start, rest) = line.split_once('-')?;
            let number = |digits: &str| usize::from_str_radix(digits, 16).ok();
            Some((number(start)?..number(rest.split(' ').next()?)?).contains(&address))
        };
        let lines = maps.lines().skip_while(|line| holds(line) != Some(true));
        let locked = lines.take(40).find_map(|line| line.strip_prefix("Locked:")).unwrap();
        assert_ne!(locked.trim(), "0 kB");
    }

    #[test]
    fn the_options_come_before_the_environment() {
        let environment = [("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/user/1"), ("XDG_STATE_HOME", "")];
        let plain = places(&["status"], &environment).unwrap();
        assert_eq!(plain.paths.socket, Path::new("/run/user/1/gatepost/gatepost.sock"));
        assert_eq!(plain.token_file, Path::new("/h/.local/state/gatepost/owner.token"));
        let own = places(&["status", "--state-dir", "/s", "--token-file", "/t"], &environment).unwrap();
        assert_eq!(own.paths.socket, Path::new("/s/run/gatepost.sock"));
        assert_eq!(own.token_file, Path::new("/t"));
        let elsewhere = places(&["serve", "--state-dir", "/s", "--socket", "/r/x.sock"], &environment).unwrap();
        assert_eq!(elsewhere.paths.socket, Path::new("/r/x.sock"));
        assert_eq!(elsewhere.paths.owner_token, Path::new("/s/owner.token"));
    }

    #[test]
    fn what_is_typed_is_meant_from_where_the_user_stands() {
        let here = std::env::current_dir().unwrap();
        let own = places(&["status", "--state-dir", "s"], &[("HOME", "/h")]).unwrap();
        assert_eq!(own.paths.state_dir, here.join("s"));
    }

    #[test]
    fn without_a_home_nothing_is_guessed() {
        for environment in [&[][..], &[("HOME", "")], &[("HOME", "relative")]] {
            let failure = places(&["status"], environment).unwrap_err();
            assert_eq!(failure.exit, ExitCode::Usage);
            assert!(failure.detail.contains("HOME"), "{}", failure.detail);
        }
    }

    #[test]
    fn every_mistake_of_the_configuration_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        host::secure_fs::write_private_new(&file, b"[agent_server]\nmax_servers = 99\nfoo = 1\n").unwrap();
        let words = ["serve", "--config", file.to_str().unwrap()];
        let failure = places(&words, &[("HOME", "/h")]).unwrap().settings().unwrap_err();
        assert_eq!((failure.exit, failure.code.as_str()), (ExitCode::Usage, "configuration_invalid"));
        for mistake in ["max_servers", "foo"] {
            assert!(failure.detail.contains(mistake), "{}", failure.detail);
        }
    }
}
