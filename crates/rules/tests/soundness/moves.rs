//! What happens, one thing at a time: operations and faults, which are counted, and what goes on by itself.

use crate::gatepost::Offer;
use crate::log::EventId;
use crate::operations::Intent;
use crate::server::{Phase, Reply};
use crate::setup::Driver;
use crate::world::{Applied, World};

/// A call that somebody with the key sends by themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Raw {
    Message,
    Run,
    Reject,
    Condense,
    Navigate(EventId),
    ForkWhole,
    Interrupt,
}

/// One thing that happens, to the session and conversation of that number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Move {
    Prompt {
        at: usize,
        reject: bool,
    },
    Approve(usize, Offer),
    Reject(usize, Offer),
    Resume(usize),
    Compact(usize),
    Rewind(usize, EventId),
    Fork(usize),
    Interrupt(usize),
    Raw(usize, Raw),
    /// The server is killed; `late` between the events of a step and the saving of its head.
    Kill {
        late: bool,
    },
    /// The daemon ends, and with it the server.
    RestartDaemon,
    /// The operation's call could not be sent.
    NotSent(usize),
    /// It was sent, and nothing is heard of it.
    NotAnswered(usize),
    /// gatepost reads the log.
    Pull(usize),
    /// A queued prompt's turn.
    Deliver(usize),
    /// The operation finds the server settled.
    Settle(usize),
    /// The operation's call arrives and is answered.
    Arrive(usize),
    /// A call that was given up is carried out after all.
    Late(usize),
    /// The interrupt or rejection goes on; `early` when the interrupt finds the run task not begun.
    Beside {
        at: usize,
        early: bool,
    },
    /// The run task begins.
    Start(usize),
    Tools {
        at: usize,
        failed: bool,
    },
    Model(usize, Reply),
    /// The run task ends.
    End(usize),
}

impl Move {
    /// Whether it counts: what a person, a fault or an intruder does.
    pub(crate) fn is_operation(self) -> bool {
        match self {
            Self::Prompt { .. }
            | Self::Approve(..)
            | Self::Reject(..)
            | Self::Resume(_)
            | Self::Compact(_)
            | Self::Rewind(..)
            | Self::Fork(_)
            | Self::Interrupt(_)
            | Self::Raw(..)
            | Self::Kill { .. }
            | Self::RestartDaemon
            | Self::NotSent(_)
            | Self::NotAnswered(_) => true,
            Self::Pull(_)
            | Self::Deliver(_)
            | Self::Settle(_)
            | Self::Arrive(_)
            | Self::Late(_)
            | Self::Beside { .. }
            | Self::Start(_)
            | Self::Tools { .. }
            | Self::Model(..)
            | Self::End(_) => false,
        }
    }
}

impl World {
    /// Makes the move. On `Ok(false)` it was refused, and this world is to be thrown away.
    pub(crate) fn make(&mut self, step: Move) -> Applied {
        let made = self.make_alone(step)?;
        if made && !self.setup.fine {
            self.follow_up();
        }
        Ok(made)
    }

    /// What would be the same a little later: a run that ends has ended, and a log that rests is read.
    fn follow_up(&mut self) {
        for at in 0..self.servers.len() {
            if self.servers[at].phase == Phase::Ending && self.setup.guards.settled {
                self.servers[at].wind_down();
            }
            if self.has_news(at) {
                self.pull(at);
            }
        }
    }

    /// At rest, something stands in the log that was not read; or the run's end, which the log does not tell, leaves an
    /// accept to be closed.
    pub(crate) fn has_news(&self, at: usize) -> bool {
        let (session, server) = (&self.sessions[at], &self.servers[at]);
        let unread = session.read < server.log.len() || (!session.open.is_empty() && session.quiet.is_quiet());
        self.is_followed(at) && server.phase == Phase::Idle && unread
    }

    /// Whether gatepost has a session of that conversation; of a copy that somebody else made it knows nothing.
    pub(crate) fn is_followed(&self, at: usize) -> bool {
        at == 0 || self.setup.driver == Driver::Gatepost
    }

    fn make_alone(&mut self, step: Move) -> Applied {
        match step {
            Move::Prompt { at, reject } => self.prompt(at, reject),
            Move::Approve(at, offer) => self.operate(at, Intent::Accept(offer)),
            Move::Reject(at, offer) => self.reject(at, offer),
            Move::Resume(at) => self.operate(at, Intent::Resume),
            Move::Compact(at) => self.operate(at, Intent::Compact),
            Move::Rewind(at, to) => self.operate(at, Intent::Rewind(to)),
            Move::Fork(at) => self.fork(at),
            Move::Interrupt(at) => self.interrupt(at),
            Move::Raw(at, raw) => self.raw(at, raw),
            Move::Kill { late } => self.kill(late, false),
            Move::RestartDaemon => self.kill(false, true),
            Move::NotSent(at) => self.not_sent(at),
            Move::NotAnswered(at) => self.not_answered(at),
            Move::Pull(at) => {
                self.pull(at);
                Ok(true)
            }
            Move::Deliver(at) => self.deliver(at),
            Move::Settle(at) => self.settle(at),
            Move::Arrive(at) => self.arrive(at),
            Move::Late(at) => self.late(at),
            Move::Beside { at, early } => self.beside(at, early),
            Move::Start(at) => self.servers[at].start(&mut self.ground).map(|()| true),
            Move::Tools { at, failed } => self.servers[at].tools_done(failed, &mut self.ground).map(|()| true),
            Move::Model(at, reply) => self.servers[at].reply(reply, &mut self.ground).map(|()| true),
            Move::End(at) => {
                self.servers[at].wind_down();
                Ok(true)
            }
        }
    }

    fn raw(&mut self, at: usize, raw: Raw) -> Applied {
        let server = &mut self.servers[at];
        match raw {
            Raw::Message => server.message(),
            Raw::Run => return Ok(server.run()),
            Raw::Reject => server.reject(),
            Raw::Condense => server.condense(&mut self.ground)?,
            Raw::Navigate(to) => server.navigate(to),
            Raw::ForkWhole => self.add_fork(at, None),
            Raw::Interrupt => server.interrupt(false),
        }
        Ok(true)
    }
}
