//! What many quiet sessions cost while nothing happens and nobody reads.

use super::process::{threads, used};
use super::stage::Stage;
use super::{Figure, Options, Tell};
use crate::failure::Outcome;
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};

const BOUND_SWITCHES_PER_S: f64 = 2.0;
const BOUND_CPU_PERCENT: f64 = 0.1;
/// Events of each session.
const EVENTS: u64 = 20;

pub(super) fn measure(options: &Options, tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let (sessions, span_s) = (options.size(100, 3), options.size(60, 2));
    let stage = Stage::start()?;
    stage.sessions(sessions, EVENTS)?;
    tell(&format!("  {sessions} sessions, {span_s} s"));
    let pid = stage.daemon().pid();
    // By then all of them rest.
    thread::sleep(Duration::from_secs(options.size(90, 1)));
    let (asked, before, begun) = (stage.asked()?.len(), used(pid)?, Instant::now());
    thread::sleep(Duration::from_secs(span_s));
    let (after, lasted_s) = (used(pid)?, begun.elapsed().as_secs_f64());
    let asked = stage.asked()?.len() - asked;
    let switches = after.context_switches.saturating_sub(before.context_switches) as f64 / lasted_s;
    let cpu = after.cpu_ns.saturating_sub(before.cpu_ns) as f64 / 1e9 / lasted_s * 100.0;
    let made_of = json!({
        "sessions": sessions, "lasted_s": lasted_s, "upstream_requests": asked, "threads": threads(pid)?,
    });
    stage.stop()?;
    Ok(vec![
        Figure::new("idle_context_switches", switches, "per_s", BOUND_SWITCHES_PER_S, &made_of),
        Figure::new("idle_cpu", cpu, "percent", BOUND_CPU_PERCENT, &made_of),
    ])
}
