//! `event-soak --minutes M --sessions N --readers R [--seed S] [--json]`: see [`testkit::event_soak`].
//!
//! Exits with 0 when nothing was lost and nothing grows, 1 when something was or does, 2 when the run could not be made.

use std::process::ExitCode;
use std::time::Duration;
use testkit::event_soak::{Options, run};
use testkit::verdict::run_tool;

const USAGE: &str = "event-soak --minutes M --sessions N --readers R [--seed S] [--json]";

fn main() -> ExitCode {
    run_tool("event-soak", USAGE, parse(std::env::args().skip(1)), run)
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<(Options, bool)> {
    let (mut length, mut sessions, mut readers, mut seed, mut json) = (None, None, None, 1, false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => json = true,
            "--minutes" => length = Some(Duration::from_secs(words.next()?.parse::<u64>().ok()?.checked_mul(60)?)),
            "--sessions" => sessions = Some(words.next()?.parse().ok()?),
            "--readers" => readers = Some(words.next()?.parse().ok()?),
            "--seed" => seed = words.next()?.parse().ok()?,
            _ => return None,
        }
    }
    Some((Options { length: length?, sessions: sessions?, readers: readers?, seed }, json))
}
