//! Who may speak at the daemon's socket, from what the kernel says of the process that connected and of those above it.
//!
//! Descent from the living daemon is decided elsewhere and first. What is decided here is about the others: whether one of
//! them may be what a daemon that was killed has left, whose ancestors died. Such a process shows the marks of the
//! confinement, which no process without privileges can shed, and its children inherit them. Where somebody else
//! confined it, the process that started it tells.

/// Why a peer is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerRefusal {
    /// The kernel does not say who connected.
    NotIdentified,
    /// It belongs to another user.
    OtherUser,
    /// It descends from this daemon, so from one of its servers.
    Descendant,
    /// Whether it descends from this daemon could not be told.
    DescentUnknown,
    /// It is confined as the agent's processes are, and nothing proves that it is not one of an earlier daemon's.
    AncestryLost,
    /// The check itself failed.
    CheckFailed,
}

impl PeerRefusal {
    /// Every reason.
    pub const ALL: [Self; 6] = [
        Self::NotIdentified,
        Self::OtherUser,
        Self::Descendant,
        Self::DescentUnknown,
        Self::AncestryLost,
        Self::CheckFailed,
    ];

    /// Stable code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotIdentified => "not_identified",
            Self::OtherUser => "other_user",
            Self::Descendant => "descendant",
            Self::DescentUnknown => "descent_unknown",
            Self::AncestryLost => "ancestry_lost",
            Self::CheckFailed => "check_failed",
        }
    }
}

/// What a process without privileges can get and never shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// It gains no privileges by executing a program.
    pub no_new_privileges: bool,
    /// Number of filters of system calls that it is under.
    pub filters: u32,
    /// The hard limit of its core files is zero.
    pub no_core_files: bool,
}

impl Marks {
    /// Whether a process with these marks may have come through the wrapper, which leaves all three. `floor` is the number
    /// of filters that everything here is under, as in a container: that of process 1.
    pub fn are_the_wrappers(self, floor: u32) -> bool {
        self.no_new_privileges && self.filters > floor && self.no_core_files
    }
}

/// One process of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relative {
    /// Its marks.
    pub marks: Marks,
    /// The session that it is in; `None` when that is not visible from here.
    pub session: Option<u32>,
}

/// Whether a peer that does not descend from this daemon may be one that an earlier daemon left. `chain` begins with the
/// peer and goes up, parent by parent, at least to the first without the wrapper's marks.
///
/// Parents are always true ancestors: an orphan falls to one. But those in between may have died, an earlier daemon among
/// them. That they did not is proved by the session: a process is born into its parent's and can only leave it for one of its
/// own, and each server begins in one of its own. So the topmost process with the marks, when it shares its session with the
/// process above it, was not born below a server, unless that process is itself of a server's tree; the server is not
/// confined, but is forbidden core files as all below a daemon are.
///
/// INVARIANT I9: what proves nothing is refused.
pub fn may_be_a_leftover(chain: &[Relative], floor: u32) -> bool {
    let free = chain.iter().position(|one| !one.marks.are_the_wrappers(floor));
    match free.and_then(|free| Some((free.checked_sub(1)?, chain.get(free)?))) {
        // The peer itself shows no marks.
        None => free.is_none(),
        Some((topmost, above)) => {
            let session = chain.get(topmost).and_then(|one| one.session);
            session.is_none() || session != above.session || above.marks.no_core_files
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSIONS: [Option<u32>; 3] = [None, Some(7), Some(8)];

    fn marks() -> impl Iterator<Item = Marks> {
        (0..12).map(|bits| Marks { no_new_privileges: bits & 1 != 0, no_core_files: bits & 2 != 0, filters: bits >> 2 })
    }

    fn relatives() -> impl Iterator<Item = Relative> + Clone {
        let all: Vec<Relative> =
            marks().flat_map(|marks| SESSIONS.map(|session| Relative { marks, session })).collect();
        all.into_iter()
    }

    #[test]
    fn the_wrapper_leaves_three_marks_and_less_are_somebody_elses() {
        for marks in marks() {
            for floor in 0..3 {
                let expected = marks.no_new_privileges && marks.no_core_files && marks.filters > floor;
                assert_eq!(marks.are_the_wrappers(floor), expected, "{marks:?} above {floor}");
            }
        }
    }

    /// Every peer with every parent and grandparent: one with the marks passes only below a process without any of the
    /// wrapper's that is in its session, or below others with the marks of which that is true.
    #[test]
    fn one_with_the_marks_passes_only_when_its_session_proves_who_started_it() {
        let mut passed = 0;
        for floor in [0, 1] {
            let confined = |one: &Relative| one.marks.are_the_wrappers(floor);
            let proved = |below: &Relative, above: &Relative| {
                below.session.is_some() && below.session == above.session && !above.marks.no_core_files
            };
            for peer in relatives() {
                assert_eq!(may_be_a_leftover(&[peer], floor), confined(&peer), "{peer:?} at the top");
                for parent in relatives() {
                    for above in relatives() {
                        let refused = may_be_a_leftover(&[peer, parent, above], floor);
                        let expected = match (confined(&peer), confined(&parent), confined(&above)) {
                            (false, _, _) => false,
                            (true, false, _) => !proved(&peer, &parent),
                            (true, true, false) => !proved(&parent, &above),
                            (true, true, true) => true,
                        };
                        assert_eq!(refused, expected, "{peer:?} below {parent:?} below {above:?}, floor {floor}");
                        passed += usize::from(confined(&peer) && !refused);
                    }
                }
            }
        }
        assert!(passed > 0);
    }

    #[test]
    fn nothing_known_is_refused() {
        assert!(may_be_a_leftover(&[], 0));
    }

    #[test]
    fn reasons_have_different_codes() {
        let codes: std::collections::BTreeSet<&str> = PeerRefusal::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(codes.len(), PeerRefusal::ALL.len());
    }
}
