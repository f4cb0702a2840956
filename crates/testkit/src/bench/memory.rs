//! Resident memory of the daemon: with nothing to do, and once many long sessions went through it and rest.

use super::process::{resident_mb, threads};
use super::stage::Stage;
use super::{Figure, Options, Tell};
use crate::failure::Outcome;
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

const BOUND_IDLE_MB: f64 = 15.0;
const BOUND_FULL_MB: f64 = 40.0;
/// It is looked so often until nothing changes any more.
const SETTLE: Duration = Duration::from_secs(3);
const MAX_LOOKS: usize = 60;
/// What it may change by between two looks.
const STEADY_MB: f64 = 0.5;
/// Sessions rest soon, as they would after a minute by default.
const TABLES: &str = "[events]\nrest_after_s = 2\n";

pub(super) fn measure(options: &Options, tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let (count, events, long) = options.size((99, 10_000, 100_000), (3, 200, 1000));
    let stage = Stage::start_with(TABLES)?;
    let pid = stage.daemon().pid();
    stage.daemon().client().get("/v1/status")?.expect_status(200)?;
    let idle = look(pid, json!({}))?;
    // Every event goes through the daemon: read from its server, journaled, and held as far as decisions need it.
    tell(&format!("  {count} sessions of {events} events"));
    stage.sessions(count, events)?;
    tell(&format!("  one of {long} events"));
    stage.sessions(1, long)?;
    let full = look(pid, json!({"sessions": count + 1, "events_of_each": events, "events_of_one": long}))?;
    stage.stop()?;
    Ok(vec![
        Figure::new("memory_idle", idle.0, "MB", BOUND_IDLE_MB, &idle.1),
        Figure::new("memory_full", full.0, "MB", BOUND_FULL_MB, &full.1),
    ])
}

fn look(pid: u32, mut made_of: Value) -> Outcome<(f64, Value)> {
    thread::sleep(SETTLE);
    let (mut all, mut anonymous) = resident_mb(pid)?;
    for _ in 0..MAX_LOOKS {
        thread::sleep(SETTLE);
        let before = all;
        (all, anonymous) = resident_mb(pid)?;
        if (all - before).abs() < STEADY_MB {
            break;
        }
    }
    made_of["anonymous_mb"] = json!(anonymous);
    made_of["threads"] = json!(threads(pid)?);
    Ok((all, made_of))
}
