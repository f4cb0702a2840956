//! When a spare server is made, and whether it may become a server that is needed.

/// The spare's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpareState {
    /// There is none.
    None,
    /// It imports.
    Starting,
    /// It waits to be told of a workspace.
    Waiting,
}

/// What stands for and against making a spare now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpareNeed {
    /// The configuration asks for one, and the daemon is not stopping.
    pub is_wanted: bool,
    /// What there is.
    pub state: SpareState,
    /// Servers that are starting: they need the processor.
    pub starting: usize,
    /// Whether a server is up: it shows what a spare is to be like.
    pub any_ready: bool,
    /// When a server was last ready for the first time, in milliseconds.
    pub last_ready_at_ms: u64,
    /// When failures so far let a spare be made by itself, in milliseconds; `None` when they do not any more.
    pub next_try_at_ms: Option<u64>,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpareStep {
    /// Nothing, until something changes.
    Rest,
    /// Look again then.
    WaitUntil {
        /// In milliseconds.
        at_ms: u64,
    },
    /// Make one.
    Make,
}

/// What to do, `settle_ms` after the last server came up at the soonest.
#[must_use]
pub fn spare_step(need: SpareNeed, now_ms: u64, settle_ms: u64) -> SpareStep {
    if !need.is_wanted || need.state != SpareState::None || need.starting > 0 || !need.any_ready {
        return SpareStep::Rest;
    }
    let Some(next_try_at_ms) = need.next_try_at_ms else { return SpareStep::Rest };
    let at_ms = next_try_at_ms.max(need.last_ready_at_ms.saturating_add(settle_ms));
    if at_ms > now_ms { SpareStep::WaitUntil { at_ms } } else { SpareStep::Make }
}

/// Whether a spare may become the server that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpareFit {
    /// It may.
    Fits,
    /// Its process has ended.
    Ended,
    /// It has imported another install than the one that would be started now.
    OtherInstall,
}

/// Compares what a spare was started from with what would be started now; both are digests of an install's place and content.
#[must_use]
pub fn spare_fit(has_ended: bool, started_from: &str, needed: &str) -> SpareFit {
    if has_ended {
        SpareFit::Ended
    } else if started_from != needed || needed.is_empty() {
        SpareFit::OtherInstall
    } else {
        SpareFit::Fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: SpareNeed = SpareNeed {
        is_wanted: true,
        state: SpareState::None,
        starting: 0,
        any_ready: true,
        last_ready_at_ms: 1_000,
        next_try_at_ms: Some(0),
    };

    #[test]
    fn one_is_made_when_all_is_quiet_and_nothing_else_speaks_against_it() {
        let (both, states) = ([false, true], [SpareState::None, SpareState::Starting, SpareState::Waiting]);
        for (is_wanted, state) in both.into_iter().flat_map(|wanted| states.map(|state| (wanted, state))) {
            for (starting, any_ready) in [0, 1, 2].into_iter().flat_map(|count| both.map(|ready| (count, ready))) {
                for next_try_at_ms in [None, Some(0), Some(5_000), Some(9_000)] {
                    for now_ms in [0, 2_999, 3_000, 4_999, 5_000, 8_000] {
                        let need = SpareNeed { is_wanted, state, starting, any_ready, next_try_at_ms, ..NEED };
                        let may_be = is_wanted && state == SpareState::None && starting == 0 && any_ready;
                        let expected = match next_try_at_ms.filter(|_| may_be) {
                            None => SpareStep::Rest,
                            Some(next) if now_ms >= next && now_ms >= 3_000 => SpareStep::Make,
                            Some(next) => SpareStep::WaitUntil { at_ms: next.max(3_000) },
                        };
                        assert_eq!(spare_step(need, now_ms, 2_000), expected, "{need:?} at {now_ms}");
                    }
                }
            }
        }
        let late = SpareNeed { last_ready_at_ms: u64::MAX, ..NEED };
        assert_eq!(spare_step(late, 0, 1), SpareStep::WaitUntil { at_ms: u64::MAX });
    }

    #[test]
    fn only_a_living_one_of_the_same_install_fits() {
        for (ended, from, needed, fit) in [
            (false, "a", "a", SpareFit::Fits),
            (false, "a", "b", SpareFit::OtherInstall),
            (false, "", "", SpareFit::OtherInstall),
            (true, "a", "a", SpareFit::Ended),
            (true, "a", "b", SpareFit::Ended),
        ] {
            assert_eq!(spare_fit(ended, from, needed), fit, "{ended} {from} {needed}");
        }
    }
}
