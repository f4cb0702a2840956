//! The command line of gatepost: what may be typed, and the client half of it, which talks to the daemon over its Unix socket.
//!
//! The binary parses with [`parse`], matches on [`Command`], carries out `demo`, `serve`, `server`, `service`, `doctor`, `audit` and
//! `ledger` itself, and hands a
//! [`ClientCommand`] to [`client::run`].
//!
//! # Output
//! - People get tables and text. Whatever comes from the agent or the daemon passes [`sanitize`] first.
//! - `--json` prints exactly one object, with `ok` beside the API's own fields; `ok` is true exactly when the exit code is 0.
//!   Anything else carries `error: {code, detail, hint, retryable}` in the same object, on standard output like every reply.
//! - `events` and `prompt --wait` print one object a line: events as the API has them, `{"resync": …}` where a reader must
//!   start over, and one last object with `ok`. After a resync `events` prints the events from the first one on, `prompt --wait`
//!   only those that come from then on.
//! - Progress and notes go to standard error, in both modes.

mod acceptable;
pub mod args;
pub mod client;
pub mod console;
mod daemon;
mod failure;
mod output;
pub mod pages;
mod parse;
pub mod progress;
mod render;
pub mod sanitize;
mod token;
mod transport;

pub use args::{
    AuditArgs, AuditCommand, Cli, ClientCommand, Command, DemoArgs, DoctorArgs, LedgerCommand, PagesCommand, ServeArgs,
    ServerCommand,
};
pub use client::{ClientContext, Console};
pub use daemon::Daemon;
pub use failure::{Failure, conclude};
pub use output::write;
pub use parse::{ParseOutcome, parse};
pub use token::TokenFile;

/// Links of the chain of receipts, a line each.
#[must_use]
pub fn show_audit(page: &api_types::AuditPage) -> String {
    render::audit::page(page)
}

/// What a verification of the chain of receipts found, when nothing is wrong.
#[must_use]
pub fn show_verification(verification: &api_types::AuditVerification) -> String {
    render::audit::verification(verification)
}

/// A pending batch as `gatepost approvals` shows it to a person: the whole of it, with nothing in it that could act on a terminal.
#[must_use]
pub fn show_approval(approval: &api_types::Approval, color: bool) -> String {
    render::approval::approval(approval, &render::style::Style::new(color))
}
