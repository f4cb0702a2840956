//! When a server that failed is started again: soon at first, then ever later, at last only when somebody asks.

/// Bounds of starting again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartLimits {
    /// Longest wait after the first failure of a row, in milliseconds; doubled after each further one.
    pub first_wait_ms: u64,
    /// Failures in a row that make a crash loop.
    pub loop_after: u32,
    /// Longest wait after the failure that makes a crash loop, in milliseconds; doubled after each further one.
    pub loop_wait_ms: u64,
    /// No wait is longer, in milliseconds.
    pub longest_wait_ms: u64,
    /// Failures in a row after which it is not started by itself any more.
    pub give_up_after: u32,
    /// A server that was ready for this long, in milliseconds, begins a new row when it fails.
    pub stable_ms: u64,
}

/// Failures of one workspace's server, in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failures {
    in_a_row: u32,
    next_try_at_ms: u64,
    unmet: bool,
}

/// What the failures so far mean for a start that is asked for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing speaks against it.
    Free,
    /// It waits until then, which is soon.
    BackingOff {
        /// When it may be tried.
        next_try_at_ms: u64,
    },
    /// It is refused; at that time the server is started by itself.
    CrashLooping {
        /// When it is tried again.
        next_try_at_ms: u64,
    },
    /// It is refused until then, and is not tried by itself.
    GivenUp {
        /// From when on a request tries it again.
        not_before_ms: u64,
    },
}

/// Between half of a wait and the whole of it, so that many do not come at once: `jitter_permille` is 0 to 1000.
#[must_use]
pub fn jittered_ms(whole_ms: u64, jitter_permille: u16) -> u64 {
    let half_ms = whole_ms / 2;
    let spread_ms = u128::from(whole_ms - half_ms) * u128::from(jitter_permille.min(1000)) / 1000;
    half_ms.saturating_add(u64::try_from(spread_ms).unwrap_or(u64::MAX))
}

/// A wait in milliseconds after so many doublings, never longer than `longest_ms`.
#[must_use]
pub fn doubled_ms(first_ms: u64, doublings: u32, longest_ms: u64) -> u64 {
    1_u64.checked_shl(doublings).map_or(longest_ms, |factor| first_ms.saturating_mul(factor)).min(longest_ms)
}

impl Failures {
    /// A start failed, or a server that was ready ended without being asked to. `lived_ms` is how long it was ready, 0
    /// when it never was. `jitter_permille` (0 to 1000) spreads the wait between half of it and the whole.
    #[must_use]
    pub fn failed(self, lived_ms: u64, now_ms: u64, jitter_permille: u16, limits: RestartLimits) -> Self {
        let before = if lived_ms >= limits.stable_ms { 0 } else { self.in_a_row };
        let in_a_row = before.saturating_add(1);
        let (first_ms, doublings) = if in_a_row < limits.loop_after {
            (limits.first_wait_ms, before)
        } else {
            (limits.loop_wait_ms, in_a_row.saturating_sub(limits.loop_after))
        };
        let whole_ms = doubled_ms(first_ms, doublings, limits.longest_wait_ms);
        let next_try_at_ms = now_ms.saturating_add(jittered_ms(whole_ms, jitter_permille));
        Self { in_a_row, next_try_at_ms, unmet: false }
    }

    /// No process was started, because something is missing that only a person can mend. Each request looks again; by
    /// itself nothing does.
    #[must_use]
    pub fn unmet(self) -> Self {
        Self { unmet: true, ..self }
    }

    /// A server was proved. The row ends only when it stays ready.
    #[must_use]
    pub fn proved(self) -> Self {
        Self { unmet: false, ..self }
    }

    /// How many there were in a row.
    #[must_use]
    pub fn in_a_row(self) -> u32 {
        self.in_a_row
    }

    /// What they mean for a start that is asked for now.
    #[must_use]
    pub fn standing(self, now_ms: u64, limits: RestartLimits) -> Standing {
        let next_try_at_ms = self.next_try_at_ms;
        if self.unmet || now_ms >= next_try_at_ms {
            Standing::Free
        } else if self.in_a_row >= limits.give_up_after {
            Standing::GivenUp { not_before_ms: next_try_at_ms }
        } else if self.is_loop(limits) {
            Standing::CrashLooping { next_try_at_ms }
        } else {
            Standing::BackingOff { next_try_at_ms }
        }
    }

    /// When the server is started by itself, if sessions need it; `None` when only a request starts it.
    #[must_use]
    pub fn next_by_itself(self, limits: RestartLimits) -> Option<u64> {
        (!self.unmet && self.in_a_row < limits.give_up_after).then_some(self.next_try_at_ms)
    }

    /// Whether it fails again and again, and is still tried by itself.
    #[must_use]
    pub fn is_crash_looping(self, limits: RestartLimits) -> bool {
        self.is_loop(limits) && self.next_by_itself(limits).is_some()
    }

