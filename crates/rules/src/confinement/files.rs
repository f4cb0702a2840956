//! The files that may be reached, and how.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Deserialize;

use super::plan::{Identity, Plan};

/// What a rule's path may begin with in place of a directory of the system.
const PLACEHOLDERS: &[&str] = &["{workspace}", "{tmp}", "{home}", "{environment}", "{writable}", "{readable}"];

/// `files.json`: whatever no rule grants is refused.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilePolicy {
    v: u32,
    /// The rules. Several may speak of one path: the grants add up.
    pub rules: Vec<FileRule>,
}

/// Paths that are granted for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRule {
    /// Absolute, or below a placeholder. A directory stands for everything below it.
    pub paths: Vec<String>,
    /// What is granted.
    pub access: Access,
    /// Why.
    pub reason: String,
}

/// What may be done below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read, list and execute.
    Read,
    /// That, and create, change, rename and remove; no device files.
    Write,
    /// Read, write and control devices.
    Device,
}

/// What a symbolic link on the way to a granted path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Links {
    /// Followed: the path belongs to the system, and only root makes links there.
    Followed,
    /// Nothing is started. The plan's paths are resolved, so a link came later, and the agent may have made it to have its
    /// target granted. For what is written.
    Refused,
    /// No grant, as if nothing stood there, for the same reason: for what is read, and below a directory of the plan, where
    /// links are ordinary.
    Skipped,
}

/// One path to grant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// Absolute.
    pub path: PathBuf,
    /// What is granted.
    pub access: Access,
    /// What a symbolic link on the way means.
    pub links: Links,
    /// What must stand there; another thing is as a link. `None`: whatever stands there.
    pub identity: Option<Identity>,
}

impl FilePolicy {
    /// Reads and checks the text of a policy file.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let policy: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        policy.check()?;
        Ok(policy)
    }

    /// These rules, of the format that this code reads.
    pub(super) fn of(rules: Vec<FileRule>) -> Self {
        Self { v: super::FORMAT, rules }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        super::check_format(self.v)?;
        let mut seen = BTreeSet::new();
        for rule in &self.rules {
            super::check_reason(&rule.reason)?;
            if rule.paths.is_empty() {
                return Err("a rule names no path".to_owned());
            }
            for path in &rule.paths {
                check_path(path)?;
                if !seen.insert(path.as_str()) {
                    return Err(format!("{path} stands twice"));
                }
            }
        }
        Ok(())
    }

    /// The grants for the server of this plan, in the order of the rules.
    #[must_use]
    pub fn grants(&self, plan: &Plan) -> Vec<Grant> {
        let expanded = |rule: &FileRule| {
            let access = rule.access;
            let paths: Vec<_> = rule.paths.iter().flat_map(|path| expand(path, access, plan)).collect();
            paths.into_iter().map(move |(path, links)| {
                let identity = plan.identities.get(&path).copied().filter(|_| links != Links::Followed);
                Grant { path, access, links, identity }
            })
        };
        self.rules.iter().flat_map(expanded).collect()
    }
}

/// The placeholder that a path begins with, if any, and the rest.
fn split(path: &str) -> (Option<&str>, &str) {
    match path.find('}') {
        Some(end) if path.starts_with('{') => (Some(&path[..=end]), &path[end + 1..]),
        Some(_) | None => (None, path),
    }
}

fn check_path(path: &str) -> Result<(), String> {
    let (placeholder, rest) = split(path);
    if placeholder.is_some_and(|name| !PLACEHOLDERS.contains(&name)) {
        return Err(format!("{path} begins with an unknown placeholder"));
    }
    let below = rest.strip_prefix('/').map(|below| below.split('/').collect::<Vec<_>>());
    let plain =
        |parts: &[&str]| parts.iter().all(|part| !matches!(*part, "" | "." | "..") && !part.contains(['{', '}']));
    match (placeholder, below) {
        (Some(_), None) if rest.is_empty() => Ok(()),
        (_, Some(parts)) if plain(&parts) => Ok(()),
        (Some(_) | None, Some(_) | None) => Err(format!("{path} is no plain absolute path")),
    }
}

fn expand(path: &str, access: Access, plan: &Plan) -> Vec<(PathBuf, Links)> {
    let (placeholder, rest) = split(path);
    let Some(placeholder) = placeholder else {
        return vec![(PathBuf::from(path), Links::Followed)];
    };
    let bases: &[PathBuf] = match placeholder {
        "{workspace}" => std::slice::from_ref(&plan.workspace),
        "{tmp}" => std::slice::from_ref(&plan.tmp),
        "{home}" => std::slice::from_ref(&plan.home),
        "{environment}" => &plan.environment,
        "{writable}" => &plan.writable,
        "{readable}" => &plan.readable,
        _ => &[],
    };
    // Whoever only reads can do without a place that became a link; where the work was to be written, nothing is started.
    let of_plan = match access {
        Access::Read => Links::Skipped,
        Access::Write | Access::Device => Links::Refused,
    };
    match rest.strip_prefix('/') {
        Some(below) => bases.iter().map(|base| (base.join(below), Links::Skipped)).collect(),
        // As it stands: joined with nothing it would get a slash at its end, and mean a directory only.
        None => bases.iter().map(|base| (base.clone(), of_plan)).collect(),
    }
}
