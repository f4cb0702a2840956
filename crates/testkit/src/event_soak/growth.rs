//! Whether what the daemon's process holds grows. Pure.
//!
//! Everything is compared by the medians of the first and the last quarter of a span, so that what comes and goes does not count.
//! No bound was chosen after a figure: what each allows is named by it.

use super::pace::Pace;
use crate::bench::median;
use serde::Serialize;

/// Bytes that the daemon may hold for each event that it numbered. It keeps two ids, a time and a place in an index: about 500
/// bytes of the shortest event. Some of a turn's have more to keep, so this is twice as much.
const BOUND_BYTES_PER_EVENT: f64 = 1000.0;
/// Megabytes by which it may grow while readers read and nothing is appended: what an allocator keeps of a peak. In that part of an
/// hour a thousand readers read 48,000 times, so that a leak of sixty bytes a read is beyond it.
const BOUND_READING_MB: f64 = 2.0;

/// One look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) at_s: f64,
    pub(super) resident_mb: f64,
    pub(super) anonymous_mb: f64,
    pub(super) descriptors: f64,
    pub(super) threads: f64,
    /// Events that the daemon has numbered, of all sessions.
    pub(super) events: f64,
}

/// What became of one quantity in one span.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Growth {
    /// Median of the first quarter of the span.
    pub first_quarter: f64,
    /// Median of the last quarter.
    pub last_quarter: f64,
    /// Of the straight line that fits best, for each hour.
    pub slope_per_hour: f64,
    /// The most by which the last quarter may be above the first.
    pub bound: f64,
    /// Whether it is not above it by more.
    pub flat: bool,
}

/// Every quantity.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Growths {
    /// Whether the run was long enough for these to be judged.
    pub judged: bool,
    /// Looks at the process after the warm-up.
    pub samples: usize,
    /// Resident memory in MB of a million bytes, while turns are taken. The bound grows with the events.
    pub memory_mb: Growth,
    /// What of it is no file's.
    pub anonymous_mb: Growth,
    /// Events that were numbered from the first to the last quarter of that.
    pub events: f64,
    /// Growth of resident memory over these events, in bytes.
    pub bytes_per_event: f64,
    /// Resident memory in MB while readers read on and nothing is appended.
    pub memory_reading_mb: Growth,
    /// Open descriptors while turns are taken.
    pub descriptors: Growth,
    /// Threads while turns are taken.
    pub threads: Growth,
}

impl Growths {
    /// Judges the looks of a run. `connections` is how many connections its clients have at once at most: so many descriptors, and
    /// threads that serve them, come and go by themselves. Both are compared while turns are taken only, since later no session rests,
    /// and each that does not holds a stream.
    pub(super) fn of(samples: &[Sample], pace: &Pace, connections: usize) -> Self {
        let span = |from: f64, until: f64| -> Vec<Sample> {
            samples.iter().filter(|sample| (from..until).contains(&sample.at_s)).copied().collect()
        };
        let (warm, quiet) = (pace.warm_up.as_secs_f64(), pace.turns_until.as_secs_f64());
        let (turns, reading) = (span(warm, quiet), span(quiet, f64::MAX));
        let events = growth(&turns, |sample| sample.events, f64::MAX);
        let events = events.last_quarter - events.first_quarter;
        let by_events = events * BOUND_BYTES_PER_EVENT / 1e6 + BOUND_READING_MB;
        let memory_mb = growth(&turns, |sample| sample.resident_mb, by_events);
        let connections = connections as f64;
        Self {
            judged: pace.judges_growth,
            samples: turns.len() + reading.len(),
            events,
            bytes_per_event: (memory_mb.last_quarter - memory_mb.first_quarter) * 1e6 / events,
            memory_mb,
            anonymous_mb: growth(&turns, |sample| sample.anonymous_mb, by_events),
            memory_reading_mb: growth(&reading, |sample| sample.resident_mb, BOUND_READING_MB),
            descriptors: growth(&turns, |sample| sample.descriptors, connections),
            threads: growth(&turns, |sample| sample.threads, connections),
        }
    }

    /// Whether everything is flat, or the run too short to tell.
    pub(super) fn is_flat(&self) -> bool {
        let all = [&self.memory_mb, &self.anonymous_mb, &self.memory_reading_mb, &self.descriptors, &self.threads];
        !self.judged || all.iter().all(|growth| growth.flat)
    }
}

fn growth(samples: &[Sample], of: impl Fn(&Sample) -> f64, bound: f64) -> Growth {
    let values: Vec<f64> = samples.iter().map(&of).collect();
    let quarter = values.len().div_ceil(4);
    let first_quarter = median(values.get(..quarter).unwrap_or_default());
    let last_quarter = median(values.get(values.len() - quarter..).unwrap_or_default());
    // Without a sample there is no number, and what is no number is not flat.
    let flat = last_quarter - first_quarter <= bound;
    Growth { first_quarter, last_quarter, slope_per_hour: slope(samples, of) * 3600.0, bound, flat }
}

/// By least squares, for each second.
fn slope(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    let count = samples.len() as f64;
    let (mean_at, mean) =
        (samples.iter().map(|sample| sample.at_s).sum::<f64>() / count, samples.iter().map(&of).sum::<f64>() / count);
    let (mut above, mut below) = (0.0, 0.0);
    for sample in samples {
        let at = sample.at_s - mean_at;
        above += at * (of(sample) - mean);
        below += at * at;
    }
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// An hour in which each second these grow by so much: memory while turns are taken, memory after, descriptors, threads.
    fn hour(turns_mb: f64, reading_mb: f64, descriptors: f64, threads: f64) -> Growths {
        let pace = Pace::of(Duration::from_secs(3600));
        let until = pace.turns_until.as_secs_f64();
        let sample = |number: u32| {
            let at_s = f64::from(number) * 5.0;
            let (turns, reading) = (at_s.min(until), (at_s - until).max(0.0));
            let memory = 30.0 + turns * turns_mb + reading * reading_mb;
            Sample {
                at_s,
                resident_mb: memory,
                anonymous_mb: memory,
                descriptors: 150.0 + at_s * descriptors,
                threads: 20.0 + at_s * threads,
                events: turns * 40.0,
            }
        };
        let samples: Vec<Sample> = (0..720).map(sample).collect();
        Growths::of(&samples, &pace, 28)
    }

    #[test]
    fn growth_by_events_is_allowed_and_each_other_one_is_found() {
        let sound = hour(0.02, 0.0, 0.001, 0.0);
        assert!(sound.is_flat(), "{sound:?}");
        assert_eq!(sound.bytes_per_event.round(), 500.0);
        assert_eq!((sound.memory_mb.slope_per_hour.round(), sound.memory_reading_mb.slope_per_hour), (72.0, 0.0));
        assert!(!hour(0.05, 0.0, 0.0, 0.0).is_flat());
        assert!(!hour(0.02, 0.01, 0.0, 0.0).is_flat());
        assert!(!hour(0.02, 0.0, 0.02, 0.0).is_flat());
        assert!(!hour(0.02, 0.0, 0.0, 0.02).is_flat());
    }

    #[test]
    fn a_run_without_looks_is_not_flat() {
        let pace = Pace::of(Duration::from_secs(3600));
        assert!(!Growths::of(&[], &pace, 28).is_flat());
        let short = Growths::of(&[], &Pace::of(Duration::from_secs(20)), 28);
        assert!(short.is_flat() && !short.judged);
    }
}
