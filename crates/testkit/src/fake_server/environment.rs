//! The directory of a launched server: the plan that it follows there, and the record that it keeps there.

use super::install::{PLAN_NAME, ROUTES_NAME};
use super::journal::Journal;
use super::plan::Plan;
use crate::failure::{Doing, Failure, Outcome};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The directory of one launched server.
pub(super) struct Environment {
    directory: PathBuf,
    /// Which file the plan in force was read from: its number and its time, as times alone are coarse.
    read: Mutex<Option<(u64, i64, i64)>>,
}

impl Environment {
    /// The directory around the executable that was started.
    pub(super) fn of_this_process() -> Outcome<Self> {
        let script = std::env::args_os().nth(1).filter(|argument| argument.to_string_lossy().ends_with("agent-server"));
        let executable = std::env::current_exe().doing("the executable is unknown")?;
        let start = script.map_or(executable, PathBuf::from);
        let directory = start.ancestors().nth(2).unwrap_or(Path::new("/")).to_owned();
        Ok(Self { directory, read: Mutex::new(None) })
    }

    /// The plan of the start; without a file the server behaves.
    pub(super) fn plan(&self) -> Outcome<Plan> {
        Ok(self.changed_plan()?.unwrap_or_default())
    }

    /// The plan, when its file was written since it was read last.
    pub(super) fn changed_plan(&self) -> Outcome<Option<Plan>> {
        let path = self.directory.join(PLAN_NAME);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match fs::metadata(&path) {
            Ok(data) => (data.ino(), data.mtime(), data.mtime_nsec()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::new(format!("the plan cannot be read: {error}"))),
        };
        if *read == Some(written) {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).doing("the plan cannot be read")?;
        let plan = serde_json::from_str(&text).doing("the plan cannot be read")?;
        *read = Some(written);
        Ok(Some(plan))
    }

    /// The journal, for a plan that keeps one.
    pub(super) fn journal(&self) -> Outcome<Journal> {
        Journal::open(&self.directory)
    }

    /// Keeps the name of a route that was asked for.
    pub(super) fn note_route(&self, route: &str) {
        let file = File::options().create(true).append(true).open(self.directory.join(ROUTES_NAME));
        if let Err(error) = file.and_then(|mut file| file.write_all(format!("{route}\n").as_bytes())) {
            eprintln!("fake server: the request could not be recorded: {error}");
        }
    }
}
