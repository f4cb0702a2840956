//! Clients and readers at work while the daemon, its servers and single connections are killed: what happened twice, what was
//! lost.
//!
//! The daemon is the one that ships, watched: it dies, or loses a connection, before or after a named write or call. Clients
//! send again under the same key whatever got no answer; readers go on from their cursors. In the end everything is brought to
//! rest, and a pure judge compares what clients were told with the servers' own files and logs. A run is drawn from its seed;
//! when exactly something dies is not.

mod driver;
mod frames;
pub(crate) mod judge;
mod plan;
mod play;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod settle;
mod stage;
mod summary;
pub(crate) mod truth;

pub use judge::Verdict;
pub use summary::{Summary, Unresolved};

use crate::failure::{Failure, Outcome};
use crate::soak;
use plan::{DRIVERS, Round};
use play::Play;
use stage::Stage;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// The variable that a watched daemon takes from where it is to die or to lose something.
pub const POINTS_VARIABLE: &str = "GATEPOST_CHAOS_POINTS";

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// So many rounds.
    pub rounds: u64,
    /// Everything random comes from it.
    pub seed: u64,
    /// Number of the first round.
    pub first: u64,
    /// Where the daemon dies in the first round, in place of what was drawn: `after:ledger.insert_receipt:2` is the second
    /// passage of that point.
    pub at: Vec<String>,
    /// Only the first workspace is worked in, so that one server is enough.
    pub one_server: bool,
}

/// Runs the rounds. Progress goes to `tell`, a line each.
///
/// # Errors
/// When the daemon cannot be brought up, ends by itself, or no longer answers.
pub fn run(options: &Options, tell: &(dyn Fn(&str) + Sync)) -> Outcome<Summary> {
    let begun = Instant::now();
    let stamped = |line: &str| tell(&format!("{:>7.1} s  {line}", begun.elapsed().as_secs_f64()));
    let stage = Stage::start()?;
    let play = Play::new(&stage, options.seed, DRIVERS, &stamped);
    let mut summary = Summary { seed: options.seed, ..Summary::default() };
    for round in options.first..options.first.saturating_add(options.rounds) {
        stamped(&format!("round {round}"));
        let mut plan = plan::draw(options.seed, round);
        if options.one_server {
            plan.leave_one_server();
        }
        if round == options.first && !options.at.is_empty() {
            plan.die_at(&options.at)?;
        }
        play_round(&stage, &play, &plan, &stamped)?;
        summary.rounds += 1;
    }
    stamped("coming to rest");
    stage.calm(&stamped)?;
    let over = AtomicBool::new(false);
    let left = thread::scope(|scope| {
        // The logs are kept on.
        let watching = scope.spawn(|| stage.watch(&[], &over, &stamped));
        let left = play.settle(&|| over.store(true, Ordering::Release));
        over.store(true, Ordering::Release);
        joined(watching.join()).and(left)
    })?;
    summary.kills_by = stage.kills()?;
    summary.kills = summary.kills_by.values().sum();
    let (verdict, executions) = (judge::judge(&left.record), soak::judge::judge(&left.evidence));
    summary.take(left, verdict, &executions);
    summary.duration_s = begun.elapsed().as_secs();
    Ok(summary)
}

fn play_round(stage: &Stage, play: &Play<'_>, round: &Round, tell: &(dyn Fn(&str) + Sync)) -> Outcome<()> {
    stage.set_traps(round.starts.clone());
    stage.restart(tell)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| stage.watch(&round.kills, &over, tell));
        let drivers: Vec<_> = round
            .drivers
            .iter()
            .enumerate()
            .map(|(driver, steps)| scope.spawn(move || play.drive(driver, steps)))
            .collect();
        let driven: Vec<Outcome<()>> = drivers.into_iter().map(|driver| joined(driver.join())).collect();
        over.store(true, Ordering::Release);
        let watched = joined(watching.join());
        driven.into_iter().collect::<Outcome<()>>().and(watched)
    })
}

fn joined<T>(result: thread::Result<Outcome<T>>) -> Outcome<T> {
    result.unwrap_or_else(|_| Err(Failure::new("a thread of the run panicked")))
}
