//! Ordinary development, as the agent does it: what confinement must leave possible.
//!
//! Each task is a shell script that checks its own result. [`Course::place`] puts those that the machine has the tools for
//! into a workspace together with one script that runs them all, so that one approved command is enough; [`Course::report`]
//! reads what came of it.

mod compilers;
mod connections;
mod course;
mod files;
mod git;
mod node;
mod python;
mod rust;
mod shell;

pub use course::{Course, Report};

/// One thing that developers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// What it is; unique, made of letters, digits and `_`.
    pub name: &'static str,
    /// Programs that it is about, or [`ACCOUNT`](crate::daemon::ACCOUNT); without one of them it cannot be tried on a machine.
    pub needs: &'static [&'static str],
    /// The text of a shell script. It ends with 0 only when the thing worked, and writes to its directory, TMPDIR,
    /// `/dev/shm` and the caches below HOME alone.
    pub script: &'static str,
}

/// Every task.
pub fn tasks() -> impl Iterator<Item = &'static Task> {
    [
        shell::TASKS,
        files::TASKS,
        connections::TASKS,
        git::TASKS,
        python::TASKS,
        node::TASKS,
        compilers::TASKS,
        rust::TASKS,
    ]
    .into_iter()
    .flatten()
}
