//! A small generator of pseudo-random numbers (SplitMix64): the same seed is the same run, on every machine.

/// The generator.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// That of one sequence of a run.
    pub(crate) fn of(seed: u64, sequence: u64) -> Self {
        let mut random = Self { state: seed };
        random.state = random.next() ^ sequence.wrapping_mul(GOLDEN);
        random
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound, which must not be 0; the bias is far below what matters here.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True that often in a hundred times.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several, each as often as its weight says.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(u64, T)], otherwise: T) -> T {
        let total = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(total);
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        otherwise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_the_same_each_time_and_unlike_its_neighbours() {
        let draw = |seed, sequence| {
            let mut random = Random::of(seed, sequence);
            (0..8).map(|_| random.next()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, 3), draw(7, 3));
        assert!(draw(7, 3) != draw(7, 4) && draw(7, 3) != draw(8, 3));
    }

    #[test]
    fn weights_are_kept_and_bounds_too() {
        let mut random = Random::of(1, 1);
        let drawn: Vec<char> = (0..1000).map(|_| random.weighted(&[(90, 'a'), (10, 'b'), (0, 'c')], 'd')).collect();
        let count = |wanted| drawn.iter().filter(|letter| **letter == wanted).count();
        assert!((850..950).contains(&count('a')), "{}", count('a'));
        assert_eq!(count('c') + count('d'), 0);
        assert!((0..1000).all(|_| random.below(3) < 3));
        assert_eq!(random.weighted(&[], 'd'), 'd');
    }
}
