//! How well the agent's processes are confined: told from what one of them could still do when it tried.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How well the agent's processes are confined; a later one is stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Keys or the daemon are within reach, or that they are not is unproved.
    Weak,
    /// Keys, the daemon and the owner's files are out of reach; other programs of the owner are not.
    Partial,
    /// Nothing of the owner's is within reach but what the plan grants, and the network.
    Full,
}

impl Level {
    /// Every level, weakest first.
    pub const ALL: [Self; 3] = [Self::Weak, Self::Partial, Self::Full];

    /// The word of the configuration and of every view.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

/// Something that a confined process tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// Read the server's environment.
    ServerEnvironment,
    /// Open the server's memory.
    ServerMemory,
    /// Read the daemon's environment.
    DaemonEnvironment,
    /// Open the daemon's memory.
    DaemonMemory,
    /// List the daemon's state directory, where the keys are.
    StateDirectory,
    /// Be answered at the daemon's socket.
    DaemonAnswer,
    /// List the owner's home.
    HomeListing,
    /// Make a file in the owner's home.
    HomeFile,
    /// Gain privileges by executing a program.
    NewPrivileges,
    /// Signal the server.
    SignalServer,
    /// Signal the daemon.
    SignalDaemon,
    /// Signal a guard of the server's tree.
    SignalGuard,
    /// Connect to a named socket of a program outside.
    OutsideSocket,
    /// Connect to a socket with an abstract name of a program outside.
    AbstractSocket,
    /// Open another terminal of the owner's.
    OwnersTerminal,
}

impl Probe {
    /// Every probe.
    pub const ALL: [Self; 15] = [
        Self::ServerEnvironment,
        Self::ServerMemory,
        Self::DaemonEnvironment,
        Self::DaemonMemory,
        Self::StateDirectory,
        Self::DaemonAnswer,
        Self::HomeListing,
        Self::HomeFile,
        Self::NewPrivileges,
        Self::SignalServer,
        Self::SignalDaemon,
        Self::SignalGuard,
        Self::OutsideSocket,
        Self::AbstractSocket,
        Self::OwnersTerminal,
    ];

    /// What is reached while it gets through.
    fn leaves(self) -> Level {
        match self {
            Self::ServerEnvironment
            | Self::ServerMemory
            | Self::DaemonEnvironment
            | Self::DaemonMemory
            | Self::StateDirectory
            | Self::DaemonAnswer
            | Self::HomeListing
            | Self::HomeFile
            | Self::NewPrivileges => Level::Weak,
            Self::SignalServer
            | Self::SignalDaemon
            | Self::SignalGuard
            | Self::OutsideSocket
            | Self::AbstractSocket
            | Self::OwnersTerminal => Level::Partial,
        }
    }

    /// What it means that it gets through, and what would mend it.
    fn meaning(self) -> &'static str {
        match self {
            Self::ServerEnvironment => "A command can read the server's environment.",
            Self::ServerMemory => "A command can read the server's memory, and the keys in it.",
            Self::DaemonEnvironment => "A command can read the daemon's environment.",
            Self::DaemonMemory => "A command can read the daemon's memory, and the keys in it.",
            Self::StateDirectory => "A command can read the daemon's files, and the keys among them.",
            Self::DaemonAnswer => "The daemon answers a command at its socket.",
            Self::HomeListing => "A command can read the owner's home.",
            Self::HomeFile => "A command can write in the owner's home, and so be started again from outside.",
            Self::NewPrivileges => "A command can gain privileges by programs like sudo.",
            Self::SignalServer => "A command can end the server: the kernel is older than 6.12.",
            Self::SignalDaemon => "A command can end the daemon: the kernel is older than 6.12.",
            Self::SignalGuard => {
                "A command can end the guards, which end what it leaves behind: the kernel is older than 6.12."
            }
            Self::OutsideSocket => {
                "A command can ask other programs of the owner, at their named sockets (tmux, systemd, D-Bus, docker), \
                 to act for it."
            }
            Self::AbstractSocket => {
                "A command can connect to sockets with abstract names outside: the kernel is older than 6.12."
            }
            Self::OwnersTerminal => {
                "A command can write to other terminals of the owner, and read what is typed there, an approval too."
            }
        }
    }
}

/// What came of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was refused.
    Closed,
    /// It got through.
    Open,
    /// It could not be tried.
    Untried,
}

