//! `event-soak --minutes M --sessions N --readers R [--seed S] [--json]`: see [`testkit::event_soak`].
//!
//! Exits with 0 when nothing was lost and nothing grows, 1 when something was or does, 2 when the run could not be made.

use std::num::{NonZeroU32, NonZeroUsize};
use std::process::ExitCode;
use std::time::Duration;
use testkit::event_soak::{Options, run};
use testkit::verdict::run_tool;

const USAGE: &str = "event-soak --minutes M --sessions N --readers R [--seed S] [--json]";

fn main() -> ExitCode {
    run_tool("event-soak", USAGE, parse(std::env::args().skip(1)), run)
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<(Options, bool)> {
    let (mut minutes, mut sessions, mut readers, mut seed, mut json) = (None, None, None, 1, false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => json = true,
            "--minutes" => minutes = Some(words.next()?.parse::<NonZeroU32>().ok()?.get()),
            "--sessions" => sessions = Some(words.next()?.parse::<NonZeroUsize>().ok()?.get()),
            "--readers" => readers = Some(words.next()?.parse::<NonZeroUsize>().ok()?.get()),
            "--seed" => seed = words.next()?.parse().ok()?,
            _ => return None,
        }
    }
    let length = Duration::from_secs(u64::from(minutes?) * 60);
    Some((Options { length, sessions: sessions?, readers: readers?, seed }, json))
}
