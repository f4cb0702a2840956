//! gatepost's operations, in the order in which `session` carries them out: read, settle, ask the gate, record, send.

use rules::log::ExecutionStatus as Status;

use crate::asking::{Ask, granted};
use crate::gatepost::{MAX_QUEUED, Offer, Session};
use crate::ground::Violation;
use crate::log::{EventId, Ids};
use crate::sending::{Sent, Unlocked};
use crate::server::Phase;
use crate::world::{Applied, World};

/// What an operation comes to once the server has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    Prompt,
    Accept(Offer),
    Resume,
    Compact,
    Rewind(EventId),
}

/// What holds the session's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locked {
    Settling(Intent),
    Sent(Sent),
}

impl Locked {
    pub(crate) fn encode(this: Option<Self>, start: u8, into: &mut Vec<u8>) {
        into.extend_from_slice(&match this {
            None => [0, 0, 0],
            Some(Self::Settling(Intent::Prompt)) => [1, 0, 0],
            Some(Self::Settling(Intent::Accept(offer))) => [2, u8::from(offer.start == start), offer.head],
            Some(Self::Settling(Intent::Resume)) => [3, 0, 0],
            Some(Self::Settling(Intent::Compact)) => [4, 0, 0],
            Some(Self::Settling(Intent::Rewind(to))) => [5, to, 0],
            Some(Self::Sent(sent)) => {
                let [code, at] = sent.code();
                [6, code, at]
            }
        });
    }
}

impl World {
    pub(crate) fn observe(&mut self, at: usize) {
        let (guards, start) = (self.setup.guards, self.start);
        self.sessions[at].observe(&mut self.servers[at], start, guards, &mut self.ground);
    }

    pub(crate) fn pull(&mut self, at: usize) {
        let (guards, start) = (self.setup.guards, self.start);
        self.sessions[at].pull(&mut self.servers[at], start, guards, &mut self.ground);
    }

    pub(crate) fn session(&mut self, at: usize) -> &mut Session {
        &mut self.sessions[at]
    }

    fn is_settled(&self, at: usize) -> bool {
        self.servers[at].phase == Phase::Idle || !self.setup.guards.settled
    }

    /// Whether a batch waits, as far as gatepost knows.
    pub(crate) fn waits(&self, at: usize) -> bool {
        self.sessions[at].waits(&self.reading(at).batch)
    }

    pub(crate) fn prompt(&mut self, at: usize, reject: bool) -> Applied {
        self.observe(at);
        let (runs, waits, behind) = (self.sessions[at].runs(), self.waits(at), self.sessions[at].queue > 0);
        if reject {
            return if waits && !runs { self.send_harmless(at, Sent::RejectFirst) } else { Ok(false) };
        }
        if runs || (behind && !waits) {
            let session = self.session(at);
            let room = session.queue < MAX_QUEUED;
            session.queue += u8::from(room);
            return Ok(room);
        }
        self.begin(at, Intent::Prompt)
    }

    /// A queued prompt, once the session is quiet.
    pub(crate) fn deliver(&mut self, at: usize) -> Applied {
        self.observe(at);
        let session = &self.sessions[at];
        let may = session.queue > 0 && !session.runs() && session.open.is_empty();
        if !may || self.waits(at) || !self.go(at, Intent::Prompt)? {
            return Ok(false);
        }
        self.session(at).queue -= 1;
        Ok(true)
    }

    pub(crate) fn operate(&mut self, at: usize, intent: Intent) -> Applied {
        self.observe(at);
        if matches!(intent, Intent::Rewind(_)) && self.sessions[at].runs() {
            return Ok(false);
        }
        self.begin(at, intent)
    }

    pub(crate) fn begin(&mut self, at: usize, intent: Intent) -> Applied {
        if self.is_settled(at) {
            return self.go(at, intent);
        }
        // It would wait, and then be as one begun later, unless it goes by what it has read already.
        if !self.setup.fine && self.setup.guards.fresh {
            return Ok(false);
        }
        self.session(at).locked = Some(Locked::Settling(intent));
        Ok(true)
    }

