//! A home directory for one test, and the settings read in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use settings::{Mistake, Settings, SettingsError, Sources};

/// A temporary home with a private configuration directory.
pub(crate) struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    /// An empty one.
    pub(crate) fn new() -> Self {
        let directory =
            tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o700)).tempdir().expect("a directory");
        Self { directory }
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a private file, with what is above it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        path
    }

    /// The sources of a user with this home and nothing else set.
    pub(crate) fn sources(&self) -> Sources {
        Sources { home: self.path().to_path_buf(), ..Sources::default() }
    }

    /// Loads the default configuration file with this content.
    pub(crate) fn load(&self, text: impl AsRef<[u8]>) -> Result<Settings, SettingsError> {
        self.write(".config/gatepost/config.toml", text);
        Settings::load(&self.sources())
    }
}

/// Loads a text that must be right.
pub(crate) fn right(text: &str) -> Settings {
    Home::new().load(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Loads a text that must have mistakes, and returns them.
pub(crate) fn wrong(text: impl AsRef<[u8]>) -> Vec<Mistake> {
    match Home::new().load(text.as_ref()) {
        Err(SettingsError::Invalid { mistakes, .. }) => mistakes,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("taken: {}", String::from_utf8_lossy(text.as_ref())),
    }
}
