//! Why there are no settings.

use std::path::PathBuf;

use host::secure_fs::SecureFsError;
use rules::refusal::{Refusal, RefusalCode};

use crate::report::Mistake;

/// Why the settings, or the key they name, could not be had. No message holds a value of the file.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The named configuration file does not exist.
    #[error("the configuration file {} does not exist; correct --config, or leave it out to use the defaults", path.display())]
    Missing {
        /// The file asked for.
        path: PathBuf,
    },
    /// The file cannot be read, or others could change it.
    #[error("the configuration file cannot be used: {source}")]
    Unreadable {
        /// What is wrong with it.
        source: SecureFsError,
    },
    /// The file has mistakes.
    #[error("{} has {} to correct:{}", path.display(), count(mistakes), list(mistakes))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Every mistake, in the order of the file.
        mistakes: Vec<Mistake>,
    },
    /// A directory that everything else is placed in is not absolute.
    #[error("{what} is not an absolute path; set it to one")]
    NotAbsolute {
        /// The option or variable.
        what: &'static str,
    },
    /// The model's key cannot be read, or others could read it.
    #[error("the model's key cannot be used: {source}")]
    ModelKey {
        /// What is wrong with its file.
        source: SecureFsError,
    },
    /// The key is a service credential, and the daemon was not started with any.
    #[error(
        "the model's key is the service credential {name:?}, but no CREDENTIALS_DIRECTORY is set; start the daemon as a \
         systemd unit with LoadCredential={name}:…, or name a file in [model] api_key"
    )]
    NoCredentials {
        /// Name of the credential.
        name: String,
    },
}

impl SettingsError {
    /// The same as a refusal, for those who ask for what needs the settings.
    pub fn refusal(&self) -> Refusal {
        Refusal::new(RefusalCode::ConfigurationInvalid, self.to_string())
    }
}

fn count(mistakes: &[Mistake]) -> String {
    match mistakes.len() {
        1 => "1 mistake".to_owned(),
        many => format!("{many} mistakes"),
    }
}

fn list(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(|mistake| format!("\n  {mistake}")).collect()
}
