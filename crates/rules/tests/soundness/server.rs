//! One conversation of the Agent Server, stepping as the real one was read and seen to.

use rules::log::ExecutionStatus as Status;

use crate::ground::{Ground, Violation};
use crate::log::{Entry, EventId, FORK_BASE, Ids, Kind, REUSED_CALL, STATUS_ID, What};

/// Where the run task stands. The status is something else, and lags behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No task.
    Idle,
    /// The task was made; the status has not moved.
    Starting,
    /// The model is asked. The state's lock is free, calls are carried out.
    Thinking,
    /// Tools run. The state's lock is held, calls wait.
    Executing,
    /// The status is terminal; the task still winds down.
    Ending,
}

/// A tool call of a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) what: What,
    /// Under the call id that the model uses again and again.
    pub(crate) reused: bool,
}

/// What the model answers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    Text,
    /// No answer: the turn ends with an error.
    Fail,
    Calls(&'static [Call]),
}

#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) log: Vec<Entry>,
    pub(crate) leaf: Option<EventId>,
    pub(crate) status: Status,
    pub(crate) phase: Phase,
    /// A message came while a task was there: run once more if the conversation is idle then.
    rerun: bool,
    /// Head and status on disk, when they differ: a step is saved when it has ended, its events at once.
    disk: Option<(Option<EventId>, Status)>,
    /// What the tools are at.
    batch: Vec<EventId>,
    /// Number of the next event.
    next_id: EventId,
    /// A prompt stands in the log that no turn has read, and nothing came in between that says why.
    pub(crate) unread: bool,
}

impl Conversation {
    pub(crate) fn new() -> Self {
        let mut new = Self {
            log: Vec::new(),
            leaf: None,
            status: Status::Idle,
            phase: Phase::Idle,
            rerun: false,
            disk: None,
            batch: Vec::new(),
            next_id: 0,
            unread: false,
        };
        new.append(Kind::Note);
        new
    }

    /// A copy up to an event, or of everything.
    pub(crate) fn fork(&self, from: Option<EventId>) -> Self {
        let mut fork = Self { next_id: FORK_BASE, status: Status::Idle, ..self.clone() };
        if let Some(from) = from {
            let path = self.path(Some(from));
            fork.log = path.into_iter().copied().collect();
            fork.leaf = Some(from);
        }
        (fork.phase, fork.rerun, fork.disk, fork.batch, fork.unread) = (Phase::Idle, false, None, Vec::new(), false);
        fork
    }

    pub(crate) fn append(&mut self, kind: Kind) -> EventId {
        let id = self.next_id;
        self.next_id += 1;
        self.log.push(Entry { id, parent: self.leaf, kind });
        self.leaf = Some(id);
        id
    }

    pub(crate) fn is_fork(&self) -> bool {
        self.next_id >= FORK_BASE
    }

    pub(crate) fn appended(&self) -> u8 {
        if self.next_id >= FORK_BASE { self.next_id - FORK_BASE } else { self.next_id }
    }

    fn set_status(&mut self, status: Status) {
        if self.status != status {
            self.status = status;
            self.log.push(Entry { id: STATUS_ID, parent: self.leaf, kind: Kind::Status(status) });
        }
    }

    pub(crate) fn entry(&self, id: EventId) -> Option<&Entry> {
        self.log.iter().find(|entry| !entry.is_status() && entry.id == id)
    }

    /// From the root to this event.
    pub(crate) fn path(&self, leaf: Option<EventId>) -> Vec<&Entry> {
        let mut path = Vec::new();
        let mut at = leaf.and_then(|id| self.entry(id));
        while let Some(entry) = at {
            path.push(entry);
            at = entry.parent.and_then(|id| self.entry(id));
        }
        path.reverse();
        path
    }

