//! Whether the last step is known to have begun and ended.

use serde::{Deserialize, Serialize};

use crate::log::ExecutionStatus;

/// What is known of the last step-causing call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuietState {
    /// It ended, or there was none.
    Quiet,
    /// It was sent and has not been seen to begin. A terminal status seen now may be an old one.
    AwaitingStart,
    /// It was seen to begin and not yet to end.
    AwaitingEnd,
}

/// Follows the statuses of the log from one step-causing call to the next.
///
/// A terminal status alone is never enough, since the server answers such a call before its status moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietTracker {
    state: QuietState,
}

impl QuietTracker {
    /// For a session to which nothing was sent yet: created, attached, or taken up after a restart.
    pub fn new() -> Self {
        Self { state: QuietState::Quiet }
    }

    /// A step-causing call is about to be sent. Feed only statuses appended after this point.
    pub fn note_step_call(&mut self) {
        self.state = QuietState::AwaitingStart;
    }

    /// The call was certainly never sent, or it is one that the server answers only when its step has ended
    /// (`condense`), and it was answered.
    pub fn note_step_over(&mut self) {
        self.state = QuietState::Quiet;
    }

    /// The next status of the log.
    pub fn note_status(&mut self, status: ExecutionStatus) {
        self.state = match (self.state, status) {
            (_, ExecutionStatus::Running) => QuietState::AwaitingEnd,
            (
                QuietState::AwaitingEnd,
                ExecutionStatus::Idle
                | ExecutionStatus::Paused
                | ExecutionStatus::WaitingForConfirmation
                | ExecutionStatus::Finished
                | ExecutionStatus::Error
                | ExecutionStatus::Stuck,
            ) => QuietState::Quiet,
            (
                state,
                ExecutionStatus::Idle
                | ExecutionStatus::Paused
                | ExecutionStatus::WaitingForConfirmation
                | ExecutionStatus::Finished
                | ExecutionStatus::Error
                | ExecutionStatus::Stuck
                | ExecutionStatus::Deleting
                | ExecutionStatus::Unknown,
            ) => state,
        };
    }

    /// The server process was replaced: whatever ran, runs no more.
    pub fn note_restart(&mut self) {
        self.state = QuietState::Quiet;
    }

    /// What is known now.
    pub fn state(&self) -> QuietState {
        self.state
    }

    /// Whether the last step is known to have ended. The branch and the status decide the rest, see
    /// [`crate::gate::gate`].
    pub fn is_quiet(&self) -> bool {
        self.state == QuietState::Quiet
    }
}

impl Default for QuietTracker {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_status_alone_is_not_enough() {
        for old in ExecutionStatus::ALL.into_iter().filter(|status| *status != ExecutionStatus::Running) {
            let mut tracker = QuietTracker::new();
            tracker.note_step_call();
            tracker.note_status(old);
            assert_eq!(tracker.state(), QuietState::AwaitingStart, "{old:?}");
        }
    }

    #[test]
    fn running_then_terminal_is() {
        for end in ExecutionStatus::ALL {
            let mut tracker = QuietTracker::new();
            tracker.note_step_call();
            tracker.note_status(ExecutionStatus::Running);
            assert_eq!(tracker.state(), QuietState::AwaitingEnd);
            tracker.note_status(end);
            assert_eq!(tracker.is_quiet(), end.is_terminal(), "{end:?}");
        }
    }

    #[test]
    fn a_run_nobody_asked_for_is_noticed() {
        let mut tracker = QuietTracker::default();
        assert!(tracker.is_quiet());
        tracker.note_status(ExecutionStatus::Running);
        assert!(!tracker.is_quiet());
    }

    #[test]
    fn a_restart_or_a_synchronous_answer_ends_it() {
        let mut tracker = QuietTracker::new();
        tracker.note_step_call();
        tracker.note_restart();
        assert!(tracker.is_quiet());
        tracker.note_step_call();
        tracker.note_step_over();
        assert!(tracker.is_quiet());
    }
}
