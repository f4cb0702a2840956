//! The end of the process, and how the next one takes a conversation up.

use rules::log::ExecutionStatus as Status;

use super::{Call, Conversation, Phase};
use crate::log::{Entry, EventId, Kind, What};

impl Conversation {
    /// The process is killed and another takes over. `late`: right after the events of the step, before its head was
    /// saved.
    pub(crate) fn crash(&mut self, late: bool) {
        if late && self.phase == Phase::Executing {
            self.emit(false);
        }
        if late && self.phase == Phase::Thinking {
            self.propose(&[Call { what: What::Command, reused: false }]);
        }
        if let Some((leaf, status)) = self.disk.take() {
            (self.leaf, self.status) = (leaf, status);
        }
        (self.phase, self.rerun, self.unread) = (Phase::Idle, false, false);
        self.batch.clear();
        if self.status == Status::Running {
            self.set_status(Status::Error);
            self.recover();
        }
    }

    /// Answers the first open action of the whole log, whatever its branch, unless its call id was ever answered.
    fn recover(&mut self) {
        let first = self.unmatched_anywhere().first().and_then(|id| self.action(*id));
        let Some((call, _)) = first else { return };
        if !self.answers(call) {
            self.append(Kind::Error(call));
        }
    }

    pub(super) fn unmatched_anywhere(&self) -> Vec<EventId> {
        Self::unmatched(&self.log.iter().collect::<Vec<&Entry>>())
    }

    /// Whether anything in the log answers a call of this id.
    pub(crate) fn answers(&self, call: u8) -> bool {
        self.log.iter().any(|entry| match entry.kind {
            Kind::Observation(id) | Kind::Reject(id) => self.action(id).is_some_and(|(other, _)| other == call),
            Kind::Error(other) => other == call,
            Kind::User | Kind::Agent | Kind::Action { .. } | Kind::Status(_) | Kind::Note => false,
        })
    }
}
