//! Calls on their way: they arrive and are answered, or are lost; interrupts and rejections go beside them.

use crate::gatepost::Session;
use crate::ground::Violation;
use crate::log::{EventId, Ids};
use crate::operations::{Intent, Locked};
use crate::server::Phase;
use crate::setup::Driver;
use crate::world::{Applied, World};

/// A call that was recorded and is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Message,
    Run,
    Accept,
    Condense,
    Navigate(EventId),
    Fork(EventId),
    /// The rejection that a prompt asked for.
    RejectFirst,
}

/// What goes beside the session's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unlocked {
    Interrupt,
    /// The interrupt was answered; the run task ends.
    Settling,
    /// The session was read after it.
    Read,
    Reject,
}

impl Sent {
    /// What tells it from others.
    pub(crate) fn code(self) -> [u8; 2] {
        match self {
            Self::Message => [0, 0],
            Self::Run => [1, 0],
            Self::Accept => [2, 0],
            Self::Condense => [3, 0],
            Self::Navigate(to) => [4, to],
            Self::Fork(from) => [5, from],
            Self::RejectFirst => [6, 0],
        }
    }
}

impl World {
    /// A call that causes no step.
    pub(crate) fn send_harmless(&mut self, at: usize, sent: Sent) -> Applied {
        self.session(at).locked = Some(Locked::Sent(sent));
        if self.setup.fine || !self.servers[at].takes_calls() { Ok(true) } else { self.arrive(at) }
    }

    /// The call of the operation reaches the server and is answered.
    pub(crate) fn arrive(&mut self, at: usize) -> Applied {
        let Some(Locked::Sent(sent)) = self.sessions[at].locked.take() else { return Ok(false) };
        self.carry_out(at, sent)?;
        match sent {
            Sent::Message | Sent::Run | Sent::Accept => {}
            // It took its step before it answered.
            Sent::Condense => self.session(at).quiet.note_step_over(),
            Sent::Navigate(_) | Sent::Fork(_) => self.observe(at),
            Sent::RejectFirst => {
                self.observe(at);
                if self.reading(at).batch.is_empty() {
                    self.begin(at, Intent::Prompt)?;
                }
            }
        }
        Ok(true)
    }

    fn carry_out(&mut self, at: usize, sent: Sent) -> Result<(), Violation> {
        let server = &mut self.servers[at];
        match sent {
            Sent::Message => {
                server.message();
                server.unread = true;
            }
            // An accept is answered with success either way.
            Sent::Run | Sent::Accept => {
                server.run();
            }
            Sent::Condense => server.condense(&mut self.ground)?,
            Sent::Navigate(to) => {
                server.navigate(to);
                server.unread = false;
            }
            Sent::Fork(from) => self.add_fork(at, Some(from)),
            Sent::RejectFirst => self.reject_at_server(at),
        }
        Ok(())
    }

    /// The call certainly never left: what was recorded for it is withdrawn.
    pub(crate) fn not_sent(&mut self, at: usize) -> Applied {
        let session = self.session(at);
        let Some(Locked::Sent(sent)) = session.locked.take() else { return Ok(false) };
        session.quiet.note_step_over();
        if let (Sent::Accept, Some(ids)) = (sent, session.open.pop()) {
            session.sent = session.sent.without(ids);
            self.ground.approved = self.ground.approved.without(ids);
            self.ground.grants = self.ground.grants.without(ids);
        }
        Ok(true)
    }

    /// The call is not answered, and may still be carried out later. With the guard it ends the server, which is a kill.
    pub(crate) fn not_answered(&mut self, at: usize) -> Applied {
        let session = self.session(at);
        let Some(Locked::Sent(sent)) = session.locked.take() else { return Ok(false) };
        session.late.push(sent);
        if let (Sent::Accept, Some(ids)) = (sent, session.open.last().copied()) {
            self.ground.grants = self.ground.grants.without(ids);
        }
        self.ground.cut_off();
        Ok(true)
    }

    /// It is carried out after all.
    pub(crate) fn late(&mut self, at: usize) -> Applied {
        let Some(sent) = self.session(at).late.pop() else { return Ok(false) };
        self.carry_out(at, sent)?;
        self.servers[at].unread = false;
        Ok(true)
    }

    pub(crate) fn add_fork(&mut self, at: usize, from: Option<EventId>) {
        let mut fork = self.servers[at].fork(from);
        let mut session = Session::new();
        if self.setup.driver == Driver::Gatepost {
            session.bind(&mut fork, self.start, self.setup.guards, &mut self.ground);
        }
        self.servers.push(fork);
        self.sessions.push(session);
    }

    fn reject_at_server(&mut self, at: usize) {
        let pending = Ids::of(&self.servers[at].pending());
        self.servers[at].reject();
        self.ground.cut_off_of(pending);
    }

    /// The interrupt or the rejection goes its next stage.
    pub(crate) fn beside(&mut self, at: usize, early: bool) -> Applied {
        let next = match self.sessions[at].unlocked {
            None => return Ok(false),
            Some(Unlocked::Interrupt) => {
                self.servers[at].interrupt(early);
                self.servers[at].unread = false;
                self.ground.cut_off();
                if self.setup.fine || !self.may_note(at) {
                    Some(Unlocked::Settling)
                } else {
                    self.interrupted(at, early)
                }
            }
            Some(Unlocked::Settling) => {
                self.observe(at);
                // Under the lock, both are one.
                if self.setup.guards.noted_locked { self.note_over(at) } else { Some(Unlocked::Read) }
            }
            Some(Unlocked::Read) => self.note_over(at),
            Some(Unlocked::Reject) => {
                self.reject_at_server(at);
                self.observe(at);
                None
            }
        };
        self.session(at).unlocked = next;
        Ok(true)
    }

    /// Whether the interrupt's end can be noted as far as other operations go.
    pub(crate) fn may_note(&self, at: usize) -> bool {
        self.sessions[at].locked.is_none() || !self.setup.guards.noted_locked
    }

    /// All that follows an interrupt, at once. Where it stopped nothing, the statuses will tell the same.
    fn interrupted(&mut self, at: usize, early: bool) -> Option<Unlocked> {
        if early {
            return None;
        }
        if self.servers[at].phase == Phase::Ending {
            self.servers[at].wind_down();
        }
        self.observe(at);
        self.note_over(at)
    }

    /// A run that was never seen to begin will not begin.
    fn note_over(&mut self, at: usize) -> Option<Unlocked> {
        if self.sessions[at].status.is_terminal() {
            self.session(at).quiet.note_step_over();
        }
        self.pull(at);
        None
    }
}
