//! From the sources to settings.

use std::path::Path;
use std::str;

use host::Secret;
use host::secure_fs;
use toml::de::DeTable;

use crate::document;
use crate::error::SettingsError;
use crate::model::{ApiKey, MAX_MODEL_KEY_BYTES, Model, ModelSource};
use crate::paths::{Paths, Sources};
use crate::report::{Mistake, Report};
use crate::sections::{AgentServer, Approval, Confinement, Events, Log, Workspaces};

/// Largest configuration file, in bytes.
pub const MAX_CONFIG_BYTES: u64 = 256 * 1024;

/// Everything that is configured, valid. It holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Which server is run, and how many.
    pub agent_server: AgentServer,
    /// Where agents may work.
    pub workspaces: Workspaces,
    /// What the agent thinks with; without it no session can be started.
    pub model: Option<Model>,
    /// How a pending action is asked for.
    pub approval: Approval,
    /// The least confinement that is accepted, and what is granted beyond the workspace.
    pub confinement: Confinement,
    /// How long events are kept.
    pub events: Events,
    /// What is logged, and how.
    pub log: Log,
    /// Where everything is kept.
    pub paths: Paths,
    /// Whether a configuration file was there to read; without one all is default.
    pub from_file: bool,
    credentials_directory: Option<std::path::PathBuf>,
}

impl Settings {
    /// Reads the configuration file over the defaults.
    ///
    /// # Errors
    /// [`SettingsError::Invalid`] with every mistake of the file; `Missing` when `--config` names no file;
    /// `Unreadable` when it is not a private file of ours, or is larger than [`MAX_CONFIG_BYTES`]; `NotAbsolute`.
    pub fn load(sources: &Sources) -> Result<Self, SettingsError> {
        let paths = Paths::resolve(sources)?;
        let content = match secure_fs::read_private(&paths.config_file, MAX_CONFIG_BYTES) {
            Ok(content) => Some(content),
            Err(error) if error.is_not_found() && sources.config_file.is_none() => None,
            Err(error) if error.is_not_found() => return Err(SettingsError::Missing { path: paths.config_file }),
            Err(source) => return Err(SettingsError::Unreadable { source }),
        };
        let invalid = |mistakes| SettingsError::Invalid { path: paths.config_file.clone(), mistakes };
        let text = str::from_utf8(content.as_deref().map_or(&[], Vec::as_slice)).map_err(|error| {
            let mut report = Report::new("");
            report.add("", None, format!("is not UTF-8 text from byte {} on", error.valid_up_to()));
            invalid(report.finish())
        })?;
        let mut settings = read(text, paths.clone(), &sources.home).map_err(invalid)?;
        settings.from_file = content.is_some();
        settings.credentials_directory.clone_from(&sources.credentials_directory);
        Ok(settings)
    }

    /// Reads the model's key; `None` when the settings name none (no model, a profile, or an API that asks for none).
    /// Nothing is kept: ask when it is needed, and drop it.
    ///
    /// # Errors
    /// [`SettingsError::ModelKey`] when its file is missing, empty, not private, or larger than
    /// [`MAX_MODEL_KEY_BYTES`]; [`SettingsError::NoCredentials`].
    pub fn read_model_key(&self) -> Result<Option<Secret>, SettingsError> {
        let Some(Model { source: ModelSource::Named { api_key: Some(api_key), .. }, .. }) = &self.model else {
            return Ok(None);
        };
        let path = match api_key {
            ApiKey::File(path) => path.clone(),
            ApiKey::Credential(name) => match &self.credentials_directory {
                Some(directory) => directory.join(name),
                None => return Err(SettingsError::NoCredentials { name: name.clone() }),
            },
        };
        let secret = secure_fs::read_secret(&path, MAX_MODEL_KEY_BYTES);
        secret.map(Some).map_err(|source| SettingsError::ModelKey { source })
    }
}

fn read(text: &str, paths: Paths, home: &Path) -> Result<Settings, Vec<Mistake>> {
    let mut report = Report::new(text);
    let (file, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for error in errors {
            // Its message alone: what it shows of the file may be a key in the wrong place.
            report.add("", error.span(), format!("is no TOML here: {}", error.message()));
        }
        return Err(report.finish());
    }
    let mut sections = document::sections(file.get_ref(), &mut report);
    let settings = Settings {
        agent_server: AgentServer::read(&sections.take("agent_server"), &mut report, home),
        workspaces: Workspaces::read(&sections.take("workspaces"), &mut report, home, &paths),
        model: Model::read(&sections.take("model"), &mut report, home),
        approval: Approval::read(&sections.take("approval"), &mut report),
        confinement: Confinement::read(&sections.take("confinement"), &mut report, home, &paths),
        events: Events::read(&sections.take("events"), &mut report),
        log: Log::read(&sections.take("log"), &mut report),
        paths,
        from_file: false,
        credentials_directory: None,
    };
    let mistakes = report.finish();
    if mistakes.is_empty() { Ok(settings) } else { Err(mistakes) }
}
