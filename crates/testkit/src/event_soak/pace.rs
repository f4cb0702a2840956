//! How long each part of a run is and how fast things happen in it, all from the run's length.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Of a hundred parts: until caches and pools have grown, and at the end, when nothing but reading is done.
const WARM_UP_PERCENT: u32 = 15;
const READING_PERCENT: u32 = 20;
/// From this length on memory, descriptors and threads are judged: in less, what grows at the beginning is most of it.
const JUDGED_FROM: Duration = Duration::from_secs(300);

/// The pace of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// When measuring begins, from the start of the run.
    pub(super) warm_up: Duration,
    /// When the last turn may begin, from the start of the run.
    pub(super) turns_until: Duration,
    /// The whole run.
    pub(super) until: Duration,
    /// On the average between the turns of one session.
    pub(super) gap: Duration,
    /// Between the polls of one reader.
    pub(super) poll_every: Duration,
    /// For how long a reader of streams holds one at most.
    pub(super) stream_for: Duration,
    /// Between two looks at the daemon's process.
    pub(super) sample_every: Duration,
    /// `[events] rest_after_s`.
    pub(super) rest_after_s: u64,
    /// Whether growth is judged, not only told.
    pub(super) judges_growth: bool,
}

impl Pace {
    pub(super) fn of(length: Duration) -> Self {
        let between = |part: u32, least: f64, most: u64| {
            let part = length / part;
            part.clamp(Duration::from_secs_f64(least), Duration::from_secs(most))
        };
        Self {
            warm_up: length * WARM_UP_PERCENT / 100,
            turns_until: length * (100 - READING_PERCENT) / 100,
            until: length,
            gap: between(20, 0.5, 30),
            poll_every: between(30, 0.5, 15),
            stream_for: between(60, 0.5, 6),
            sample_every: between(240, 0.1, 5),
            rest_after_s: between(20, 1.0, 60).as_secs(),
            judges_growth: length >= JUDGED_FROM,
        }
    }
}

/// The time of a run.
pub(super) struct Clock {
    pub(super) pace: Pace,
    begun: Instant,
    given_up: AtomicBool,
}

impl Clock {
    /// The run begins now.
    pub(super) fn start(pace: Pace) -> Self {
        Self { pace, begun: Instant::now(), given_up: AtomicBool::new(false) }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether a turn may begin.
    pub(super) fn takes_turns(&self) -> bool {
        self.runs() && self.elapsed() < self.pace.turns_until
    }

    /// Whether readers go on.
    pub(super) fn runs(&self) -> bool {
        !self.given_up.load(Ordering::Relaxed) && self.elapsed() < self.pace.until
    }

    /// Ends everything: the daemon is gone.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_slow_and_a_short_run_is_not_judged_on_growth() {
        let hour = Pace::of(Duration::from_secs(3600));
        assert_eq!((hour.gap.as_secs(), hour.poll_every.as_secs(), hour.rest_after_s), (30, 15, 60));
        assert_eq!((hour.warm_up.as_secs(), hour.turns_until.as_secs()), (540, 2880));
        let short = Pace::of(Duration::from_secs(20));
        assert_eq!((short.gap.as_secs(), short.rest_after_s), (1, 1));
        assert!(hour.judges_growth && !short.judges_growth);
    }
}
