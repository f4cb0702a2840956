//! Workspaces: whether a directory is allowed, and which of its files would act by being there.

use std::path::{Component, Path};

use serde::Serialize;
use serde_json::json;

use crate::jcs;

/// What a scan of a workspace, and of its git root, has to hand in: these files, and all files below these directories.
/// The instruction files are searched for in every directory.
pub const SCAN_PATHS: &[&str] = &[".openhands", ".agents", ".plugin", ".claude-plugin", ".mcp.json", ".git/config"];

/// Names of instruction files that the server takes up wherever they stand, in lower case.
pub const INSTRUCTION_FILES: &[&str] = &[".cursorrules", "agents.md", "agent.md", "claude.md", "gemini.md"];

/// Whether `resolved` is one of the roots or stands below one. Both must be absolute with every symbolic link resolved;
/// a path with `..` in it is in no root.
#[must_use]
pub fn is_within(resolved: &str, roots: &[String]) -> bool {
    let plain = |path: &str| {
        let path = Path::new(path);
        path.is_absolute()
            && path.components().all(|component| match component {
                Component::RootDir | Component::Normal(_) | Component::CurDir => true,
                Component::ParentDir | Component::Prefix(_) => false,
            })
    };
    plain(resolved) && roots.iter().any(|root| plain(root) && Path::new(resolved).starts_with(root))
}

/// One file found by a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceFile<'a> {
    /// Relative to the scanned directory, parts joined by `/`.
    pub path: &'a str,
    /// Its content; `None` when it is not UTF-8, too large or cannot be read.
    pub text: Option<&'a str>,
}

/// Why a file would act by being there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentReason {
    /// Part of a plugin, which may bring hooks, agents and MCP servers.
    Plugin,
    /// Hooks, which run commands.
    Hooks,
    /// An agent definition, which may carry its own permission mode.
    AgentDefinition,
    /// MCP servers, which are processes.
    Mcp,
    /// A skill or instruction file that runs commands when it is shown to the model.
    EmbeddedCommand,
    /// A skill that declares MCP servers or hooks, or whose declarations cannot be read with certainty.
    SkillDeclaration,
    /// A skill or instruction file that could not be read whole.
    Unreadable,
    /// A git configuration that makes git itself run a program.
    GitConfig,
}

impl ContentReason {
    /// For people, after the file's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plugin => "is part of a plugin",
            Self::Hooks => "declares hooks",
            Self::AgentDefinition => "defines an agent",
            Self::Mcp => "declares MCP servers",
            Self::EmbeddedCommand => "embeds a command that runs when the file is shown to the model",
            Self::SkillDeclaration => "is a skill that may declare MCP servers or hooks",
            Self::Unreadable => "could not be read whole",
            Self::GitConfig => "makes git run a program",
        }
    }
}

/// A file that would act by being there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContentFinding {
    /// Relative to the scanned directory.
    pub path: String,
    /// Why.
    pub reason: ContentReason,
    /// SHA-256 over path and content, by which the configuration lifts the block; `None` when it could not be read whole.
    pub digest: Option<String>,
}

impl ContentFinding {
    /// Whether the configuration lists this very content.
    #[must_use]
    pub fn is_reviewed(&self, reviewed: &[String]) -> bool {
        self.digest.as_ref().is_some_and(|digest| reviewed.contains(digest))
    }
}

/// The digest that stands for one reviewed file.
pub fn content_digest(path: &str, text: &str) -> String {
    jcs::digest(&json!({"path": path, "sha256": jcs::sha256_hex(text.as_bytes())}))
}

/// Which of the files would act by being there, in the order given.
pub fn content_findings(files: &[WorkspaceFile<'_>]) -> Vec<ContentFinding> {
    files
        .iter()
        .filter_map(|file| {
            Some(ContentFinding {
                path: file.path.to_owned(),
                reason: reason_for(file)?,
                digest: file.text.map(|text| content_digest(file.path, text)),
            })
        })
        .collect()
}

fn reason_for(file: &WorkspaceFile<'_>) -> Option<ContentReason> {
    // Some file systems do not tell upper from lower case.
    let lower = file.path.to_lowercase();
    let parts: Vec<&str> = lower.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let name = *parts.last()?;
    match parts.as_slice() {
        [".openhands" | ".agents", "plugins", ..] | [".plugin" | ".claude-plugin", ..] => Some(ContentReason::Plugin),
        [".openhands" | ".agents", "hooks.json"] | [".openhands" | ".agents", "hooks", ..] => {
            Some(ContentReason::Hooks)
        }
        [".openhands" | ".agents", "agents", ..] => Some(ContentReason::AgentDefinition),
        [".openhands" | ".agents", next, ..] if next.starts_with("mcp") => Some(ContentReason::Mcp),
        [".git", "config"] => git_config_reason(file.text),
        _ if name == ".mcp.json" => Some(ContentReason::Mcp),
        [".openhands" | ".agents", "skills" | "microagents", ..] => skill_reason(name, file.text),
        _ if name == "skill.md" || INSTRUCTION_FILES.contains(&name) => skill_reason("skill.md", file.text),
        _ => None,
    }
}

/// Only Markdown is taken for a skill; scripts beside one run when an approved command runs them.
fn skill_reason(name: &str, text: Option<&str>) -> Option<ContentReason> {
    if !name.ends_with(".md") {
        return None;
    }
    let Some(text) = text else { return Some(ContentReason::Unreadable) };
    if text.contains("!`") {
        return Some(ContentReason::EmbeddedCommand);
    }
    let header = front_matter(text).to_lowercase();
    // An escape can spell a name that a search does not find.
    if header.contains("mcp") || header.contains('\\') || declares(&header, "hooks") {
        return Some(ContentReason::SkillDeclaration);
    }
    None
}

/// Whether the name stands there as a key, and not in the middle of a sentence.
fn declares(header: &str, name: &str) -> bool {
    header.match_indices(name).any(|(at, _)| {
        let after = header.get(at + name.len()..).unwrap_or_default();
        after.trim_start_matches([' ', '\t', '"', '\'']).starts_with([':', '=', ']', '.'])
    })
}

/// The declarations before a Markdown text: between two lines of one delimiter, the whole text when the second is missing,
/// nothing when there is no first. A text that begins as JSON is taken whole.
fn front_matter(text: &str) -> &str {
    let text = text.trim_start_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
    if text.starts_with('{') {
        return text;
    }
    for delimiter in ["---", "+++", ";;;"] {
        if let Some(rest) = text.strip_prefix(delimiter) {
            let end = rest.find(&format!("\n{delimiter}"));
            return end.and_then(|end| rest.get(..end)).unwrap_or(rest);
        }
    }
    ""
}

/// `core.fsmonitor` names a program that most git commands start, also those that the server runs by itself.
fn git_config_reason(text: Option<&str>) -> Option<ContentReason> {
    let Some(text) = text else { return Some(ContentReason::Unreadable) };
    let starts_program = text.lines().any(|line| {
        let line = line.to_lowercase();
        line.split_once("fsmonitor").is_some_and(|(_, value)| {
            let value = value.trim_start_matches([' ', '\t', '=']).trim().trim_matches('"');
            !["", "true", "false", "yes", "no", "on", "off", "1", "0"].contains(&value)
        })
    });
    starts_program.then_some(ContentReason::GitConfig)
}

#[cfg(test)]
mod tests;
