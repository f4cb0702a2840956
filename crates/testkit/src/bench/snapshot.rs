//! A snapshot among many sessions over a snapshot of the only one.

use super::figure::median;
use super::stage::Stage;
use super::{Figure, Options, Tell};
use crate::failure::{Failure, Outcome};
use serde_json::json;

const BOUND: f64 = 1.2;
/// Events of each session.
const EVENTS: u64 = 100;

pub(super) fn measure(options: &Options, tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let counts = options.size([1, 20, 100], [1, 2, 4]);
    // A daemon for each, so that they can take turns.
    let mut daemons = Vec::new();
    for count in counts {
        tell(&format!("  {count} sessions"));
        let stage = Stage::start()?;
        let sessions = stage.sessions(count, EVENTS)?;
        let target = sessions.first().map(|session| session.path()).ok_or_else(|| Failure::new("no session"))?;
        daemons.push((target, stage, Vec::new()));
    }
    // Only now: an idle connection is not kept for as long as a crowd takes.
    let mut lines = daemons.iter().map(|(_, stage, _)| stage.line()).collect::<Outcome<Vec<_>>>()?;
    for _ in 0..options.size(2000, 10) {
        for ((target, _, took), line) in daemons.iter_mut().zip(&mut lines) {
            let answer = line.ask("GET", target, None)?;
            answer.json()?;
            took.push(answer.ms());
        }
    }
    let medians: Vec<f64> = daemons.iter().map(|(.., took)| median(took)).collect();
    let (Some(alone), Some(crowded)) = (medians.first(), medians.last()) else { return Ok(Vec::new()) };
    let made_of = json!({"sessions": counts, "p50_ms": medians, "events_of_each": EVENTS});
    let figure = Figure::new("snapshot_in_a_crowd", crowded / alone, "ratio", BOUND, &made_of);
    drop(lines);
    daemons.into_iter().try_for_each(|(_, stage, _)| stage.stop())?;
    Ok(vec![figure])
}
