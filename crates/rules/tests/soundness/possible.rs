//! What may be tried next; some of it will be refused.

use crate::log::{FORK_BASE, Kind, MAX_OWN_EVENTS};
use crate::moves::{Move, Raw};
use crate::operations::Locked;
use crate::replies::Replies;
use crate::sending::{Sent, Unlocked};
use crate::server::{Phase, Reply};
use crate::setup::Driver;
use crate::world::World;

/// Room that a conversation needs for whatever one move may append.
const ROOM: u8 = 12;

impl World {
    /// What a person, a fault or an intruder may do.
    pub(crate) fn operations(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        if !self.has_room() {
            return moves;
        }
        moves.extend([Move::Kill { late: false }, Move::RestartDaemon]);
        let in_step = |phase| matches!(phase, Phase::Thinking | Phase::Executing);
        if self.setup.late_kill && self.servers.iter().any(|server| in_step(server.phase)) {
            moves.push(Move::Kill { late: true });
        }
        for at in 0..self.sessions.len() {
            match self.setup.driver {
                // A session that was forked is left alone, unless everything is tried.
                Driver::Gatepost if at + 1 < self.sessions.len() && !self.setup.both => {}
                Driver::Gatepost => self.session_operations(at, &mut moves),
                Driver::Anybody => self.raw_calls(at, &mut moves),
            }
        }
        moves
    }

    fn has_room(&self) -> bool {
        self.servers.iter().all(|server| server.appended() + ROOM <= MAX_OWN_EVENTS)
    }

    fn session_operations(&self, at: usize, moves: &mut Vec<Move>) {
        let session = &self.sessions[at];
        self.losses(at, moves);
        // Whatever finds the run ending is as what comes after its end.
        let ends = self.servers[at].phase == Phase::Ending && !self.setup.fine && self.setup.guards.settled;
        if session.unlocked.is_none() && !ends {
            moves.push(Move::Interrupt(at));
            let offers = session.offers.iter().filter(|offer| offer.start == self.start);
            moves.extend(offers.map(|offer| Move::Reject(at, *offer)));
        }
        if session.locked.is_some() || ends {
            return;
        }
        moves.extend(session.offers.iter().map(|offer| Move::Approve(at, *offer)));
        // Beside an interrupt or a rejection only an accept could fare otherwise than before or after it.
        if session.unlocked.is_some() && !self.setup.fine {
            return;
        }
        moves.extend([false, true].map(|reject| Move::Prompt { at, reject }));
        moves.extend([Move::Resume(at), Move::Compact(at)]);
        if self.setup.guards.safe_points {
            moves.extend(self.reading(at).turns.iter().map(|to| Move::Rewind(at, *to)));
        } else {
            let branch = self.servers[at].path(session.leaf);
            moves.extend(branch.iter().map(|entry| Move::Rewind(at, entry.id)));
        }
        if self.setup.fork && self.sessions.len() == 1 {
            moves.push(Move::Fork(at));
        }
    }

    fn losses(&self, at: usize, moves: &mut Vec<Move>) {
        let Some(Locked::Sent(sent)) = self.sessions[at].locked else { return };
        let steps = match sent {
            Sent::Message | Sent::Run | Sent::Accept | Sent::Condense => true,
            Sent::Navigate(_) | Sent::Fork(_) | Sent::RejectFirst => false,
        };
        if self.setup.lost_calls && steps {
            moves.push(Move::NotSent(at));
            // With the guard it is a kill.
            if !self.setup.guards.answered {
                moves.push(Move::NotAnswered(at));
            }
        }
    }

    fn raw_calls(&self, at: usize, moves: &mut Vec<Move>) {
        let (session, server) = (&self.sessions[at], &self.servers[at]);
        moves.push(Move::Raw(at, Raw::Interrupt));
        if session.locked.is_none() && self.is_followed(at) {
            moves.extend(session.offers.iter().map(|offer| Move::Approve(at, *offer)));
        }
        if !server.takes_calls() {
            return;
        }
        moves.extend([Raw::Message, Raw::Run, Raw::Reject, Raw::Condense].map(|raw| Move::Raw(at, raw)));
        let actions = server.log.iter().filter(|entry| matches!(entry.kind, Kind::Action { .. }));
        moves.extend(actions.map(|entry| Move::Raw(at, Raw::Navigate(entry.id))));
        if self.setup.fork && self.sessions.len() == 1 {
            moves.push(Move::Raw(at, Raw::ForkWhole));
        }
    }

    /// What goes on without anybody's doing.
    pub(crate) fn inner_moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for (at, (session, server)) in self.sessions.iter().zip(&self.servers).enumerate() {
            self.server_moves(at, &mut moves);
            if self.is_followed(at) && (self.has_news(at) || (self.setup.fine && session.read < server.log.len())) {
                moves.push(Move::Pull(at));
            }
            if session.queue > 0 && session.locked.is_none() && server.phase == Phase::Idle {
                moves.push(Move::Deliver(at));
            }
            let settled = server.phase == Phase::Idle || !self.setup.guards.settled;
            match session.locked {
                Some(Locked::Settling(_)) if settled => moves.push(Move::Settle(at)),
                Some(Locked::Sent(_)) if server.takes_calls() => moves.push(Move::Arrive(at)),
                Some(Locked::Settling(_) | Locked::Sent(_)) | None => {}
            }
            if !session.late.is_empty() && server.takes_calls() {
                moves.push(Move::Late(at));
            }
            self.beside_moves(at, &mut moves);
        }
        moves
    }

    fn beside_moves(&self, at: usize, moves: &mut Vec<Move>) {
        let phase = self.servers[at].phase;
        let goes_on = match self.sessions[at].unlocked {
            Some(Unlocked::Interrupt | Unlocked::Read) => true,
            Some(Unlocked::Settling) => phase == Phase::Idle && self.may_note(at),
            Some(Unlocked::Reject) => self.servers[at].takes_calls(),
            None => false,
        };
        if goes_on {
            moves.push(Move::Beside { at, early: false });
        }
        if self.sessions[at].unlocked == Some(Unlocked::Interrupt) && phase == Phase::Starting {
            moves.push(Move::Beside { at, early: true });
        }
    }

    fn server_moves(&self, at: usize, moves: &mut Vec<Move>) {
        match self.servers[at].phase {
            Phase::Idle => {}
            Phase::Starting => moves.push(Move::Start(at)),
            Phase::Ending => moves.push(Move::End(at)),
            Phase::Executing => {
                moves.push(Move::Tools { at, failed: false });
                if self.setup.replies == Replies::All {
                    moves.push(Move::Tools { at, failed: true });
                }
            }
            Phase::Thinking if self.has_room() => {
                let left = self.setup.max_actions.saturating_sub(self.actions());
                moves.extend(self.setup.replies.up_to(left).map(|reply| Move::Model(at, reply)));
            }
            Phase::Thinking => moves.push(Move::Model(at, Reply::Text)),
        }
    }

    /// Actions of the logs.
    fn actions(&self) -> usize {
        let own = |at: usize| {
            let copied = if at == 0 { 0 } else { FORK_BASE };
            let entries = self.servers[at].log.iter().filter(move |entry| entry.id >= copied);
            entries.filter(|entry| matches!(entry.kind, Kind::Action { .. })).count()
        };
        (0..self.servers.len()).map(own).sum()
    }
}
