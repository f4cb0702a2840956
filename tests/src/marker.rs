//! A file that a command leaves: how often it ran can be counted.

use std::path::{Path, PathBuf};

/// A file to which each run of [`Marker::command`] adds a line.
#[derive(Debug, Clone)]
pub struct Marker {
    path: PathBuf,
}

impl Marker {
    /// A marker of this name in this directory; nothing is made.
    #[must_use]
    pub fn new(directory: &Path, name: &str) -> Self {
        Self { path: directory.join(name) }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The shell command that leaves one line, and says so.
    #[must_use]
    pub fn command(&self) -> String {
        format!("echo ran >> {} && echo marked", self.path.display())
    }

    /// The scripted model's directive that proposes the command.
    #[must_use]
    pub fn directive(&self) -> String {
        format!("run: {}", self.command())
    }

    /// How often the command ran.
    #[must_use]
    pub fn runs(&self) -> usize {
        std::fs::read_to_string(&self.path).map_or(0, |text| text.lines().count())
    }

    /// The command ran never.
    ///
    /// # Panics
    /// When it did.
    #[track_caller]
    pub fn assert_absent(&self) {
        assert!(!self.path.exists(), "{} is there: a command ran that nobody approved", self.path.display());
    }

    /// The command ran so many times.
    ///
    /// # Panics
    /// When it ran another number of times.
    #[track_caller]
    pub fn assert_runs(&self, expected: usize) {
        assert_eq!(self.runs(), expected, "runs of the command that marks {}", self.path.display());
    }
}
