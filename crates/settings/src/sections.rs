//! The sections but the model's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rules::confinement::{Further, Level};
use rules::refusal::{Refusal, RefusalCode};

use crate::document::Section;
use crate::granted::{self, MAX_GRANTED};
use crate::paths::Paths;
use crate::report::Report;
use crate::text;

/// Version of the reviewed contract that is used when none is named.
pub const DEFAULT_VERSION: &str = "1.40.0";

/// `[agent_server]`: which server is run, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentServer {
    /// Version of a reviewed contract. Whether one exists is for the contracts to say.
    pub version: String,
    /// An install of the owner's own instead of the managed one.
    pub executable: Option<PathBuf>,
    /// The Python that the managed install is made with; found by itself otherwise.
    pub python: Option<PathBuf>,
    /// Seconds a server may take until it answers, 1 to 600.
    pub start_timeout_s: u64,
    /// Keep one process imported and waiting, which becomes the next server that is needed.
    pub standby: bool,
    /// Most servers at a time, 1 to 16.
    pub max_servers: usize,
    /// Minutes after which an idle server is stopped, up to 10080 (a week); 0 means never.
    pub idle_stop_min: u64,
    /// Seconds after which a running server must prove itself again, 1 to 200.
    pub probe_interval_s: u64,
}

impl AgentServer {
    pub(crate) fn read(section: &Section<'_>, report: &mut Report<'_>, home: &Path) -> Self {
        let max_servers = section.number(report, "max_servers", 1..=16, 4);
        Self {
            version: section.text(report, "version", text::version).unwrap_or_else(|| DEFAULT_VERSION.to_owned()),
            executable: section.text(report, "executable", |path| text::path(path, home)),
            python: section.text(report, "python", |path| text::path(path, home)),
            start_timeout_s: section.number(report, "start_timeout_s", 1..=600, 120),
            standby: section.boolean(report, "standby", false),
            max_servers: usize::try_from(max_servers).unwrap_or(1),
            idle_stop_min: section.number(report, "idle_stop_min", 0..=10_080, 30),
            probe_interval_s: section.number(report, "probe_interval_s", 1..=200, 120),
        }
    }

    /// How long a server may be idle; `None` for ever.
    #[must_use]
    pub fn idle_stop(&self) -> Option<Duration> {
        (self.idle_stop_min > 0).then(|| Duration::from_secs(self.idle_stop_min * 60))
    }
}

/// `[workspaces]`: where agents may work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspaces {
    /// Absolute paths as configured, `~` replaced, links not followed. Empty: nowhere.
    pub roots: Vec<PathBuf>,
    /// Git directories outside workspaces that those which belong to their repository may use; resolved.
    pub git_dirs: Vec<PathBuf>,
}

/// A workspace root as it is found now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The path as configured.
    pub configured: PathBuf,
    /// The directory behind it, every link followed; or why there is none, with its remedy.
    pub resolved: Result<PathBuf, Refusal>,
}

impl Workspaces {
    pub(crate) fn read(section: &Section<'_>, report: &mut Report<'_>, home: &Path, paths: &Paths) -> Self {
        let roots = section.texts(report, "roots", 64, |path| text::path(path, home));
        let git_dir = |text: &str| granted::directory(text, home, paths, Further::Write);
        Self {
            roots: roots.unwrap_or_else(|| vec![home.join("src")]),
            git_dirs: section.texts(report, "git_dirs", MAX_GRANTED, git_dir).unwrap_or_default(),
        }
    }

    /// Looks at every root now. One that is missing is a finding, and lets no workspace in.
    #[must_use]
    pub fn resolve(&self) -> Vec<Root> {
        let resolve =
            |configured: &PathBuf| Root { configured: configured.clone(), resolved: resolve_root(configured) };
        self.roots.iter().map(resolve).collect()
    }
}

fn resolve_root(configured: &Path) -> Result<PathBuf, Refusal> {
    let refused = |problem: &str| {
        let detail = format!("the workspace root {} {problem}", configured.display());
        Err(Refusal::new(RefusalCode::WorkspaceNotFound, detail))
    };
    match configured.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => refused("is no directory; correct [workspaces] roots"),
        Err(error) => refused(&format!("cannot be used ({error}); create it, or correct [workspaces] roots")),
    }
}

/// `[approval]`: how a pending action is asked for. Every action is; there is nothing here to change that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Minutes an approval may be decided after it was shown, 1 to 1440.
    pub expires_min: u64,
    /// SHA-256 digests, 64 lower-case hexadecimal digits, of workspace content that does not block.
    pub reviewed_content: Vec<String>,
}

impl Approval {
    pub(crate) fn read(section: &Section<'_>, report: &mut Report<'_>) -> Self {
        Self {
            expires_min: section.number(report, "expires_min", 1..=1440, 60),
            reviewed_content: section.texts(report, "reviewed_content", 1000, text::digest).unwrap_or_default(),
        }
    }
}

/// `[confinement]`: the least that is accepted, and what is granted beyond the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// Least accepted level: what is proved is compared with it, and less is refused.
    pub level: Level,
    /// Further directories that the agent's processes may read; resolved.
    pub read: Vec<PathBuf>,
    /// Further directories that they may write; resolved.
    pub write: Vec<PathBuf>,
}

fn parse_level(word: &str) -> Result<Level, String> {
    let named = Level::ALL.into_iter().find(|level| level.as_str() == word);
    named.ok_or_else(|| "\"full\", \"partial\" or \"weak\"".to_owned())
}

impl Confinement {
    pub(crate) fn read(section: &Section<'_>, report: &mut Report<'_>, home: &Path, paths: &Paths) -> Self {
        let mut further = |key, way| {
            let directory = |text: &str| granted::directory(text, home, paths, way);
            section.texts(report, key, MAX_GRANTED, directory).unwrap_or_default()
        };
        let (read, write) = (further("read", Further::Read), further("write", Further::Write));
        Self { level: section.text(report, "level", parse_level).unwrap_or(Level::Full), read, write }
    }
}

/// `[log]`: what is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// How a line is written.
    pub format: LogFormat,
    /// A level, levels by target, or both, separated by commas.
    pub level: String,
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people; fields for the journal, where standard error is its.
    Text,
    /// An object a line.
    Json,
}

impl Log {
    pub(crate) fn read(section: &Section<'_>, report: &mut Report<'_>) -> Self {
        let format = |word: &str| match word {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err("\"text\" or \"json\"".to_owned()),
        };
        Self {
            format: section.text(report, "format", format).unwrap_or(LogFormat::Text),
            level: section.text(report, "level", text::log_levels).unwrap_or_else(|| "info".to_owned()),
        }
    }
}

/// `[events]`: how long events are kept, and how they are followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// Days an event can be read, 1 to 3650.
    pub retention_days: u64,
    /// Seconds after which a quiet session that nobody looks at rests, 1 to 86400.
    pub rest_after_s: u64,
    /// Seconds between two reads of a session at rest, 1 to 600.
    pub rest_read_s: u64,
}

impl Events {
    pub(crate) fn read(section: &Section<'_>, report: &mut Report<'_>) -> Self {
        Self {
            retention_days: section.number(report, "retention_days", 1..=3650, 30),
            rest_after_s: section.number(report, "rest_after_s", 1..=86_400, 60),
            rest_read_s: section.number(report, "rest_read_s", 1..=600, 60),
        }
    }
}
