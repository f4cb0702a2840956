//! How a guard may end the tree of a server: decided once, before the server is started, from what the guard could and could
//! not do.

use serde::{Deserialize, Serialize};

/// The first version of Landlock's interface that can keep signals within a domain.
pub const SIGNAL_SCOPE_SINCE: u32 = 6;

/// The domain of signals that a server's tree may stand in.
///
/// Landlock forbids links and renames between directories in every domain that does not grant them, as soon as one below it
/// handles files; and mounts in every domain that handles them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// With nothing but the scope of signals: nothing below it is confined by files.
    Signals,
    /// One that grants links and renames between directories as well, for what is confined by files below it.
    SignalsAndLinks,
    /// None: what is started below both makes mounts and is confined by files.
    None,
}

impl Domain {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Signals, Self::SignalsAndLinks, Self::None];

    /// The one that harms nothing, where processes below it are confined by files and where they make mounts.
    #[must_use]
    pub const fn harmless(confined_by_files: bool, makes_mounts: bool) -> Self {
        match (confined_by_files, makes_mounts) {
            (false, _) => Self::Signals,
            (true, false) => Self::SignalsAndLinks,
            (true, true) => Self::None,
        }
    }

    /// A stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signals => "signals",
            Self::SignalsAndLinks => "signals-and-links",
            Self::None => "none",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|domain| domain.as_str() == name)
    }
}

/// What came of a signal to the daemon that does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signalled {
    /// It would be delivered.
    Delivered,
    /// It is not permitted.
    Refused,
    /// Anything else: the daemon has ended, or the kernel does not say.
    Unknown,
}

/// What a guard saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Whether it runs as root.
    pub is_root: bool,
    /// The domain that it was allowed.
    pub domain: Domain,
    /// The version of Landlock's interface; `None` when there is none.
    pub landlock_abi: Option<u32>,
    /// The daemon, before the guard entered a domain.
    pub before: Signalled,
    /// Whether the guard entered a domain that was enforced in full.
    pub entered: bool,
    /// The daemon, from within.
    pub after: Signalled,
    /// Whether the server is put into a cgroup of its own.
    pub has_cgroup: bool,
}

/// How the tree of a server is ended; a later one reaches less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// One signal to everything in the guards' domain, which nothing leaves.
    Scope,
    /// The kernel kills the server's cgroup, which a process that may write there can leave.
    Cgroup,
    /// What hangs below the guards is killed look by look.
    Walk,
}

impl Means {
    /// A stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::Cgroup => "cgroup",
            Self::Walk => "walk",
        }
    }
}

/// Why one signal to everything is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotArmed {
    /// For root it would reach every user's processes, if anything were wrong.
    Root,
    /// Below a domain of signals the agent could not link or rename between directories.
    LinksKept,
    /// The kernel cannot keep signals within a domain.
    OldKernel,
    /// The kernel did not enforce the domain.
    NotEntered,
    /// A refusal would prove nothing: the daemon was out of reach before.
    NothingToTry,
    /// The daemon was not refused from within.
    NotProved,
}

impl NotArmed {
    /// In words, with what would mend it.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Root => {
                "gatepost runs as root, which is never allowed one signal to everything: run it as an ordinary user"
            }
            Self::LinksKept => {
                "below a domain of signals, with bubblewrap, the agent could not link or rename between directories"
            }
            Self::OldKernel => "the kernel keeps no signals within a domain: Linux 6.12 with Landlock does",
            Self::NotEntered => "the kernel did not enforce a domain of signals",
            Self::NothingToTry => "the daemon could not be signalled at all, so its refusal would prove nothing",
            Self::NotProved => "a signal left the domain that was to keep it",
        }
    }
}

/// What a guard may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct Armament {
    /// What ends the tree first; a walk follows in each case and looks whether anything is left.
    pub means: Means,
    /// Why it is not [`Means::Scope`].
    pub not_armed: Option<NotArmed>,
}

/// Decides. Everything but a proof that could have failed is none: the daemon was in reach before, and from within the
/// domain it is refused.
pub fn armament(seen: &Seen) -> Armament {
    let otherwise = if seen.has_cgroup { Means::Cgroup } else { Means::Walk };
    match refusal(seen) {
        None => Armament { means: Means::Scope, not_armed: None },
        Some(why) => Armament { means: otherwise, not_armed: Some(why) },
    }
}

/// What there is to end a tree with, before anything was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// Whether the daemon runs as root.
    pub is_root: bool,
    /// The version of Landlock's interface; `None` when there is none, and then nothing is confined by files.
    pub landlock_abi: Option<u32>,
    /// Whether what a server starts is given an outer namespace, which is made by mounts.
    pub has_outer: bool,
    /// Whether a server is put into a cgroup of its own.
    pub has_cgroup: bool,
}

/// What a guard will decide there, when the kernel does as its version says. Each start of a server proves it anew.
pub fn expected(offered: Offered) -> Armament {
    let Offered { is_root, landlock_abi, has_outer, has_cgroup } = offered;
    let domain = Domain::harmless(landlock_abi.is_some(), has_outer);
    let (before, after) = (Signalled::Delivered, Signalled::Refused);
    armament(&Seen { is_root, domain, landlock_abi, before, entered: true, after, has_cgroup })
}

