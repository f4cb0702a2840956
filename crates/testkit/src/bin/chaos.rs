//! `chaos --rounds N --seed S [--first K] [--at POINT]... [--one-server] [--json]`: see [`testkit::chaos`].
//!
//! Exits with 0 when the run is sound, 1 when it is not, 2 when it could not be made.

use std::process::ExitCode;
use testkit::chaos::{Options, run};
use testkit::verdict::run_tool;

const USAGE: &str = "chaos --rounds N --seed S [--first K] [--at POINT]... [--one-server] [--json]";

fn main() -> ExitCode {
    run_tool("chaos", USAGE, parse(std::env::args().skip(1)), run)
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<(Options, bool)> {
    let (mut rounds, mut seed, mut first, mut json) = (None, None, 0, false);
    let (mut at, mut one_server) = (Vec::new(), false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => json = true,
            "--one-server" => one_server = true,
            "--at" => at.push(words.next()?),
            "--rounds" => rounds = Some(words.next()?.parse().ok()?),
            "--seed" => seed = Some(words.next()?.parse().ok()?),
            "--first" => first = words.next()?.parse().ok()?,
            _ => return None,
        }
    }
    Some((Options { rounds: rounds?, seed: seed?, first, at, one_server }, json))
}
