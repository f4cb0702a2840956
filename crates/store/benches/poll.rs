//! A poll for what is new, on a long session and on a short one, in one run: `cargo bench -p store --bench poll`.
//!
//! The ratio says whether a poll costs more where more stands in the journal. Machine and load are the same for both, as
//! the polls take turns.

#![expect(clippy::unwrap_used, reason = "what cannot be measured ends the run")]

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use store::{Check, Journal, NewEvent};

/// Events of the two sessions.
const LONG: usize = 100_000;
const SHORT: usize = 100;
/// Events that are appended at once.
const BATCH: usize = 500;
/// Polls of each session, each after one new event.
const POLLS: usize = 2_000;

fn event(number: usize) -> NewEvent {
    NewEvent {
        event_id: format!("event-{number}"),
        at: "2026-01-01T00:00:00".to_owned(),
        kind: "tool_result".to_owned(),
        payload_json: format!("{{\"text\":\"{}\"}}", "x".repeat(300)),
        is_late: false,
    }
}

/// Appends up to that many events; how long it took.
fn fill(journal: &Journal, session: &str, count: usize) -> Duration {
    let begun = Instant::now();
    for first in (0..count).step_by(BATCH) {
        journal.append(session, (first..count.min(first + BATCH)).map(event).collect(), 1).unwrap();
    }
    begun.elapsed()
}

/// One event comes, one poll gets it; how long each took.
fn poll(journal: &Journal, session: &str, number: usize) -> (Duration, Duration) {
    let begun = Instant::now();
    journal.append(session, vec![event(number)], 1).unwrap();
    let appended = begun.elapsed();
    let begun = Instant::now();
    let head = journal.head(session).unwrap();
    let page = journal.read(session, head.epoch, head.seq - 1, 100).unwrap();
    assert_eq!(page.len(), 1);
    (appended, begun.elapsed())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn main() {
    let private = std::fs::Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().permissions(private).tempdir().unwrap();
    let journal = Journal::open(directory.path(), Check::Cheap).unwrap();
    let whole = fill(&journal, "long", LONG);
    fill(&journal, "short", SHORT);
    let mut long = (Vec::new(), Vec::new());
    let mut short = (Vec::new(), Vec::new());
    for number in 0..POLLS {
        for (session, stand, times) in [("long", LONG, &mut long), ("short", SHORT, &mut short)] {
            let (appended, polled) = poll(&journal, session, stand + number);
            times.0.push(appended);
            times.1.push(polled);
        }
    }
    println!("filling {LONG} events, {BATCH} at once: {:.1} µs an event", whole.as_secs_f64() * 1e6 / LONG as f64);
    println!("medians of {POLLS} rounds:");
    for (what, long, short) in [("append one", long.0, short.0), ("poll for it", long.1, short.1)] {
        let (long, short) = (median(long), median(short));
        println!("  {what}: {long:.1} µs of {LONG}, {short:.1} µs of {SHORT}, ratio {:.2}", long / short);
    }
}