fn refusal(seen: &Seen) -> Option<NotArmed> {
    if seen.is_root {
        return Some(NotArmed::Root);
    }
    if seen.domain == Domain::None {
        return Some(NotArmed::LinksKept);
    }
    if seen.landlock_abi.is_none_or(|version| version < SIGNAL_SCOPE_SINCE) {
        return Some(NotArmed::OldKernel);
    }
    match (seen.before, seen.entered, seen.after) {
        (Signalled::Refused | Signalled::Unknown, _, _) => Some(NotArmed::NothingToTry),
        (Signalled::Delivered, false, _) => Some(NotArmed::NotEntered),
        (Signalled::Delivered, true, Signalled::Delivered | Signalled::Unknown) => Some(NotArmed::NotProved),
        (Signalled::Delivered, true, Signalled::Refused) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWERS: [Signalled; 3] = [Signalled::Delivered, Signalled::Refused, Signalled::Unknown];
    const ABIS: [Option<u32>; 6] = [None, Some(0), Some(5), Some(6), Some(7), Some(u32::MAX)];

    fn every() -> Vec<Seen> {
        let mut every = Vec::new();
        for is_root in [false, true] {
            for landlock_abi in ABIS {
                for before in ANSWERS {
                    for entered in [false, true] {
                        for after in ANSWERS {
                            for (domain, has_cgroup) in
                                Domain::ALL.into_iter().flat_map(|domain| [(domain, false), (domain, true)])
                            {
                                every.push(Seen { is_root, domain, landlock_abi, before, entered, after, has_cgroup });
                            }
                        }
                    }
                }
            }
        }
        every
    }

    #[test]
    fn only_a_full_proof_arms() {
        let mut armed = 0;
        for seen in every() {
            let proved = !seen.is_root
                && seen.domain != Domain::None
                && seen.landlock_abi >= Some(SIGNAL_SCOPE_SINCE)
                && seen.before == Signalled::Delivered
                && seen.entered
                && seen.after == Signalled::Refused;
            let armament = armament(&seen);
            assert_eq!(armament.means == Means::Scope, proved, "{seen:?}");
            assert_eq!(armament.not_armed.is_none(), proved, "{seen:?}");
            armed += usize::from(proved);
        }
        assert_eq!(armed, 12);
    }

    #[test]
    fn without_a_proof_a_cgroup_is_killed_and_without_one_the_tree_is_walked() {
        for seen in every() {
            match armament(&seen).means {
                Means::Scope => {}
                Means::Cgroup => assert!(seen.has_cgroup, "{seen:?}"),
                Means::Walk => assert!(!seen.has_cgroup, "{seen:?}"),
            }
        }
    }

    #[test]
    fn each_reason_is_told() {
        let good = Seen {
            is_root: false,
            domain: Domain::SignalsAndLinks,
            landlock_abi: Some(7),
            before: Signalled::Delivered,
            entered: true,
            after: Signalled::Refused,
            has_cgroup: false,
        };
        let why = |seen| armament(&seen).not_armed;
        assert_eq!(why(good), None);
        assert_eq!(why(Seen { is_root: true, ..good }), Some(NotArmed::Root));
        assert_eq!(why(Seen { domain: Domain::None, ..good }), Some(NotArmed::LinksKept));
        assert_eq!(why(Seen { landlock_abi: Some(5), ..good }), Some(NotArmed::OldKernel));
        assert_eq!(why(Seen { entered: false, ..good }), Some(NotArmed::NotEntered));
        assert_eq!(why(Seen { before: Signalled::Refused, ..good }), Some(NotArmed::NothingToTry));
        assert_eq!(why(Seen { after: Signalled::Delivered, ..good }), Some(NotArmed::NotProved));
        assert_eq!(why(Seen { after: Signalled::Unknown, ..good }), Some(NotArmed::NotProved));
    }

    #[test]
    fn what_is_offered_tells_what_will_be_decided() {
        let offered = Offered { is_root: false, landlock_abi: Some(7), has_outer: true, has_cgroup: false };
        for (offered, means, not_armed) in [
            (offered, Means::Walk, Some(NotArmed::LinksKept)),
            (Offered { has_outer: false, ..offered }, Means::Scope, None),
            (Offered { has_cgroup: true, ..offered }, Means::Cgroup, Some(NotArmed::LinksKept)),
            (Offered { has_outer: false, landlock_abi: Some(5), ..offered }, Means::Walk, Some(NotArmed::OldKernel)),
            (Offered { landlock_abi: None, has_cgroup: true, ..offered }, Means::Cgroup, Some(NotArmed::OldKernel)),
            (Offered { is_root: true, has_outer: false, ..offered }, Means::Walk, Some(NotArmed::Root)),
        ] {
            assert_eq!(expected(offered), Armament { means, not_armed }, "{offered:?}");
        }
    }

    #[test]
    fn a_domain_takes_neither_links_nor_mounts_from_what_needs_them() {
        assert_eq!(Domain::harmless(false, false), Domain::Signals);
        assert_eq!(Domain::harmless(false, true), Domain::Signals);
        assert_eq!(Domain::harmless(true, false), Domain::SignalsAndLinks);
        assert_eq!(Domain::harmless(true, true), Domain::None);
        for domain in Domain::ALL {
            assert_eq!(Domain::parse(domain.as_str()), Some(domain));
        }
        assert_eq!(Domain::parse("files"), None);
    }
}
