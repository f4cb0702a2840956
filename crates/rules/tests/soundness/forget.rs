//! Canonical states: what no later step can tell from something shorter is forgotten, and ids are numbered anew.
//!
//! Under gatepost's own hand, which never goes back to an action, what is answered stays answered, and of the turns that
//! ended only the last [`KEPT_TURNS`] can be rewound to. Where anybody may go back to any action, each of them is kept,
//! with whatever answers the actions before it.

use crate::gatepost::Session;
use crate::ground::Ground;
use crate::log::{Entry, EventId, FORK_BASE, Ids, Kind, REUSED_CALL};
use crate::operations::Locked;
use crate::sending::Sent;
use crate::server::Conversation;
use crate::setup::Driver;
use crate::world::World;

/// Ended turns that can still be rewound to.
pub(crate) const KEPT_TURNS: usize = 2;
/// Proposals on abandoned branches that recovery after a crash may still come upon.
const KEPT_ABANDONED: usize = 2;
/// Stands for every answer that was ever given to a call under the reused id.
const MARK: EventId = 126;

impl World {
    /// Brings the world into its canonical form.
    pub(crate) fn forget(&mut self) {
        let setup = &self.setup;
        let alone = setup.driver == Driver::Gatepost;
        if !setup.forget || setup.fine || !setup.guards.safe_points || !(alone || self.servers.len() == 1) {
            return;
        }
        for (at, (server, session)) in self.servers.iter_mut().zip(&mut self.sessions).enumerate() {
            // Ids on their way are not numbered anew.
            if matches!(session.locked, Some(Locked::Settling(_) | Locked::Sent(Sent::Navigate(_) | Sent::Fork(_)))) {
                continue;
            }
            let kept = Kept::of(server, session, !alone);
            kept.renumber(server, session, &mut self.ground, if at == 0 { 0 } else { FORK_BASE });
        }
    }
}

/// The entries that can still matter, in order, hanging off each other anew.
struct Kept {
    entries: Vec<Entry>,
    /// How many of them gatepost has read.
    read: usize,
    /// Every entry of the log, and the one that stands for it.
    stands_for: Vec<(EventId, EventId)>,
}

impl Kept {
    fn of(server: &Conversation, session: &Session, every_action: bool) -> Self {
        let branch: Vec<EventId> = server.path(server.leaf).iter().map(|entry| entry.id).collect();
        let open = server.open_anywhere(session.leaf, session.read);
        let mut abandoned = server.abandoned(&branch);
        abandoned.truncate(KEPT_ABANDONED);
        let heads: Vec<EventId> = [server.leaf, session.leaf].into_iter().flatten().collect();
        let turns = server.log.iter().filter(|entry| entry.kind == Kind::User && branch.contains(&entry.id)).count();
        let mut old_turns = turns.saturating_sub(KEPT_TURNS);
        let newest_status = server.log.iter().rposition(Entry::is_status);
        let answers_reused = server.answers(REUSED_CALL);
        let needed = if every_action { server.before_actions() } else { Vec::new() };
        let mut kept = Self { entries: Vec::new(), read: 0, stands_for: Vec::new() };
        for (place, entry) in server.log.iter().enumerate() {
            let on_branch = branch.contains(&entry.id);
            let (is_root, unread) = (place == 0, place >= session.read);
            let same = match entry.kind {
                Kind::Status(_) => Some(place) == newest_status,
                Kind::User => {
                    let old = on_branch && old_turns > 0;
                    old_turns -= usize::from(old);
                    on_branch && !old
                }
                Kind::Action { .. } | Kind::Observation(_) | Kind::Reject(_) | Kind::Error(_) if every_action => {
                    on_branch || needed.contains(&entry.id)
                }
                Kind::Action { .. } => open.contains(&entry.id) || abandoned.contains(&entry.id),
                Kind::Observation(id) | Kind::Reject(id) => !on_branch && open.contains(&id),
                Kind::Agent | Kind::Error(_) | Kind::Note => false,
            };
            let is_head = !open.is_empty() && heads.contains(&entry.id);
            if same || is_root || unread || is_head {
                let kind = if same || is_root || unread { entry.kind } else { Kind::Note };
                kept.keep(Entry { kind, ..*entry }, unread);
            } else if let Some(parent) = entry.parent {
                let stand_in = kept.stand_in(parent);
                kept.stands_for.push((entry.id, stand_in));
            }
            if is_root && answers_reused {
                kept.keep(Entry { id: MARK, parent: Some(entry.id), kind: Kind::Error(REUSED_CALL) }, false);
            }
        }
        kept
    }

    fn keep(&mut self, entry: Entry, unread: bool) {
        let parent = entry.parent.map(|parent| self.stand_in(parent));
        self.entries.push(Entry { parent, ..entry });
        self.read += usize::from(!unread);
        if !entry.is_status() {
            self.stands_for.push((entry.id, entry.id));
        }
    }

    fn stand_in(&self, id: EventId) -> EventId {
        self.stands_for.iter().rev().find(|(old, _)| *old == id).map_or(id, |(_, stands)| *stands)
    }

    fn renumber(self, server: &mut Conversation, session: &mut Session, ground: &mut Ground, base: EventId) {
        let branch_events = self.entries.iter().filter(|entry| !entry.is_status());
        let fresh: Vec<(EventId, EventId)> = branch_events.map(|entry| entry.id).zip(base..).collect();
        let new = |id: EventId| fresh.iter().find(|(old, _)| *old == id).map(|(_, new)| *new);
        let stand_in = |id: EventId| new(self.stand_in(id)).unwrap_or(base);
        let entries = self.entries.iter().map(|entry| Entry {
            id: new(entry.id).unwrap_or(entry.id),
            parent: entry.parent.and_then(new),
            kind: match entry.kind {
                Kind::Action { call, what } if call != REUSED_CALL => {
                    Kind::Action { call: new(entry.id).unwrap_or(call), what }
                }
                // Of a call that is forgotten: no other has this id.
                Kind::Error(call) if call != REUSED_CALL => new(call).map_or(Kind::Note, Kind::Error),
                Kind::Observation(id) => new(id).map_or(Kind::Note, Kind::Observation),
                Kind::Reject(id) => new(id).map_or(Kind::Note, Kind::Reject),
                same @ (Kind::User
                | Kind::Agent
                | Kind::Action { .. }
                | Kind::Error(_)
                | Kind::Status(_)
                | Kind::Note) => same,
            },
        });
        server.replace(entries.collect(), base + fresh.len() as u8, stand_in, new);
        session.read = self.read;
        session.leaf = session.leaf.map(stand_in);
        session.offers.retain_mut(|offer| {
            let head = new(offer.head);
            offer.head = head.unwrap_or(offer.head);
            head.is_some()
        });
        let moved = |set: Ids| {
            let own = if base == 0 { Ids(u128::from(u64::MAX)) } else { Ids(!u128::from(u64::MAX)) };
            fresh
                .iter()
                .filter(|(old, _)| set.has(*old))
                .fold(set.without(own), |all, (_, new)| all.with(Ids::of(&[*new])))
        };
        session.sent = moved(session.sent);
        session.open.iter_mut().for_each(|ids| *ids = moved(*ids));
        session.open.retain(|ids| !ids.is_empty());
        for set in [&mut ground.grants, &mut ground.approved, &mut ground.executed, &mut ground.cut] {
            *set = moved(*set);
        }
    }
}
