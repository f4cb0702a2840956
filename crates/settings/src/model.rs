//! `[model]`: what the agent thinks with, and the tools it is given.

use std::path::{Path, PathBuf};

use toml::Spanned;

use crate::document::{Section, wrong_type};
use crate::report::Report;
use crate::text;

/// Largest file of a model's key, in bytes.
pub const MAX_MODEL_KEY_BYTES: u64 = 16 * 1024;

/// Tools the agent has when none are named.
pub const DEFAULT_TOOLS: [&str; 3] = ["terminal", "file_editor", "task_tracker"];

/// INVARIANT I1: tools that start agents of their own, whose actions nobody would be asked about. Never configured.
pub const SUB_AGENT_TOOLS: [&str; 6] =
    ["task", "task_tool_set", "workflow", "workflow_tool_set", "delegate", "delegate_tool"];

/// Tools of which it is known what they do within the server's process.
const REVIEWED_TOOLS: [&str; 5] = ["terminal", "file_editor", "task_tracker", "glob", "grep"];

/// `[model]`, when the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// What the agent is launched with.
    pub source: ModelSource,
    /// Further models reviewed for `session.model.set`; they use the same address and key. Empty with a profile.
    pub choices: Vec<String>,
    /// Tools the agent may have, at least one.
    pub tools: Vec<String>,
}

/// Where the model comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// Named here: the daemon makes the server's profiles.
    Named {
        /// The model as the server's client library names it.
        name: String,
        /// Address of its API; the provider's own when absent.
        base_url: Option<String>,
        /// Where its key is; absent only with a `base_url`, for an API that asks for none.
        api_key: Option<ApiKey>,
    },
    /// An agent profile that the server has already.
    Profile {
        /// Canonical UUID.
        profile_id: String,
    },
}

/// Where a key is read from. Never the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiKey {
    /// A private file.
    File(PathBuf),
    /// A service credential of this name.
    Credential(String),
}

impl Model {
    pub(crate) fn read(section: &Section<'_>, report: &mut Report<'_>, home: &Path) -> Option<Self> {
        if !section.is_present() {
            return None;
        }
        let name = section.text(report, "name", text::model_name);
        let base_url = section.text(report, "base_url", text::base_url);
        let api_key = read_api_key(section, report, home);
        let choices = section.texts(report, "choices", 32, text::model_name).unwrap_or_default();
        let tools = read_tools(section, report);
        let profile_id = section.text(report, "profile_id", text::uuid);
        let source = if section.has("profile_id") {
            for key in ["name", "base_url", "api_key", "choices"] {
                if section.has(key) {
                    section.mistake(
                        report,
                        key,
                        "cannot stand beside profile_id, which decides it; remove one of them",
                    );
                }
            }
            ModelSource::Profile { profile_id: profile_id? }
        } else {
            if !section.has("name") {
                section.mistake(
                    report,
                    "name",
                    "is missing; name the model, or an existing agent profile by profile_id",
                );
            }
            if !section.has("api_key") && !section.has("base_url") {
                section.mistake(report, "api_key", "is missing; only a model with a base_url may do without");
            }
            ModelSource::Named { name: name?, base_url, api_key }
        };
        Some(Self { source, choices, tools })
    }
}

fn read_tools(section: &Section<'_>, report: &mut Report<'_>) -> Vec<String> {
    let parse = |name: &str| {
        let name = text::tool_name(name)?;
        if SUB_AGENT_TOOLS.contains(&name.as_str()) {
            return Err(
                "a tool that starts no agent of its own: nobody would be asked about that agent's actions".to_owned()
            );
        }
        if !REVIEWED_TOOLS.contains(&name.as_str()) {
            return Err(format!("a reviewed tool: {}", REVIEWED_TOOLS.join(", ")));
        }
        Ok(name)
    };
    let Some(tools) = section.texts(report, "tools", 32, parse) else {
        return DEFAULT_TOOLS.map(str::to_owned).into();
    };
    if section.value("tools").and_then(|value| value.get_ref().as_array()).is_some_and(|items| items.is_empty()) {
        section.mistake(report, "tools", "must name at least one tool; leave it out for the default ones");
    }
    tools
}

fn read_api_key(section: &Section<'_>, report: &mut Report<'_>, home: &Path) -> Option<ApiKey> {
    const WANTED: &str = "{ file = \"…\" } or { credential = \"…\" }; a key itself never stands in this file";
    let value = section.value("api_key")?;
    let Some(table) = value.get_ref().as_table() else {
        section.mistake(report, "api_key", wrong_type(WANTED, value));
        return None;
    };
    let mut found = Vec::new();
    for (key, value) in table {
        let path = format!("{}.{key}", section.path("api_key"), key = key.get_ref());
        let parsed = match (key.get_ref().as_ref(), value.get_ref().as_str()) {
            ("file", Some(text)) => text::path(text, home).map(ApiKey::File),
            ("credential", Some(text)) => text::credential_name(text).map(ApiKey::Credential),
            ("file" | "credential", None) => {
                report.add(path, Some(value.span()), wrong_type("a text in quotes", value));
                continue;
            }
            _ => {
                report.add(
                    section.path("api_key"),
                    Some(key.span()),
                    format!("has an unknown key; it must be {WANTED}"),
                );
                continue;
            }
        };
        match parsed {
            Ok(key) => found.push(key),
            Err(wanted) => report.add(path, Some(value.span()), format!("must be {wanted}")),
        }
    }
    if table.is_empty() || found.len() > 1 {
        report.add(section.path("api_key"), Some(Spanned::span(value)), format!("must be {WANTED}"));
        return None;
    }
    found.pop()
}
