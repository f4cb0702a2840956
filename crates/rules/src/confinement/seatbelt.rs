//! What macOS's sandbox is told beside the files that may be reached: the rules of `macos.json`. Never run on a Mac.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::files::{FilePolicy, FileRule};
use super::{PolicyError, check_format, check_reason};

const MACOS: &str = include_str!("../../../../config/confinement/macos.json");
const FILE: &str = "macos.json";

/// `macos.json`: whatever neither it nor `files.json` allows is refused.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeatbeltPolicy {
    v: u32,
    /// Files besides those of `files.json`.
    files: Vec<FileRule>,
    /// What else is allowed, in no order that matters.
    pub(super) rules: Vec<OperationRule>,
}

/// Operations of the sandbox that are allowed for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationRule {
    /// As the sandbox calls them; one that ends in `*` stands for all that begin with it.
    pub(super) allow: Vec<String>,
    /// On any of these; on everything when there are none.
    #[serde(default)]
    pub(super) to: Vec<Filter>,
    reason: String,
}

/// What an operation is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Filter {
    /// A process: `self` or `same-sandbox`.
    Target(String),
    /// This very path.
    Path(String),
    /// Paths that an expression fits.
    Pattern(String),
    /// What the sandbox itself was handed for one file.
    Extension(String),
    /// A service, by its name with launchd.
    Service(String),
    /// A value of the kernel's.
    Sysctl(String),
    /// All values of the kernel's that begin so.
    Sysctls(String),
    /// Shared memory, or a semaphore.
    Shared(String),
    /// All of them that begin so.
    SharedPrefix(String),
    /// A family of sockets.
    Family(String),
    /// The other end of a connection: `ip`.
    Remote(String),
    /// The own end of a connection: `ip`.
    Local(String),
    /// All of these at once.
    All(Vec<Filter>),
}

impl SeatbeltPolicy {
    /// The policy that is built into the binary.
    ///
    /// # Errors
    /// The first fault of the embedded data.
    pub fn reviewed() -> Result<Self, PolicyError> {
        Self::parse(MACOS).map_err(|what| PolicyError { file: FILE, what })
    }

    /// Reads and checks the text of a policy file.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let policy: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        check_format(policy.v)?;
        policy.files().check()?;
        let mut seen = BTreeSet::new();
        for rule in &policy.rules {
            check_reason(&rule.reason)?;
            if rule.allow.is_empty() {
                return Err("a rule names no operation".to_owned());
            }
            if let Some(odd) = rule.allow.iter().find(|name| !is_operation(name)) {
                return Err(format!("{odd:?} is no name of an operation"));
            }
            rule.to.iter().try_for_each(Filter::check)?;
            for name in &rule.allow {
                let about = if rule.to.is_empty() { vec![None] } else { rule.to.iter().map(Some).collect() };
                if about.into_iter().any(|filter| !seen.insert((name.as_str(), filter))) {
                    return Err(format!("{name} stands twice on the same"));
                }
            }
        }
        Ok(policy)
    }

    /// The files that macOS needs beside those of `files.json`.
    #[must_use]
    pub fn files(&self) -> FilePolicy {
        FilePolicy::of(self.files.clone())
    }
}

impl Filter {
    fn check(&self) -> Result<(), String> {
        let fit = match self {
            Self::Target(target) => matches!(target.as_str(), "self" | "same-sandbox"),
            Self::Remote(address) | Self::Local(address) => address == "ip",
            Self::Family(family) => is_made_of(family, |letter| matches!(letter, 'A'..='Z' | '0'..='9' | '_')),
            Self::Path(path) => path.starts_with('/'),
            // It stands between quotation marks in which nothing can be escaped.
            Self::Pattern(pattern) => pattern.starts_with("^/") && pattern.ends_with('$') && !pattern.contains('"'),
            Self::Extension(name)
            | Self::Service(name)
            | Self::Sysctl(name)
            | Self::Sysctls(name)
            | Self::Shared(name)
            | Self::SharedPrefix(name) => {
                is_made_of(name, |letter| letter.is_ascii_alphanumeric() || "./-_".contains(letter))
            }
            Self::All(filters) => {
                filters.iter().try_for_each(Self::check)?;
                filters.len() > 1 && !filters.iter().any(|filter| matches!(filter, Self::All(_)))
            }
        };
        if fit { Ok(()) } else { Err(format!("{self:?} is no filter")) }
    }
}

/// Letters and hyphens, as all operations are called, with a star at its end at most. `default` is the rule for all others,
/// and is not to be had.
fn is_operation(name: &str) -> bool {
    let plain = name.strip_suffix('*').unwrap_or(name);
    plain != "default" && is_made_of(plain, |letter| letter.is_ascii_lowercase() || letter == '-')
}

fn is_made_of(name: &str, fit: fn(char) -> bool) -> bool {
    !name.is_empty() && name.chars().all(fit)
}
