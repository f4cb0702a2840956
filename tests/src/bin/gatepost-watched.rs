//! The daemon as it ships, but watched: it kills itself, or loses a connection, at the points that a variable names. For
//! tests of crashes.
//!
//! `GATEPOST_CHAOS_POINTS` holds them, separated by commas: `kill:after:ledger.update_receipt:3` is SIGKILL when that point
//! is passed for the third time, `cut:after:call.run:1` a lost connection. What happens is told on standard error.

use rules::passage::{Passage, Point, Watch};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use testkit::chaos::POINTS_VARIABLE;

/// What is done when a point is passed for the n-th time.
struct Trap {
    kills: bool,
    point: String,
    at: u64,
    passed: AtomicU64,
}

fn main() -> ExitCode {
    let words = std::env::var(POINTS_VARIABLE).unwrap_or_default();
    let traps: Option<Vec<Trap>> = words.split(',').filter(|word| !word.is_empty()).map(parse).collect();
    let Some(traps) = traps else {
        eprintln!("{POINTS_VARIABLE} is not understood: {words}");
        return ExitCode::from(2);
    };
    gatepost::run_watched(gatepost::as_reviewed, &Watch::by(move |point| spring(&traps, point)))
}

fn parse(word: &str) -> Option<Trap> {
    let (deed, rest) = word.split_once(':')?;
    let (point, at) = rest.rsplit_once(':')?;
    let kills = match deed {
        "kill" => true,
        "cut" => false,
        _ => return None,
    };
    Some(Trap { kills, point: point.to_owned(), at: at.parse().ok()?, passed: AtomicU64::new(0) })
}

fn spring(traps: &[Trap], point: Point) -> Passage {
    let name = point.to_string();
    let mut passage = Passage::GoOn;
    for trap in traps.iter().filter(|trap| trap.point == name) {
        if trap.passed.fetch_add(1, Ordering::SeqCst) + 1 != trap.at {
            continue;
        }
        eprintln!("chaos: {} {name}", if trap.kills { "kill" } else { "cut" });
        if trap.kills {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
        }
        passage = Passage::Cut;
    }
    passage
}
