//! The guards of a server: `gatepost __guard --fds N,N… --domain NAME [--cgroup DIRECTORY] -- PROGRAM [ARGUMENTS...]`.
//!
//! The daemon starts the first of them; see [`process::guard`]. As the wrapper, it stays clear of the command line's parser,
//! of logs, configuration and threads.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs a guard if these arguments of the process, its name among them, ask for it. Returns only when it was not asked for,
/// or everything is ended. Others of its user can read it unless it is to be `unreadable`.
pub(crate) fn run_if_asked(mut arguments: impl Iterator<Item = OsString>, unreadable: bool) -> Option<ExitCode> {
    let is_asked = arguments.nth(1)? == process::guard::COMMAND;
    is_asked.then(|| process::guard::run(&arguments.collect::<Vec<_>>(), unreadable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_commands_are_left_alone() {
        for text in ["gatepost", "gatepost serve", "gatepost serve __guard", "__guard", "gatepost __confine"] {
            assert!(run_if_asked(text.split(' ').map(OsString::from), true).is_none(), "{text}");
        }
    }
}