    fn is_loop(self, limits: RestartLimits) -> bool {
        self.in_a_row >= limits.loop_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RestartLimits = RestartLimits {
        first_wait_ms: 500,
        loop_after: 3,
        loop_wait_ms: 30_000,
        longest_wait_ms: 100_000,
        give_up_after: 6,
        stable_ms: 20_000,
    };

    fn after(count: u32, jitter_permille: u16) -> Failures {
        (0..count).fold(Failures::default(), |failures, _| failures.failed(0, 1_000, jitter_permille, LIMITS))
    }

    #[test]
    fn waits_double_then_jump_to_the_loops_and_double_up_to_the_longest() {
        let waits: Vec<u64> = (1..=6).map(|count| after(count, 1000).next_try_at_ms - 1_000).collect();
        assert_eq!(waits, [500, 1_000, 30_000, 60_000, 100_000, 100_000]);
        let least: Vec<u64> = (1..=6).map(|count| after(count, 0).next_try_at_ms - 1_000).collect();
        assert_eq!(least, [250, 500, 15_000, 30_000, 50_000, 50_000]);
    }

    #[test]
    fn jitter_keeps_every_wait_between_its_half_and_its_whole() {
        for count in 1..=80 {
            let (least, most) = (after(count, 0).next_try_at_ms, after(count, 1000).next_try_at_ms);
            let mut last = 0;
            for jitter in 0..=1000 {
                let at = after(count, jitter).next_try_at_ms;
                assert!((least..=most).contains(&at) && at >= last, "{count} {jitter}");
                last = at;
            }
            assert_eq!((least - 1_000) * 2, most - 1_000);
            assert_eq!(after(count, u16::MAX).next_try_at_ms, most);
        }
    }

    #[test]
    fn each_number_of_failures_has_its_standing_until_its_time_has_come() {
        for count in 0..=10 {
            let failures = after(count, 500);
            let at = failures.next_try_at_ms;
            assert_eq!(failures.in_a_row(), count);
            assert_eq!(failures.standing(at, LIMITS), Standing::Free, "{count}");
            let Some(before) = at.checked_sub(1) else { continue };
            let expected = match count {
                1..=2 => Standing::BackingOff { next_try_at_ms: at },
                3..=5 => Standing::CrashLooping { next_try_at_ms: at },
                _ => Standing::GivenUp { not_before_ms: at },
            };
            assert_eq!(failures.standing(before, LIMITS), expected, "{count}");
            assert_eq!(failures.next_by_itself(LIMITS), (count < 6).then_some(at));
            assert_eq!(failures.is_crash_looping(LIMITS), (3..=5).contains(&count));
        }
        assert_eq!(Failures::default().next_by_itself(LIMITS), Some(0));
    }

    #[test]
    fn only_a_server_that_stayed_ready_begins_a_new_row() {
        let failures = after(5, 0);
        assert_eq!(failures.proved().in_a_row(), 5);
        assert_eq!(failures.proved().failed(19_999, 50_000, 0, LIMITS).in_a_row(), 6);
        let anew = failures.proved().failed(20_000, 50_000, 1000, LIMITS);
        assert_eq!((anew.in_a_row(), anew.next_try_at_ms), (1, 50_500));
    }

    #[test]
    fn what_a_person_must_mend_is_looked_at_by_each_request_and_never_by_itself() {
        for count in 0..=7 {
            let unmet = after(count, 0).unmet();
            assert_eq!(unmet.standing(0, LIMITS), Standing::Free);
            assert_eq!((unmet.next_by_itself(LIMITS), unmet.is_crash_looping(LIMITS)), (None, false));
            // What happened before it is not forgotten.
            assert_eq!(unmet.proved(), after(count, 0));
            assert_eq!(unmet.failed(0, 0, 0, LIMITS).in_a_row(), count + 1);
        }
    }

    #[test]
    fn a_wait_doubles_up_to_the_longest_however_often() {
        let waits: Vec<u64> = [0, 1, 2, 4, 5, 63, 64, u32::MAX].map(|times| doubled_ms(500, times, 10_000)).into();
        assert_eq!(waits, [500, 1_000, 2_000, 8_000, 10_000, 10_000, 10_000, 10_000]);
    }

    #[test]
    fn no_number_is_too_large() {
        let many = Failures { in_a_row: u32::MAX, next_try_at_ms: 0, unmet: false };
        let next = many.failed(0, u64::MAX, 1000, LIMITS);
        assert_eq!((next.in_a_row(), next.next_try_at_ms), (u32::MAX, u64::MAX));
        let wide = RestartLimits { first_wait_ms: u64::MAX, longest_wait_ms: u64::MAX, ..LIMITS };
        assert_eq!(Failures::default().failed(0, 0, 1000, wide).next_try_at_ms, u64::MAX);
    }
}
