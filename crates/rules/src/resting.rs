//! Which sessions at rest are to be read in a round of looks at them.

/// Each log is read in one of so many rounds, whatever its end is said to be.
///
/// Where a log ends is told by the start-up module, and what runs unasked runs where that module failed at its work: the
/// server's own answer counts too, in ten minutes with the rounds of a minute that are the default.
pub const ROUNDS_TO_A_READ: u64 = 10;

/// Whether a session is to be read in this round: it is its turn, or nothing proves that its log ends where it is known to.
///
/// INVARIANT I1: a log is append-only, so that the same last event is the same log; anything else, and no answer at all,
/// is no proof.
pub fn must_read(session_id: &str, round: u64, known_end: Option<&str>, told_end: Option<&str>) -> bool {
    let is_unchanged = told_end.is_some() && told_end == known_end;
    !is_unchanged || is_turn(session_id, round)
}

/// By its id, so that the reads are spread over the rounds and whoever else rests moves nobody's turn.
fn is_turn(session_id: &str, round: u64) -> bool {
    let number: u64 = session_id.bytes().map(u64::from).sum();
    number % ROUNDS_TO_A_READ == round % ROUNDS_TO_A_READ
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "11111111-1111-4111-8111-111111111111";

    fn rounds_without_a_read(known: Option<&str>, told: Option<&str>) -> usize {
        (0..ROUNDS_TO_A_READ).filter(|round| !must_read(ID, *round, known, told)).count()
    }

    #[test]
    fn only_the_known_end_spares_a_read() {
        for (known, told) in [(Some("a"), Some("b")), (Some("a"), None), (None, Some("b")), (None, None)] {
            assert_eq!(rounds_without_a_read(known, told), 0, "{known:?} {told:?}");
        }
    }

    #[test]
    fn each_is_read_in_one_of_ten_rounds_all_the_same() {
        assert_eq!(rounds_without_a_read(Some("a"), Some("a")), 9);
        let due =
            |first: u64| (first..first + ROUNDS_TO_A_READ).any(|round| must_read(ID, round, Some("a"), Some("a")));
        assert!((0..30).all(due));
    }

    #[test]
    fn the_reads_are_spread_over_the_rounds() {
        let ids: Vec<String> =
            (0..100_u64).map(|number| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let due = |round| ids.iter().filter(|id| must_read(id, round, Some("a"), Some("a"))).count();
        assert!((0..ROUNDS_TO_A_READ).map(due).all(|due| (1..=25).contains(&due)));
    }
}
