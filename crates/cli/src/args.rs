//! What may be typed: every command, its arguments and their bounds.

mod audit;
mod client;
mod pages;
mod service;
mod values;

use std::ffi::OsStr;
use std::path::PathBuf;

use api_types::ExitCode;
use clap::{Args, Parser, Subcommand};

pub use audit::{AuditArgs, AuditCommand, LedgerCommand};
pub use client::{
    AcknowledgeArgs, ApproveArgs, AttachArgs, ClientCommand, CloseArgs, ConsoleArgs, EventsArgs, FollowArgs, ForkArgs,
    ModelArgs, OnPending, PromptArgs, RejectArgs, RewindArgs, SessionCommand, StartArgs, TitleArgs, TokenArgs,
    TokenCommand, TokenRole,
};
pub use pages::{ManArgs, PagesCommand};
pub use service::{ServiceCommand, ServiceInstallArgs, ServiceKind, ServicePrintArgs, ServiceRemoveArgs};
pub use values::{ApprovalDigits, IdPrefix};
pub(crate) use values::{MAX_PROMPT_BYTES, MAX_REASON_BYTES};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "gatepost",
    version,
    about = "Supervises an OpenHands Agent Server: an action runs only if a person approved that very action"
)]
#[command(subcommand_required = true, arg_required_else_help = false, max_term_width = 100, after_help = exit_codes())]
pub struct Cli {
    /// Print one JSON object (one a line where output streams) instead of text.
    #[arg(long, global = true)]
    pub json: bool,

    /// The daemon's Unix socket, instead of the usual place.
    #[arg(long, global = true, value_name = "PATH", value_parser = values::path)]
    pub socket: Option<PathBuf>,

    /// The configuration file, instead of the usual place.
    #[arg(long, global = true, value_name = "FILE", value_parser = values::path)]
    pub config: Option<PathBuf>,

    /// Keep and look for all state under this directory.
    #[arg(long, global = true, value_name = "DIR", value_parser = values::path)]
    pub state_dir: Option<PathBuf>,

    /// A file with the token to use, instead of the owner's; mode 0600.
    #[arg(long, global = true, value_name = "FILE", env = "GATEPOST_TOKEN_FILE", hide_env_values = true, value_parser = values::path)]
    pub token_file: Option<PathBuf>,

    /// Never colour the output (as does a non-empty NO_COLOR).
    #[arg(long, global = true)]
    pub no_color: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The exit codes, for the help.
pub(crate) fn exit_codes() -> String {
    let rows = ExitCode::ALL.map(|exit| format!("  {}  {}\n", exit.code(), exit.meaning()));
    format!("Exit codes:\n{}", rows.concat())
}

impl Cli {
    /// Whether output may be coloured: only on a terminal that is not `dumb`, as text, and when neither `--no-color` nor a
    /// non-empty `NO_COLOR` forbids it. The caller reads `TERM` and `NO_COLOR` in the environment.
    #[must_use]
    pub fn color(&self, stdout_is_terminal: bool, term: Option<&OsStr>, no_color: Option<&OsStr>) -> bool {
        let can_color = stdout_is_terminal && term.is_none_or(|term| term != "dumb");
        can_color && !self.json && !self.no_color && no_color.is_none_or(OsStr::is_empty)
    }
}

/// Every command. The binary carries out the first ones; [`crate::client::run`] the rest.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The whole job with a scripted model: no configuration, no account
    Demo(DemoArgs),
    /// Run the daemon in the foreground
    Serve(ServeArgs),
    /// Install, list or verify the managed Agent Server
    #[command(subcommand, arg_required_else_help = false)]
    Server(ServerCommand),
    /// Check the machine, the configuration, the install and the daemon; each finding with its remedy
    Doctor(DoctorArgs),
    /// List or verify the chain of receipts, through the daemon or, when none runs, in the file itself
    Audit(AuditArgs),
    /// Deal with a damaged ledger
    #[command(subcommand, arg_required_else_help = false)]
    Ledger(LedgerCommand),
    /// Run the daemon under the service manager of this user
    #[command(subcommand, arg_required_else_help = false)]
    Service(ServiceCommand),
    /// What is made from the definition of the commands.
    #[command(flatten)]
    Pages(PagesCommand),
    /// A command for a running daemon.
    #[command(flatten)]
    Client(ClientCommand),
}

/// Arguments of `demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Keep the temporary directory and say where it is.
    #[arg(long)]
    pub keep: bool,
}

/// Arguments of `serve`, beside the global ones.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// The directory whose `servers/` holds the managed installs, when it is not the state directory: several daemons with
    /// states of their own (the demonstration, tests) can then use one install.
    #[arg(long, hide = true, value_name = "DIR", value_parser = values::path)]
    pub install_dir: Option<PathBuf>,
}

/// Arguments of `doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// Write the findings, versions, settings and ends of the servers' logs, redacted, into this new file (mode 0600).
    #[arg(long, value_name = "FILE", value_parser = values::path)]
    pub bundle: Option<PathBuf>,
}

/// What to do with the managed Agent Server.
#[derive(Debug, Clone, Subcommand)]
pub enum ServerCommand {
    /// Install the reviewed version into a private environment, from hash-locked requirements
    Install(VersionArgs),
    /// List what is installed
    List,
    /// Compare every installed file with its recorded hash
    Verify(VersionArgs),
}

/// Which version a `server` command means.
#[derive(Debug, Clone, Args)]
pub struct VersionArgs {
    /// A reviewed version; the configured one when left out.
    #[arg(long, value_name = "V", value_parser = values::version)]
    pub version: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound_and_its_help_names_every_exit_code() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        let help = command.render_long_help().to_string();
        for exit in ExitCode::ALL {
            assert!(help.contains(&format!("{}  {}", exit.code(), exit.meaning())), "{help}");
        }
    }
}