    /// The server settled while the operation waited.
    pub(crate) fn settle(&mut self, at: usize) -> Applied {
        let Some(Locked::Settling(intent)) = self.sessions[at].locked.take() else { return Ok(false) };
        if self.setup.guards.fresh {
            self.observe(at);
        }
        self.go(at, intent)?;
        Ok(true)
    }

    /// Asks the gate, records, and sends. False when it was refused.
    fn go(&mut self, at: usize, intent: Intent) -> Applied {
        let (sent, asked) = match intent {
            Intent::Rewind(to) => {
                let safe = !self.setup.guards.safe_points || self.reading(at).safe_points.contains(&to);
                return if safe { self.send_harmless(at, Sent::Navigate(to)) } else { Ok(false) };
            }
            Intent::Accept(offer) => return self.accept(at, offer),
            Intent::Prompt => (Sent::Message, self.ask(at, Ask::Message)),
            Intent::Resume => (Sent::Run, self.ask(at, Ask::Run)),
            Intent::Compact => (Sent::Condense, self.ask(at, Ask::Condense)),
        };
        if asked.is_err() || (intent == Intent::Resume && !can_resume(self.sessions[at].status)) {
            return Ok(false);
        }
        let session = self.session(at);
        session.quiet.note_step_call();
        session.locked = Some(Locked::Sent(sent));
        Ok(true)
    }

    fn accept(&mut self, at: usize, offer: Offer) -> Applied {
        let Ok(grant) = self.ask(at, Ask::Accept(offer)) else { return Ok(false) };
        let (ids, shown) = (granted(&grant), Ids::of(&self.offered(at, offer.head).batch));
        if ids != shown || ids.is_empty() || offer.start != self.start || Some(offer.head) != self.sessions[at].leaf {
            return Err(Violation::NotAsShown);
        }
        let session = &mut self.sessions[at];
        if self.setup.guards.sent && session.sent.meets(ids) {
            return Err(Violation::DoubtApproved);
        }
        session.sent = session.sent.with(ids);
        session.open.push(ids);
        session.quiet.note_step_call();
        session.locked = Some(Locked::Sent(Sent::Accept));
        self.ground.approved = self.ground.approved.with(ids);
        if self.setup.latch {
            self.ground.grants = self.ground.grants.with(ids);
        }
        Ok(true)
    }

    pub(crate) fn fork(&mut self, at: usize) -> Applied {
        self.observe(at);
        let reading = self.reading(at);
        let Some(point) = reading.safe_points.last() else { return Ok(false) };
        let point = if self.setup.guards.safe_points { *point } else { self.sessions[at].leaf.unwrap_or(*point) };
        self.send_harmless(at, Sent::Fork(point))
    }

    pub(crate) fn interrupt(&mut self, at: usize) -> Applied {
        let session = self.session(at);
        session.queue = 0;
        let granted = session.open.iter().fold(Ids::default(), |all, ids| all.with(*ids));
        session.unlocked = Some(Unlocked::Interrupt);
        self.ground.grants = self.ground.grants.without(granted);
        self.ground.cut_off();
        if granted.is_empty() && self.servers[at].phase != Phase::Starting && !self.setup.fine {
            // Nothing but another call could come between.
            return self.beside(at, false);
        }
        Ok(true)
    }

    pub(crate) fn reject(&mut self, at: usize, offer: Offer) -> Applied {
        self.observe(at);
        let may = self.may_reject(at, offer);
        if may {
            self.session(at).unlocked = Some(Unlocked::Reject);
        }
        Ok(may)
    }
}

/// As `session` has it: on a finished conversation `run` does nothing.
fn can_resume(status: Status) -> bool {
    match status {
        Status::Idle | Status::Paused | Status::Error | Status::Stuck => true,
        Status::Running | Status::WaitingForConfirmation | Status::Finished | Status::Deleting | Status::Unknown => {
            false
        }
    }
}
