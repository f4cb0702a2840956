//! Arguments of the commands about the ledger.

use clap::{Args, Subcommand};

/// Arguments of `audit`.
#[derive(Debug, Clone, Args)]
pub struct AuditArgs {
    /// What to do instead of listing.
    #[command(subcommand)]
    pub command: Option<AuditCommand>,

    /// Most links to list, 1 to 500; 50 when left out.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500))]
    pub limit: Option<u16>,

    /// List from the link after this number on; the newest ones when left out.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=999_999_999))]
    pub after: Option<u32>,
}

/// What else can be done with the chain of receipts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum AuditCommand {
    /// Walk the whole chain and name the first link that does not hold (exit code 4)
    Verify,
}

/// What to do with a damaged ledger.
#[derive(Debug, Clone, Subcommand)]
pub enum LedgerCommand {
    /// Give a damaged ledger another name, so that the next start begins a new one; no daemon may run
    SetAside {
        /// Every session, and what was accepted in it, is forgotten.
        #[arg(long)]
        forget_what_was_accepted: bool,
    },
}
