//! Looks at the daemon's process from outside, every few seconds, and tells every minute how the run goes.

use super::growth::Sample;
use super::pace::Clock;
use super::stage::Session;
use crate::bench::process::{descriptors, resident_mb, threads};
use crate::failure::Outcome;
use std::thread;
use std::time::Duration;

/// How often it is told how the run goes.
const TELL: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// Looks until the run is over. A daemon that is gone ends the run.
pub(super) fn watch(
    pid: u32,
    sessions: &[Session],
    clock: &Clock,
    tell: &(dyn Fn(&str) + Sync),
) -> Outcome<Vec<Sample>> {
    let mut samples = Vec::new();
    let (mut next, mut next_told) = (Duration::ZERO, TELL);
    while clock.runs() {
        if clock.elapsed() < next {
            thread::sleep(LOOK);
            continue;
        }
        next = clock.elapsed() + clock.pace.sample_every;
        let sample = look(pid, sessions, clock).inspect_err(|_| clock.give_up())?;
        if clock.elapsed() >= next_told {
            next_told += TELL;
            tell(&format!(
                "{:.0} events, {:.1} MB resident, {} descriptors, {} threads",
                sample.events, sample.resident_mb, sample.descriptors, sample.threads
            ));
        }
        samples.push(sample);
    }
    Ok(samples)
}

fn look(pid: u32, sessions: &[Session], clock: &Clock) -> Outcome<Sample> {
    let (resident_mb, anonymous_mb) = resident_mb(pid)?;
    Ok(Sample {
        at_s: clock.elapsed().as_secs_f64(),
        resident_mb,
        anonymous_mb,
        descriptors: descriptors(pid)? as f64,
        threads: threads(pid)? as f64,
        events: sessions.iter().map(Session::events).sum::<u64>() as f64,
    })
}
