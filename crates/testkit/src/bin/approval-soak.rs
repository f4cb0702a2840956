//! `approval-soak --sequences N --seed S [--only gate|server|neither] [--first K] [--json]`: see [`testkit::soak`].
//!
//! Exits with 0 when the run is sound, 1 when it is not, 2 when it could not be made.

use std::process::ExitCode;
use testkit::soak::{Only, Options, run};
use testkit::verdict::run_tool;

const USAGE: &str = "approval-soak --sequences N --seed S [--only gate|server|neither] [--first K] [--json]";

fn main() -> ExitCode {
    run_tool("approval-soak", USAGE, parse(std::env::args().skip(1)), |options, tell| run(options, tell))
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<(Options, bool)> {
    let (mut sequences, mut seed, mut first, mut only, mut json) = (None, None, 0, None, false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => json = true,
            "--sequences" => sequences = Some(words.next()?.parse().ok()?),
            "--seed" => seed = Some(words.next()?.parse().ok()?),
            "--first" => first = words.next()?.parse().ok()?,
            "--only" => {
                let word = words.next()?;
                only = Some(Only::ALL.into_iter().find(|only| only.as_str() == word)?);
            }
            _ => return None,
        }
    }
    Some((Options { sequences: sequences?, seed: seed?, first, only }, json))
}
