//! The tasks in a workspace, with the script that runs them, and what came of it.

use super::{Task, tasks};
use crate::daemon::give_tree;
use crate::failure::{Doing, Outcome};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The directory in the workspace.
const DIRECTORY: &str = "development";
/// Most of a task's words that a report quotes, in characters from the end.
const SAID_CHARS: usize = 2000;

/// The tasks that were put into one workspace.
#[derive(Debug, Clone)]
pub struct Course {
    directory: PathBuf,
    placed: Vec<&'static str>,
    unavailable: BTreeMap<&'static str, String>,
}

/// What came of the tasks, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// They worked.
    pub passed: Vec<String>,
    /// They did not; with the last words of each.
    pub failed: BTreeMap<String, String>,
    /// The machine lacks a program; with the reason.
    pub unavailable: BTreeMap<String, String>,
}

impl Course {
    /// Puts the tasks into the workspace, for its owner. Those that need what the same user has not got unconfined (see
    /// [`Home::has_program`](crate::daemon::Home::has_program)) are left out.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn place(workspace: &Path, has_program: impl Fn(&str) -> bool) -> Outcome<Self> {
        Self::place_these(tasks(), workspace, has_program)
    }

    fn place_these(
        tasks: impl Iterator<Item = &'static Task>,
        workspace: &Path,
        has_program: impl Fn(&str) -> bool,
    ) -> Outcome<Self> {
        let directory = workspace.join(DIRECTORY);
        let write = |name: &str, text: &str| fs::write(directory.join(name), text).doing("a task could not be placed");
        for name in ["tasks", "work", "results"] {
            fs::create_dir_all(directory.join(name)).doing("no directory for the tasks")?;
        }
        write("run.sh", include_str!("run.sh"))?;
        write("prelude.sh", include_str!("prelude.sh"))?;
        let (mut placed, mut unavailable) = (Vec::new(), BTreeMap::new());
        for task in tasks {
            if let Some(missing) = task.needs.iter().find(|program| !has_program(program)) {
                unavailable.insert(task.name, format!("this user has not got {missing}"));
                continue;
            }
            write(&format!("tasks/{}.sh", task.name), task.script)?;
            placed.push(task.name);
        }
        let owner = fs::metadata(workspace).doing("the workspace could not be looked at")?.uid();
        if rustix::process::getuid().as_raw() != owner {
            give_tree(&directory, owner)?;
        }
        Ok(Self { directory, placed, unavailable })
    }

    /// The command that runs all of them, one after the other, from the workspace. It says a line after each.
    #[must_use]
    pub fn command(&self) -> String {
        format!("bash {DIRECTORY}/run.sh")
    }

    /// What came of them; `None` until the last one is over.
    ///
    /// # Errors
    /// When a result cannot be read.
    pub fn report(&self) -> Outcome<Option<Report>> {
        if !self.directory.join("over").exists() {
            return Ok(None);
        }
        let mut report = Report::default();
        report.unavailable.extend(self.unavailable.iter().map(|(name, why)| ((*name).to_owned(), why.clone())));
        for name in &self.placed {
            let name = (*name).to_owned();
            let result = |kind: &str| fs::read(self.directory.join(format!("results/{name}.{kind}")));
            let code = result("code").doing("a result is missing")?;
            if code.trim_ascii() == b"0" {
                report.passed.push(name);
                continue;
            }
            let said = result("said").doing("a task's words are missing")?;
            let said: Vec<char> = String::from_utf8_lossy(&said).chars().collect();
            let tail: String = said.iter().skip(said.len().saturating_sub(SAID_CHARS)).collect();
            report.failed.insert(name, format!("exit {}: {tail}", String::from_utf8_lossy(&code).trim()));
        }
        Ok(Some(report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const TASKS: [Task; 5] = [
        Task { name: "good", needs: &["sh"], script: "same a a; echo well > file" },
        Task { name: "wrong", needs: &[], script: "same a b\ntouch went-on" },
        Task { name: "broken_pipe", needs: &[], script: "false | cat" },
        Task { name: "unset", needs: &[], script: "echo $nothing" },
        Task { name: "missing", needs: &["sh", "no-such-program"], script: "true" },
    ];

    #[test]
    fn a_task_passes_only_when_every_command_of_it_did() {
        let workspace = tempfile::tempdir().unwrap();
        let course = Course::place_these(TASKS.iter(), workspace.path(), |program| program == "sh").unwrap();
        assert_eq!(course.report().unwrap(), None);
        let said = Command::new("sh").args(["-c", &course.command()]).current_dir(workspace.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "broken_pipe 1\ngood 0\nunset 1\nwrong 1\n");
        let report = course.report().unwrap().unwrap();
        assert_eq!(report.passed, ["good"]);
        assert_eq!(report.failed.keys().collect::<Vec<_>>(), ["broken_pipe", "unset", "wrong"]);
        assert_eq!(report.failed["wrong"], "exit 1: this is a, not b\n");
        assert!(report.unavailable["missing"].contains("no-such-program"));
        assert!(!workspace.path().join("development/work/wrong/went-on").exists());
    }

    #[test]
    fn a_result_that_is_missing_is_not_passed_over() {
        let workspace = tempfile::tempdir().unwrap();
        let course = Course::place_these(TASKS.iter(), workspace.path(), |_| true).unwrap();
        fs::write(workspace.path().join("development/over"), "").unwrap();
        assert!(course.report().is_err());
    }

    #[test]
    fn names_are_unique_and_plain() {
        let mut names: Vec<&str> = tasks().map(|task| task.name).collect();
        assert!(names.len() >= 51, "{}", names.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
