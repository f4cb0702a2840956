//! `gatepost service`.

use clap::{Args, Subcommand};

/// What to do with the user service.
#[derive(Debug, Clone, Subcommand)]
pub enum ServiceCommand {
    /// Write the units of the service manager, with the global options of this call in them
    Install(ServiceInstallArgs),
    /// Stop the service and remove the units that `install` wrote
    Uninstall(ServiceRemoveArgs),
    /// Show the units, and write nothing
    Print(ServicePrintArgs),
}

/// Arguments of `service install`.
#[derive(Debug, Clone, Args)]
pub struct ServiceInstallArgs {
    /// Which service manager.
    #[command(flatten)]
    pub kind: ServiceKind,
    /// Replace a unit that `install` did not write, or that was changed since.
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `service uninstall`.
#[derive(Debug, Clone, Args)]
pub struct ServiceRemoveArgs {
    /// Which service manager.
    #[command(flatten)]
    pub kind: ServiceKind,
    /// Remove also what was changed since `install` wrote it.
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `service print`.
#[derive(Debug, Clone, Args)]
pub struct ServicePrintArgs {
    /// Which service manager; both when neither is named.
    #[command(flatten)]
    pub kind: ServiceKind,
    /// Show the systemd units of a package instead: for every user of a machine, with the program at /usr/bin/gatepost.
    #[arg(long, conflicts_with = "launchd")]
    pub package: bool,
}

/// Which service manager is meant; that of this system when neither is named.
#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
pub struct ServiceKind {
    /// systemd, as a user service.
    #[arg(long)]
    pub systemd: bool,
    /// launchd, as an agent.
    #[arg(long)]
    pub launchd: bool,
}
