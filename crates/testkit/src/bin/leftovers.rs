//! `leftovers [--stand-in N] [--server N] [--json]`: see [`testkit::leftovers`]. 50 and 3 rounds of each scenario unless told.
//!
//! Exits with 0 when nothing was left and nobody hurt, 1 when not so, 2 when the run could not be made.

use std::process::ExitCode;
use testkit::leftovers::{Options, run};
use testkit::verdict::run_tool;

const USAGE: &str = "leftovers [--stand-in N] [--server N] [--json]";

fn main() -> ExitCode {
    run_tool("leftovers", USAGE, parse(std::env::args().skip(1)), |options, tell| run(options, tell))
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<(Options, bool)> {
    let (mut options, mut json) = (Options { stand_in: 50, server: 3 }, false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => json = true,
            "--stand-in" => options.stand_in = words.next()?.parse().ok()?,
            "--server" => options.server = words.next()?.parse().ok()?,
            _ => return None,
        }
    }
    Some((options, json))
}
