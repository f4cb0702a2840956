//! Capability generations: no number is given out twice, whatever the session and whatever the start of the daemon.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of the numbers of one start, far more than there are changes in it. With the 23 bits that remain of a number that JSON's
/// readers hold exactly (2^53), the daemon can be started eight million times.
const START_BITS: u32 = 30;

/// Gives out generations.
pub(crate) struct Generations(AtomicU64);

impl Generations {
    /// Those of the daemon's start of this number.
    pub(crate) fn of_start(number: u64) -> Self {
        Self(AtomicU64::new(number << START_BITS))
    }

    /// One higher than all before it.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_one_is_higher_than_all_of_the_starts_before() {
        let (first, second) = (Generations::of_start(7), Generations::of_start(8));
        let given = [first.next(), first.next(), second.next(), second.next()];
        assert!(given.is_sorted_by(|one, other| one < other), "{given:?}");
    }

    #[test]
    fn those_of_many_starts_are_exact_in_json() {
        assert!(Generations::of_start((1 << 23) - 1).next() < 1 << 53);
    }
}
