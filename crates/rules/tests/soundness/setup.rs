//! Which guards stand, and what may happen.

use crate::replies::Replies;

/// The guards of gatepost, each of which can be taken away to show that it is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guards {
    /// What pends is read by the rules, not by looking for the call id anywhere in the log.
    pub(crate) matcher: bool,
    /// Nothing but an accept goes out while something pends.
    pub(crate) pending: bool,
    /// The last step must have been seen to begin and to end.
    pub(crate) quiet: bool,
    /// The server is asked whether its run task has ended.
    pub(crate) settled: bool,
    /// The gate is asked on a read that began after the server had settled.
    pub(crate) fresh: bool,
    /// Accepts that were sent are remembered.
    pub(crate) sent: bool,
    /// An approval id stands for head and server start as well.
    pub(crate) bound: bool,
    /// Forks are taken, and rewinds end, at safe points only.
    pub(crate) safe_points: bool,
    /// That an interrupt ended a step is noted under the session's lock, so that no other step is meant.
    pub(crate) noted_locked: bool,
    /// After a restart the old statuses are read before the tracker is told of it.
    pub(crate) restart_last: bool,
    /// A grant is taken back when its accept is closed, however that comes.
    pub(crate) revoked: bool,
    /// A step-causing call that is not answered ends the server, so that it cannot be carried out later.
    pub(crate) answered: bool,
}

impl Guards {
    pub(crate) const ALL: Self = Self {
        matcher: true,
        pending: true,
        quiet: true,
        settled: true,
        fresh: true,
        sent: true,
        bound: true,
        safe_points: true,
        noted_locked: true,
        restart_last: true,
        revoked: true,
        answered: true,
    };
}

/// Who calls the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    /// gatepost alone, through its gate.
    Gatepost,
    /// Anybody with the key may call anything at any time; gatepost only decides approvals.
    Anybody,
}

/// One variant of the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) guards: Guards,
    pub(crate) driver: Driver,
    /// Whether the latch inside the server is in force.
    pub(crate) latch: bool,
    pub(crate) replies: Replies,
    /// Most actions that the model proposes altogether.
    pub(crate) max_actions: usize,
    /// Whether there may be a fork.
    pub(crate) fork: bool,
    /// Whether the session that was forked is used as well from then on.
    pub(crate) both: bool,
    /// Whether the process may be killed between the events of a step and the saving of its head.
    pub(crate) late_kill: bool,
    /// Whether calls may be lost: never sent, or sent and not answered.
    pub(crate) lost_calls: bool,
    /// Whether what can make no difference any more is forgotten.
    pub(crate) forget: bool,
    /// Whether everything is tried at its finest: reads at any time, operations begun while a run winds down, an
    /// interrupt's consequences drawn late. Without, what cannot make a difference is left out.
    pub(crate) fine: bool,
    /// Whether what runs unapproved is left for the tripwire to notice.
    pub(crate) lenient: bool,
}

impl Setup {
    /// Gate and latch, every reply, every fault; no fork.
    pub(crate) const FULL: Self = Self {
        guards: Guards::ALL,
        driver: Driver::Gatepost,
        latch: true,
        replies: Replies::All,
        max_actions: 3,
        fork: false,
        both: false,
        late_kill: true,
        lost_calls: true,
        forget: true,
        fine: false,
        lenient: false,
    };

    /// The gate alone.
    pub(crate) const GATE: Self = Self { latch: false, ..Self::FULL };

    /// The latch alone: anybody calls the server as they please.
    pub(crate) const LATCH: Self = Self { driver: Driver::Anybody, replies: Replies::Plain, ..Self::FULL };

    /// Few replies and nothing forgotten, for showing what the lack of a guard lets happen.
    pub(crate) const SMALL: Self = Self { replies: Replies::Plain, max_actions: 2, forget: false, ..Self::GATE };

    /// Everything is tried at its finest.
    pub(crate) const fn fine(self) -> Self {
        Self { fine: true, forget: false, ..self }
    }

    /// Without some guards.
    pub(crate) const fn with(self, guards: Guards) -> Self {
        Self { guards, ..self }
    }
}
