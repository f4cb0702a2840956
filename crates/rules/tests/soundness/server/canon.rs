//! What the canonical form of a conversation has to keep.

use super::Conversation;
use crate::log::{Entry, EventId, Kind};

impl Conversation {
    /// Open actions beside this branch.
    pub(crate) fn abandoned(&self, branch: &[EventId]) -> Vec<EventId> {
        let mut found = self.unmatched_anywhere();
        found.retain(|id| !branch.contains(id));
        found
    }

    /// Open on the branch, on the one that a crash leads back to, or at this head of so much of the log.
    pub(crate) fn open_anywhere(&self, head: Option<EventId>, read: usize) -> Vec<EventId> {
        let seen: Vec<EventId> = self.log.iter().take(read).map(|entry| entry.id).collect();
        let (mut as_read, on_disk) = (self.path(head), self.disk.map(|(leaf, _)| self.path(leaf)).unwrap_or_default());
        as_read.retain(|entry| seen.contains(&entry.id));
        let mut open = self.batch.clone();
        open.extend([self.path(self.leaf), on_disk, as_read].iter().flat_map(|path| Self::unmatched(path)));
        open
    }

    /// Every action, all that stands before one on its branch, and what answers each first.
    pub(crate) fn before_actions(&self) -> Vec<EventId> {
        let is_action = |entry: &&Entry| matches!(entry.kind, Kind::Action { .. });
        let actions: Vec<EventId> = self.log.iter().filter(is_action).map(|entry| entry.id).collect();
        let mut needed: Vec<EventId> =
            actions.iter().flat_map(|id| self.path(Some(*id))).map(|entry| entry.id).collect();
        for id in actions {
            let call = self.action(id).map(|(call, _)| Kind::Error(call));
            let answers = |entry: &&Entry| {
                entry.kind == Kind::Observation(id) || entry.kind == Kind::Reject(id) || Some(entry.kind) == call
            };
            needed.extend(self.log.iter().find(answers).map(|entry| entry.id));
        }
        needed
    }

    /// The log in other words: `stand_in` gives an event that stands for a forgotten one, `new` the new id of a kept one.
    pub(crate) fn replace(
        &mut self,
        log: Vec<Entry>,
        next_id: EventId,
        stand_in: impl Fn(EventId) -> EventId,
        new: impl Fn(EventId) -> Option<EventId>,
    ) {
        (self.log, self.next_id) = (log, next_id);
        self.leaf = self.leaf.map(&stand_in);
        self.disk = self.disk.map(|(leaf, status)| (leaf.map(&stand_in), status));
        self.batch = self.batch.iter().filter_map(|id| new(*id)).collect();
    }
}
