//! What the canonical form of a conversation has to keep.

use rules::log::ExecutionStatus as Status;

use super::Conversation;
use crate::log::{Entry, EventId, Kind};

impl Conversation {
    /// Open actions beside this branch.
    pub(crate) fn abandoned(&self, branch: &[EventId]) -> Vec<EventId> {
        let mut found = self.unmatched_anywhere();
        found.retain(|id| !branch.contains(id));
        found
    }
}
