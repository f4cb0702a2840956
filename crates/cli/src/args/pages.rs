//! Arguments of the commands that print what is made from the definition of all commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

use super::values;

/// Prints or writes something made from the definition of the commands. Needs no daemon and no configuration.
#[derive(Debug, Clone, Subcommand)]
pub enum PagesCommand {
    /// Print the completions for a shell
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands into a directory
    Man(ManArgs),
}

/// Arguments of `man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Write a page for each command into this directory, which is made where it is missing.
    #[arg(long, value_name = "DIR", value_parser = values::path)]
    pub dir: Option<PathBuf>,
}
