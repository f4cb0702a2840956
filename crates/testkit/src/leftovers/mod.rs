//! What is left of a server's tree when it is stopped, or when the server, a guard, both or the daemon is killed: counted
//! from outside, over and over.
//!
//! A stand-in tree is a script below the guards and what a daemon does about one server; its rounds are short. The real
//! server runs what the agent was approved to. A bystander, another process of the same user, must live through all of it.

mod observe;
mod real;
mod speaker;
mod stand_in;
mod summary;

pub use summary::{Row, Summary};

use crate::failure::Outcome;

/// How much is tried.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Rounds of each scenario with a stand-in tree.
    pub stand_in: u32,
    /// Rounds of each scenario with the real server.
    pub server: u32,
}

/// What happens to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// It is stopped in order.
    Stop,
    /// SIGKILL of the server.
    Server,
    /// SIGKILL of the outer guard.
    FirstGuard,
    /// SIGKILL of the inner guard.
    SecondGuard,
    /// SIGKILL of both guards at once.
    BothGuards,
    /// SIGKILL of the daemon.
    Daemon,
    /// SIGKILL of the daemon and the outer guard at once.
    DaemonAndFirstGuard,
    /// SIGKILL of the daemon and the inner guard at once.
    DaemonAndSecondGuard,
}

impl Blow {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::Stop,
        Self::Server,
        Self::FirstGuard,
        Self::SecondGuard,
        Self::BothGuards,
        Self::Daemon,
        Self::DaemonAndFirstGuard,
        Self::DaemonAndSecondGuard,
    ];

    /// Whether nobody is left to ask afterwards.
    pub(crate) const fn ends_daemon(self) -> bool {
        match self {
            Self::Daemon | Self::DaemonAndFirstGuard | Self::DaemonAndSecondGuard => true,
            Self::Stop | Self::Server | Self::FirstGuard | Self::SecondGuard | Self::BothGuards => false,
        }
    }

    /// A name for tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Server => "SIGKILL of the server",
            Self::FirstGuard => "SIGKILL of the outer guard",
            Self::SecondGuard => "SIGKILL of the inner guard",
            Self::BothGuards => "SIGKILL of both guards",
            Self::Daemon => "SIGKILL of the daemon",
            Self::DaemonAndFirstGuard => "SIGKILL of daemon and outer guard",
            Self::DaemonAndSecondGuard => "SIGKILL of daemon and inner guard",
        }
    }
}

/// What the tree does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// Nothing.
    Quiet,
    /// It forks as fast as it can.
    ForkBomb,
    /// Processes that left session, group, parent, and environment.
    Detached,
}

impl Load {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Quiet, Self::ForkBomb, Self::Detached];

    /// A name for tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::ForkBomb => "fork bomb",
            Self::Detached => "detached",
        }
    }

    /// As lines of a shell script, with the limit that keeps a bomb from hurting others.
    const fn script(self) -> &'static str {
        match self {
            Self::Quiet => "",
            Self::ForkBomb => BOMB,
            Self::Detached => DETACHED,
        }
    }

    /// Processes that the load has at least, once it is under way.
    const fn processes(self) -> usize {
        match self {
            Self::Quiet => 0,
            Self::ForkBomb => 6,
            Self::Detached => 5,
        }
    }
}

/// Chains, in which every process is soon another, and branches, which grow up to the limit of the user's processes. Each is in
/// a session of its own.
const BOMB: &str = r#"
ulimit -u 300
chain='exec 2> /dev/null; setsid sh -c "$0" "$0" & exit'
for number in 1 2 3 4; do setsid sh -c "$chain" "$chain" 2> /dev/null & done
branch='while :; do (exec setsid sleep 0.2) & done'
for number in 1 2; do setsid sh -c "$branch" 2> /dev/null & done
"#;

/// Every way out of the group, the session, the parent and the environment.
const DETACHED: &str = r#"
nohup sleep 600 > /dev/null 2>&1 &
setsid nohup sleep 600 > /dev/null 2>&1 &
(setsid sh -c 'trap "" TERM HUP INT QUIT; while :; do sleep 600; done' > /dev/null 2>&1 &)
(cd / && setsid env -i /bin/sh -c 'exec /bin/sleep 600' > /dev/null 2>&1 &)
"#;

/// Runs all of it.
///
/// # Errors
/// When something cannot be set up; what is left is no error, the summary tells it.
pub fn run(options: &Options, tell: &dyn Fn(&str)) -> Outcome<Summary> {
    let mut summary = Summary::default();
    if options.stand_in > 0 {
        stand_in::run(options.stand_in, &mut summary, tell)?;
    }
    if options.server > 0 {
        real::run(options.server, &mut summary, tell)?;
    }
    Ok(summary)
}