/// The level, and what keeps it from being higher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// The level.
    pub level: Level,
    /// What is missing to the highest, in words, with what would mend it; empty at [`Level::Full`].
    pub missing: Vec<String>,
    /// What else is to be known of what the agent's processes may reach: further directories, and what was passed over.
    pub notes: Vec<String>,
}

impl Reached {
    /// Where nothing was proved, and why.
    #[must_use]
    pub fn unproved(why: impl Into<String>) -> Self {
        Self { level: Level::Weak, missing: vec![why.into()], notes: Vec::new() }
    }

    /// Nothing better than [`Level::Weak`], and why, whatever was refused.
    #[must_use]
    pub fn held_weak(mut self, why: impl Into<String>) -> Self {
        self.level = Level::Weak;
        self.missing.insert(0, why.into());
        self
    }

    /// All that is to be said of it: what is missing, then the notes.
    pub fn said(&self) -> impl Iterator<Item = &String> {
        self.missing.iter().chain(&self.notes)
    }

    /// From what a confined process could do. What was not tried counts as open, and a root user is beyond the model: it
    /// walks through much of what confines.
    #[must_use]
    pub fn from_outcomes(outcomes: &BTreeMap<Probe, Outcome>, is_root: bool) -> Self {
        let (mut level, mut missing) = (Level::Full, Vec::new());
        if is_root {
            level = Level::Weak;
            missing.push("gatepost runs as root, whom little confines: run it as an ordinary user.".to_owned());
        }
        for probe in Probe::ALL {
            match outcomes.get(&probe) {
                Some(Outcome::Closed) => continue,
                Some(Outcome::Open) => missing.push(probe.meaning().to_owned()),
                Some(Outcome::Untried) | None => missing.push(format!("{} (Not tried.)", probe.meaning())),
            }
            level = level.min(probe.leaves());
        }
        Self { level, missing, notes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_closed() -> BTreeMap<Probe, Outcome> {
        Probe::ALL.into_iter().map(|probe| (probe, Outcome::Closed)).collect()
    }

    #[test]
    fn everything_closed_is_full_and_nothing_is_missing() {
        assert_eq!(
            Reached::from_outcomes(&all_closed(), false),
            Reached { level: Level::Full, missing: Vec::new(), notes: Vec::new() }
        );
    }

    #[test]
    fn each_probe_that_is_not_closed_lowers_the_level_and_is_named() {
        for probe in Probe::ALL {
            for outcome in [Some(Outcome::Open), Some(Outcome::Untried), None] {
                let mut outcomes = all_closed();
                match outcome {
                    Some(outcome) => outcomes.insert(probe, outcome),
                    None => outcomes.remove(&probe),
                };
                let reached = Reached::from_outcomes(&outcomes, false);
                assert_eq!(reached.level, probe.leaves(), "{probe:?} {outcome:?}");
                assert_eq!(reached.missing.len(), 1);
                assert!(reached.missing[0].starts_with(probe.meaning()));
            }
        }
    }

    #[test]
    fn the_weakest_counts_and_everything_missing_is_said() {
        let mut outcomes = all_closed();
        outcomes.insert(Probe::OutsideSocket, Outcome::Open);
        assert_eq!(Reached::from_outcomes(&outcomes, false).level, Level::Partial);
        outcomes.insert(Probe::StateDirectory, Outcome::Open);
        let reached = Reached::from_outcomes(&outcomes, false);
        assert_eq!((reached.level, reached.missing.len()), (Level::Weak, 2));
        assert_eq!(Reached::from_outcomes(&BTreeMap::new(), false).missing.len(), Probe::ALL.len());
    }

    #[test]
    fn root_is_weak_whatever_was_refused() {
        let reached = Reached::from_outcomes(&all_closed(), true);
        assert_eq!((reached.level, reached.missing.len()), (Level::Weak, 1));
    }

    #[test]
    fn what_was_never_run_is_weak_and_says_so_first() {
        let mut outcomes = all_closed();
        outcomes.insert(Probe::OutsideSocket, Outcome::Open);
        let reached = Reached::from_outcomes(&outcomes, false).held_weak("Never run.");
        assert_eq!((reached.level, reached.missing.len(), reached.missing[0].as_str()), (Level::Weak, 2, "Never run."));
    }

    #[test]
    fn levels_are_ordered() {
        assert!(Level::ALL.is_sorted());
        assert_eq!(Level::ALL.map(Level::as_str), ["weak", "partial", "full"]);
    }
}
