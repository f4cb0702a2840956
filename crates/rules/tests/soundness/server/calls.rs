//! What a call over HTTP does to a conversation.

use rules::log::ExecutionStatus as Status;

use super::{Conversation, Phase};
use crate::ground::{Ground, Violation};
use crate::log::{EventId, Kind};

impl Conversation {
    /// Whether calls that change the conversation are carried out now; while tools run they wait.
    pub(crate) fn takes_calls(&self) -> bool {
        self.phase != Phase::Executing
    }

    /// A message that starts a turn. While a task is there it is stored, and may go unread.
    pub(crate) fn message(&mut self) {
        if matches!(self.status, Status::Finished | Status::Stuck) {
            self.set_status(Status::Idle);
        }
        self.append(Kind::User);
        if !self.run() {
            self.rerun = true;
        }
    }

    /// `run`, and an accepting confirmation: whether a task was made. An accept says success either way.
    pub(crate) fn run(&mut self) -> bool {
        let free = self.phase == Phase::Idle;
        if free {
            self.phase = Phase::Starting;
        }
        free
    }

    /// A rejecting confirmation, of whatever pends.
    pub(crate) fn reject(&mut self) {
        if self.status == Status::WaitingForConfirmation {
            self.set_status(Status::Idle);
        }
        for id in self.pending() {
            self.append(Kind::Reject(id));
        }
    }

    /// One step, taken before it answers.
    pub(crate) fn condense(&mut self, ground: &mut Ground) -> Result<(), Violation> {
        self.append(Kind::Note);
        let pending = self.pending();
        if pending.is_empty() {
            self.append(Kind::Note);
        } else if self.run_batch(&pending, ground)? {
            let finish = self.has_finish();
            self.emit(false);
            if finish {
                self.set_status(Status::Finished);
            }
        } else {
            self.set_status(Status::WaitingForConfirmation);
        }
        Ok(())
    }

    pub(crate) fn navigate(&mut self, to: EventId) {
        self.leaf = Some(to);
    }

    /// `early`: it finds the task made and not begun, so it stops nothing.
    pub(crate) fn interrupt(&mut self, early: bool) {
        self.rerun = false;
        match self.phase {
            // Cancelled before its first line: no event says so.
            Phase::Starting if !early => self.phase = Phase::Ending,
            Phase::Starting | Phase::Idle | Phase::Ending => {
                if self.status == Status::Idle {
                    self.set_status(Status::Paused);
                    self.append(Kind::Note);
                }
            }
            Phase::Thinking | Phase::Executing => {
                for id in self.pending() {
                    if let Some((call, _)) = self.action(id) {
                        self.append(Kind::Error(call));
                    }
                }
                self.end(Status::Paused);
                self.append(Kind::Note);
            }
        }
    }
}
