//! What is true whatever anybody believes: what was approved, what ran, what was cut off.

use crate::log::{EventId, Ids};

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    /// An action ran that nobody had approved.
    Unapproved(EventId),
    /// An action ran a second time.
    Twice(EventId),
    /// An accept was let out for an action whose accept had been sent before.
    DoubtApproved,
    /// An accept was let out that names something else than was shown, or where, or on which server.
    NotAsShown,
    /// Something was accepted and not cut off, and will not run.
    ApprovedNotRun,
    /// A prompt was taken and not cut off, and no turn will read it.
    PromptLost,
    /// A queued prompt waits for nothing.
    PromptStuck,
    /// Nothing goes on, and the session does not know.
    NeverQuiet,
    /// An accept was sent, nothing goes on, and its receipt stays open.
    DecisionOpen,
    /// No offered operation leads on.
    NoWayOn,
    /// A grant is in force that no open accept waits for.
    GrantLeft,
    /// The tripwire spoke although nothing had run unapproved.
    FalseAlarm,
    /// Something ran unapproved, its observation was read, and the tripwire is silent.
    Unnoticed,
    /// Something that ends does not end.
    Endless,
}

/// The truth, and the latch inside the server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ground {
    /// Whether the latch is in force.
    pub(crate) latched: bool,
    /// What the latch lets run, once each.
    pub(crate) grants: Ids,
    /// What a person accepted and gatepost let out.
    pub(crate) approved: Ids,
    pub(crate) executed: Ids,
    /// What was approved and then cut off: by an interrupt, a crash, a rejection, a finish before it.
    pub(crate) cut: Ids,
    /// What runs unapproved is left for the tripwire to notice.
    pub(crate) lenient: bool,
}

impl Ground {
    /// Whether the latch lets the batch run; its grants are used up.
    pub(crate) fn take_grants(&mut self, wanted: Ids) -> bool {
        if !self.latched {
            return true;
        }
        let granted = self.grants.holds(wanted);
        if granted {
            self.grants = self.grants.without(wanted);
        }
        granted
    }

    /// The actions take effect.
    pub(crate) fn execute(&mut self, run: &[EventId]) -> Result<(), Violation> {
        for id in run {
            let broken = if self.executed.has(*id) {
                Some(Violation::Twice(*id))
            } else if !self.approved.has(*id) {
                Some(Violation::Unapproved(*id))
            } else {
                None
            };
            self.executed = self.executed.with(Ids::of(&[*id]));
            if let Some(violation) = broken.filter(|_| !self.lenient) {
                return Err(violation);
            }
        }
        Ok(())
    }

    /// Whatever was approved and has not run is cut off.
    pub(crate) fn cut_off(&mut self) {
        self.cut = self.cut.with(self.approved.without(self.executed));
    }

    /// Of these, whatever was approved and has not run is cut off.
    pub(crate) fn cut_off_of(&mut self, ids: Ids) {
        self.cut = self.cut.with(self.approved.without(self.executed).and(ids));
    }

    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        for set in [self.grants, self.approved, self.executed, self.cut] {
            into.extend_from_slice(&set.0.to_le_bytes());
        }
    }
}
