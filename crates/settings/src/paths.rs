//! Where everything is kept.

use std::path::{Path, PathBuf};

use crate::error::SettingsError;

/// What decides the places: the command line's options and the parts of the environment that matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// `--config`: must exist when given.
    pub config_file: Option<PathBuf>,
    /// `--state-dir`: holds the state and the runtime directory.
    pub state_dir: Option<PathBuf>,
    /// The user's home directory.
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`; as its specification says, a path that is not absolute counts as not set.
    pub xdg_config_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`, likewise.
    pub xdg_state_home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`, likewise.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// `CREDENTIALS_DIRECTORY`, set by systemd for a unit that has credentials.
    pub credentials_directory: Option<PathBuf>,
}

/// Directories and files, all absolute. Nothing is created here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Directory of the default configuration file.
    pub config_dir: PathBuf,
    /// The configuration file that counts, whether it exists or not.
    pub config_file: PathBuf,
    /// Directory of everything that lasts.
    pub state_dir: PathBuf,
    /// Directory of the socket.
    pub runtime_dir: PathBuf,
    /// The API's Unix socket.
    pub socket: PathBuf,
    /// The server's secret key, made once.
    pub secret_key: PathBuf,
    /// The owner's token, made at the first start.
    pub owner_token: PathBuf,
    /// The installation's Ed25519 signing key.
    pub signing_key: PathBuf,
    /// Receipts, sessions, tokens.
    pub ledger: PathBuf,
    /// Events.
    pub journal: PathBuf,
    /// Managed Agent Servers, a directory a version.
    pub servers_dir: PathBuf,
    /// Data directories of owned servers, one a workspace.
    pub bindings_dir: PathBuf,
}

impl Paths {
    /// The places for these sources.
    ///
    /// # Errors
    /// [`SettingsError::NotAbsolute`] when the home directory or an option is not absolute.
    pub fn resolve(sources: &Sources) -> Result<Self, SettingsError> {
        let home = absolute("the home directory (HOME)", &sources.home)?;
        let config_dir = base(sources.xdg_config_home.as_deref(), home, ".config").join("gatepost");
        let config_file = match &sources.config_file {
            Some(file) => absolute("--config", file)?.to_path_buf(),
            None => config_dir.join("config.toml"),
        };
        let state_dir = match &sources.state_dir {
            Some(directory) => absolute("--state-dir", directory)?.to_path_buf(),
            None => base(sources.xdg_state_home.as_deref(), home, ".local/state").join("gatepost"),
        };
        let runtime_dir = match (&sources.state_dir, user_runtime_dir(sources)) {
            (None, Some(directory)) => directory,
            (Some(_), _) | (None, None) => state_dir.join("run"),
        };
        Ok(Self {
            socket: runtime_dir.join("gatepost.sock"),
            secret_key: state_dir.join("secret.key"),
            owner_token: state_dir.join("owner.token"),
            signing_key: state_dir.join("signing.key"),
            ledger: state_dir.join("ledger.sqlite3"),
            journal: state_dir.join("journal.sqlite3"),
            servers_dir: state_dir.join("servers"),
            bindings_dir: state_dir.join("bindings"),
            config_dir,
            config_file,
            state_dir,
            runtime_dir,
        })
    }

    /// What is gatepost's own: whoever reads it has keys, and whoever writes it decides.
    #[must_use]
    pub fn own(&self) -> [&Path; 4] {
        [&self.config_dir, &self.config_file, &self.state_dir, &self.runtime_dir]
    }
}

#[cfg(target_os = "macos")]
fn user_runtime_dir(sources: &Sources) -> Option<PathBuf> {
    Some(sources.home.join("Library/Application Support/gatepost"))
}

#[cfg(not(target_os = "macos"))]
fn user_runtime_dir(sources: &Sources) -> Option<PathBuf> {
    let directory = sources.xdg_runtime_dir.as_deref().filter(|directory| directory.is_absolute())?;
    Some(directory.join("gatepost"))
}

fn absolute<'a>(what: &'static str, path: &'a Path) -> Result<&'a Path, SettingsError> {
    if path.is_absolute() { Ok(path) } else { Err(SettingsError::NotAbsolute { what }) }
}

fn base(xdg: Option<&Path>, home: &Path, below: &str) -> PathBuf {
    xdg.filter(|directory| directory.is_absolute()).map_or_else(|| home.join(below), Path::to_path_buf)
}