    /// The server's own matcher, word for word: backwards, errors by call id.
    fn unmatched(entries: &[&Entry]) -> Vec<EventId> {
        let (mut ids, mut calls, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries.iter().rev() {
            match entry.kind {
                Kind::Observation(id) | Kind::Reject(id) => ids.push(id),
                Kind::Error(call) => calls.push(call),
                Kind::Action { call, what } => {
                    if what != What::Malformed && !ids.contains(&entry.id) && !calls.contains(&call) {
                        found.insert(0, entry.id);
                    }
                }
                Kind::User | Kind::Agent | Kind::Status(_) | Kind::Note => {}
            }
        }
        found
    }

    /// What any step would run.
    pub(crate) fn pending(&self) -> Vec<EventId> {
        Self::unmatched(&self.path(self.leaf))
    }

    fn action(&self, id: EventId) -> Option<(u8, What)> {
        match self.entry(id)?.kind {
            Kind::Action { call, what } => Some((call, what)),
            Kind::User
            | Kind::Agent
            | Kind::Observation(_)
            | Kind::Reject(_)
            | Kind::Error(_)
            | Kind::Status(_)
            | Kind::Note => None,
        }
    }

    fn is_exempt(&self, id: EventId) -> bool {
        self.action(id).is_some_and(|(_, what)| matches!(what, What::Finish | What::Think))
    }

    /// The run task begins: the status moves, and the first step is taken.
    pub(crate) fn start(&mut self, ground: &mut Ground) -> Result<(), Violation> {
        match self.status {
            Status::Idle | Status::Paused | Status::Error | Status::Stuck => {
                self.set_status(Status::Running);
                self.step(ground, Status::Running)
            }
            // Saved with the step only: a crash in it finds the conversation waiting.
            Status::WaitingForConfirmation => {
                self.set_status(Status::Running);
                self.step(ground, Status::WaitingForConfirmation)
            }
            Status::Finished | Status::Running | Status::Deleting | Status::Unknown => {
                self.phase = Phase::Ending;
                Ok(())
            }
        }
    }

    fn step(&mut self, ground: &mut Ground, on_disk: Status) -> Result<(), Violation> {
        self.disk = Some((self.leaf, on_disk));
        let pending = self.pending();
        if pending.is_empty() {
            self.phase = Phase::Thinking;
            self.unread = false;
            return Ok(());
        }
        if self.run_batch(&pending, ground)? {
            self.phase = Phase::Executing;
        } else {
            self.end(Status::WaitingForConfirmation);
        }
        Ok(())
    }

    /// Runs what pends, unless the latch holds it.
    fn run_batch(&mut self, pending: &[EventId], ground: &mut Ground) -> Result<bool, Violation> {
        let exempt = matches!(pending, [only] if self.is_exempt(*only));
        if !exempt && !ground.take_grants(Ids::of(pending)) {
            return Ok(false);
        }
        let is_finish = |id: &EventId| self.action(*id).is_some_and(|(_, what)| what == What::Finish);
        let end = pending.iter().position(is_finish).map_or(pending.len(), |at| at + 1);
        let (run, discarded) = pending.split_at(end);
        if !exempt {
            ground.execute(run)?;
            // The server drops what comes after a finish.
            ground.cut = ground.cut.with(Ids::of(discarded));
        }
        self.batch = run.to_vec();
        Ok(true)
    }

    fn end(&mut self, status: Status) {
        self.set_status(status);
        self.phase = Phase::Ending;
        self.disk = None;
        self.batch.clear();
    }

    fn emit(&mut self, failed: bool) {
        for id in std::mem::take(&mut self.batch) {
            match self.action(id) {
                Some((call, _)) if failed => self.append(Kind::Error(call)),
                Some(_) | None => self.append(Kind::Observation(id)),
            };
        }
    }

    fn has_finish(&self) -> bool {
        self.batch.iter().any(|id| self.action(*id).is_some_and(|(_, what)| what == What::Finish))
    }

    /// The tools are done.
    pub(crate) fn tools_done(&mut self, failed: bool, ground: &mut Ground) -> Result<(), Violation> {
        let finish = self.has_finish();
        self.emit(failed);
        if finish {
            self.end(Status::Finished);
            return Ok(());
        }
        self.step(ground, Status::Running)
    }

    /// The model answered.
    pub(crate) fn reply(&mut self, reply: Reply, ground: &mut Ground) -> Result<(), Violation> {
        let calls = match reply {
            Reply::Text => {
                self.append(Kind::Agent);
                self.end(Status::Finished);
                return Ok(());
            }
            Reply::Fail => {
                self.append(Kind::Note);
                self.end(Status::Error);
                return Ok(());
            }
            Reply::Calls(calls) => calls,
        };
        let proposed = self.propose(calls);
        match proposed.as_slice() {
            [] => self.step(ground, Status::Running),
            // Asked by kind and not by what pends, and run at once.
            [only] if self.is_exempt(*only) => {
                self.batch = proposed;
                self.tools_done(false, ground)
            }
            [_, ..] => {
                self.end(Status::WaitingForConfirmation);
                Ok(())
            }
        }
    }

    fn propose(&mut self, calls: &[Call]) -> Vec<EventId> {
        let mut proposed = Vec::new();
        for Call { what, reused } in calls {
            let call = if *reused { REUSED_CALL } else { self.next_id };
            let id = self.append(Kind::Action { call, what: *what });
            if *what == What::Malformed {
                self.append(Kind::Error(call));
            } else {
                proposed.push(id);
            }
        }
        proposed
    }

    /// The run task ends.
    pub(crate) fn wind_down(&mut self) {
        let again = std::mem::take(&mut self.rerun) && self.status == Status::Idle;
        self.phase = if again { Phase::Starting } else { Phase::Idle };
    }

    /// Appends what tells this conversation from others.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        into.push(self.log.len() as u8);
        for entry in &self.log {
            entry.encode(into);
        }
        into.extend_from_slice(&[self.leaf.unwrap_or(u8::MAX), self.status as u8, self.phase as u8]);
        into.extend_from_slice(&[u8::from(self.rerun), u8::from(self.unread), self.batch.len() as u8]);
        into.extend_from_slice(&self.batch);
        match self.disk {
            Some((leaf, status)) => into.extend_from_slice(&[1, leaf.unwrap_or(u8::MAX), status as u8]),
            None => into.push(0),
        }
    }
}

mod calls;
mod canon;
mod crash;
