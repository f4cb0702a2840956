//! The reviewed contracts: one folder of data a server version, embedded in the binary and checked when first used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use crate::route::{Route, RouteName, TimeoutClass};

/// Most bytes of any answer, in every contract: 8 MiB.
pub const MAX_REPLY_BYTES: usize = 8 << 20;
/// The longest that any call may take, in milliseconds: ten minutes.
const MAX_TIMEOUT_MS: u64 = 600_000;
/// The layout of `contract.json` that this code reads.
const FORMAT: u32 = 1;

/// The files of one contract folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Folder {
    pub(crate) version: &'static str,
    pub(crate) contract: &'static str,
    pub(crate) requirements: &'static str,
    pub(crate) build_requirements: &'static str,
    pub(crate) startup_files: StartupFiles,
}

/// The Python files of a start-up module, by file name; `gatepost_startup.py` is the one the server imports.
pub type StartupFiles = &'static [(&'static str, &'static str)];

macro_rules! startup_file {
    ($version:literal, $name:literal) => {
        ($name, include_str!(concat!("../../../config/contracts/", $version, "/startup/", $name)))
    };
}

macro_rules! folders {
    ($($version:literal),* $(,)?) => {
        /// Every folder of `config/contracts`. A further version is a further folder and its name here.
        pub(crate) const FOLDERS: &[Folder] = &[$(Folder {
            version: $version,
            contract: include_str!(concat!("../../../config/contracts/", $version, "/contract.json")),
            requirements: include_str!(concat!("../../../config/contracts/", $version, "/requirements.lock")),
            build_requirements: include_str!(concat!("../../../config/contracts/", $version, "/build-requirements.lock")),
            startup_files: &[
                startup_file!($version, "gatepost_startup.py"),
                startup_file!($version, "gatepost_control.py"),
                startup_file!($version, "gatepost_process.py"),
                startup_file!($version, "gatepost_reviewed.py"),
                startup_file!($version, "gatepost_latch.py"),
                startup_file!($version, "gatepost_history.py"),
                startup_file!($version, "gatepost_files.py"),
                startup_file!($version, "gatepost_door.py"),
                startup_file!($version, "gatepost_spare.py"),
            ],
        }),*];
    };
}
folders!["1.40.0"];

/// A contract file that is not fit for use. It is built into the binary, so only a wrong build shows it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContractDataError {
    /// Not JSON in the layout expected.
    #[error("the contract of {version} cannot be read: {detail}")]
    Unreadable {
        /// The folder's name.
        version: String,
        /// The parser's words.
        detail: String,
    },
    /// A statement that contradicts another or a bound.
    #[error("the contract of {version} is not fit for use: {what}")]
    Unfit {
        /// The folder's name.
        version: String,
        /// What is wrong.
        what: String,
    },
    /// A route that is not fit for use.
    #[error("the route {route} is not fit for use: {what}")]
    Route {
        /// The route.
        route: RouteName,
        /// What is wrong.
        what: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    version: String,
    title: String,
    distributions: BTreeMap<String, String>,
    timeouts_ms: BTreeMap<TimeoutClass, u64>,
    routes: Vec<Route>,
}

/// What was reviewed of one Agent Server version: its identity, its locked requirements, our start-up module for it,
/// and the only calls that will ever be made to it.
#[derive(Debug)]
pub struct Contract {
    file: File,
    folder: Folder,
}

static CONTRACTS: LazyLock<Result<Vec<Contract>, ContractDataError>> =
    LazyLock::new(|| FOLDERS.iter().map(|folder| Contract::parse(*folder)).collect());

impl Contract {
    /// Every reviewed contract. Called once at the start, so that a wrong build is noticed before anything is launched.
    ///
    /// # Errors
    /// The first fault of the embedded data.
    pub fn all() -> Result<&'static [Contract], ContractDataError> {
        CONTRACTS.as_ref().map(Vec::as_slice).map_err(Clone::clone)
    }

    /// The contract of exactly this version; none for a version that was not reviewed.
    pub fn reviewed(version: &str) -> Option<&'static Contract> {
        Self::all().ok()?.iter().find(|contract| contract.version() == version)
    }

    /// The reviewed versions.
    pub fn versions() -> Vec<&'static str> {
        FOLDERS.iter().map(|folder| folder.version).collect()
    }

    /// The version of the Agent Server.
    pub fn version(&self) -> &str {
        &self.file.version
    }

    /// The title that the server must call itself.
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// The exact version of each of the server's own distributions, by distribution name.
    pub fn distributions(&self) -> &BTreeMap<String, String> {
        &self.file.distributions
    }

    /// The locked requirements, each with its hashes, as pip and uv read them.
    pub fn requirements_lock(&self) -> &'static str {
        self.folder.requirements
    }

    /// The locked requirements for building the one distribution that has no wheel.
    pub fn build_requirements_lock(&self) -> &'static str {
        self.folder.build_requirements
    }

    /// The source of the start-up module that runs inside the server.
    pub fn startup_files(&self) -> StartupFiles {
        self.folder.startup_files
    }

    /// The same contract with another start-up module, so that tests can show what the reviewed one prevents.
    ///
    /// # Errors
    /// None that the contract itself did not have.
    pub fn with_startup_files(&self, startup_files: StartupFiles) -> Result<Self, ContractDataError> {
        Self::parse(Folder { startup_files, ..self.folder })
    }

    /// Every route of the contract.
    pub fn routes(&self) -> &[Route] {
        &self.file.routes
    }

    /// How long a call of this class may take, everything included.
    pub fn timeout(&self, class: TimeoutClass) -> Duration {
        Duration::from_millis(self.file.timeouts_ms.get(&class).copied().unwrap_or(0))
    }

    pub(crate) fn route(&self, name: RouteName) -> Option<&Route> {
        self.file.routes.iter().find(|route| route.name == name)
    }

    pub(crate) fn parse(folder: Folder) -> Result<Self, ContractDataError> {
        let version = folder.version.to_owned();
        let file: File = serde_json::from_str(folder.contract)
            .map_err(|error| ContractDataError::Unreadable { version: version.clone(), detail: error.to_string() })?;
        let unfit = |what: String| ContractDataError::Unfit { version: version.clone(), what };
        if file.format != FORMAT {
            return Err(unfit(format!("format {} is not {FORMAT}", file.format)));
        }
        if file.version != folder.version {
            return Err(unfit(format!("it says version {}", file.version)));
        }
        if file.title.is_empty() || file.distributions.is_empty() {
            return Err(unfit("it names no title or no distribution".to_owned()));
        }
        for class in [TimeoutClass::Read, TimeoutClass::Mutation, TimeoutClass::Start, TimeoutClass::Message] {
            if !file.timeouts_ms.get(&class).is_some_and(|limit| (1..=MAX_TIMEOUT_MS).contains(limit)) {
                return Err(unfit(format!("the {class:?} timeout is missing or out of bounds")));
            }
        }
        let mut seen = BTreeSet::new();
        for route in &file.routes {
            route.validate()?;
            if !seen.insert(route.name) {
                return Err(unfit(format!("route {} stands twice", route.name)));
            }
        }
        if let Some(missing) = RouteName::ALL.iter().find(|name| !seen.contains(name)) {
            return Err(unfit(format!("route {missing} is missing")));
        }
        Ok(Self { file, folder })
    }
}

#[cfg(test)]
#[path = "contract_tests.rs"]
mod tests;
