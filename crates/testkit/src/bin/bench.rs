//! `bench [--only PART]… [--quick] [--json]`: see [`testkit::bench`].
//!
//! Exits with 0 when every figure is within its bound, 1 when one is not, 2 when the run could not be made.

use std::process::ExitCode;
use testkit::bench::{Options, parts, run};
use testkit::verdict::run_tool;

fn main() -> ExitCode {
    let usage = format!("bench [--only PART]... [--quick] [--json]\nparts: {}", parts().join(", "));
    run_tool("bench", &usage, parse(std::env::args().skip(1)), |options, tell| run(options, tell))
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<(Options, bool)> {
    let (mut options, mut json) = (Options::default(), false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => json = true,
            "--quick" => options.quick = true,
            "--only" => options.only.push(words.next()?),
            _ => return None,
        }
    }
    Some((options, json))
}
