//! Playing one sequence against the server.

use super::super::Played;
use super::super::summary::Summary;
use super::plan::{Plan, Step};
use crate::failure::{Doing, Failure, Outcome};
use crate::guards::{BareServer, Conversation, Guard};
use crate::marks::Marks;
use crate::model::ScriptedModel;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited between two steps for a turn to end.
const PAUSE_LIMIT: Duration = Duration::from_secs(8);
pub(super) const LOOK: Duration = Duration::from_millis(60);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everything that outlives a sequence.
pub(crate) struct Stage {
    /// Whether the latch stands; without it no grant is ever used up.
    pub(super) latch: bool,
    _model: ScriptedModel,
    server: Mutex<BareServer>,
    marks: Mutex<Marks>,
    server_starts: Mutex<u64>,
}

impl Stage {
    /// Starts a server, with its latch or without.
    pub(crate) fn start(latch: bool) -> Outcome<Self> {
        let model = ScriptedModel::start().doing("no model")?;
        let taken_out: &[Guard] = if latch { &[] } else { &[Guard::Latch] };
        let server = BareServer::start(&model.base_url(), taken_out)?;
        let marks = Marks::new(server.root().join("marks"))?;
        Ok(Self {
            latch,
            _model: model,
            server: Mutex::new(server),
            marks: Mutex::new(marks),
            server_starts: Mutex::new(1),
        })
    }

    pub(super) fn server(&self) -> MutexGuard<'_, BareServer> {
        lock(&self.server)
    }

    pub(crate) fn marks(&self) -> MutexGuard<'_, Marks> {
        lock(&self.marks)
    }

    pub(crate) fn server_starts(&self) -> u64 {
        *lock(&self.server_starts)
    }

    fn kill(&self) -> bool {
        let pid = self.server().ready().pid;
        Pid::from_raw(pid.cast_signed()).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    }

    fn relaunch(&self) -> Outcome<()> {
        self.server().relaunch()?;
        *lock(&self.server_starts) += 1;
        Ok(())
    }

    /// Ends the server, and gives the directory of markers up after the last look.
    pub(crate) fn stop(self) -> Outcome<BTreeMap<String, usize>> {
        let server = self.server.into_inner().unwrap_or_else(PoisonError::into_inner);
        let marks = self.marks.into_inner().unwrap_or_else(PoisonError::into_inner);
        // What was let out in error would run until the server ends.
        let runs = marks.all()?;
        server.stop()?;
        Ok(runs)
    }
}

/// What is known so far; several threads act at once.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) conversations: Vec<String>,
    /// Every action that was ever granted; none is granted again.
    pub(super) granted: BTreeSet<String>,
    /// Approved: granted whole and accepted.
    pub(super) approved: BTreeSet<String>,
    /// Grants that were taken back unused.
    pub(super) withdrawn: u64,
    /// The conversation of the last step.
    at: usize,
    pub(super) history: Vec<String>,
    pub(super) outcomes: Vec<(String, String)>,
}

/// One sequence while it is played.
pub(super) struct Sequence<'a> {
    pub(super) stage: &'a Stage,
    begun: Instant,
    known: Mutex<Known>,
}

/// Plays one sequence to its end and gathers what it left.
pub(crate) fn play(stage: &Stage, plan: &Plan, summary: &mut Summary) -> Outcome<Played> {
    let sequence = Sequence { stage, begun: Instant::now(), known: Mutex::default() };
    for _ in 0..plan.conversations {
        let (raw, profile_id, workspace) = {
            let server = stage.server();
            (server.raw(), server.ready().profile_id.clone(), server.workspace())
        };
        let conversation = Conversation::create(&raw, &profile_id, &workspace)?;
        sequence.known().conversations.push(conversation.id().to_owned());
    }
    for step in &plan.steps {
        sequence.step(step, summary)?;
    }
    let (evidence, oddities) = sequence.settle()?;
    sequence.clear();
    let known = sequence.known.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.sessions += u64::try_from(known.conversations.len()).unwrap_or(0);
    summary.withdrawn += known.withdrawn;
    for (kind, outcome) in &known.outcomes {
        summary.count(|summary| &mut summary.outcomes, &format!("{kind}: {outcome}"));
    }
    Ok(Played { evidence, history: known.history, oddities })
}

impl Sequence<'_> {
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    pub(super) fn note(&self, line: &str) {
        let line = format!("{:>6} ms  {line}", self.begun.elapsed().as_millis());
        self.known().history.push(line);
    }

    /// A conversation on the server as it is now.
    pub(super) fn conversation(&self, id: &str) -> Conversation {
        Conversation::of(&self.stage.server().raw(), id)
    }

    fn step(&self, step: &Step, summary: &mut Summary) -> Outcome<()> {
        let id = self.pick(step.pick).ok_or_else(|| Failure::new("no conversation"))?;
        summary.count(|summary| &mut summary.operations, step.operation.kind());
        if let Some((_, other)) = step.alongside {
            summary.count(|summary| &mut summary.operations, other.kind());
        }
        let killed = thread::scope(|scope| {
            let first = scope.spawn(|| self.carry_out(step.operation, &id, step.target));
            let second = step.alongside.map(|(delay_ms, operation)| {
                let id = &id;
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(delay_ms));
                    self.carry_out(operation, id, step.target);
                })
            });
            let killed = step.kill_after_ms.map(|after_ms| {
                thread::sleep(Duration::from_millis(after_ms));
                self.note("SIGKILL of the server");
                self.stage.kill()
            });
            drop((first.join(), second.map(thread::ScopedJoinHandle::join)));
            killed
        });
        if killed == Some(true) {
            summary.count(|summary| &mut summary.kills, "server");
            self.stage.relaunch()?;
        }
        match step.pause_ms {
            Some(pause_ms) => thread::sleep(Duration::from_millis(pause_ms)),
            None => {
                let begun = Instant::now();
                while begun.elapsed() < PAUSE_LIMIT && !self.rests(&id) {
                    thread::sleep(LOOK);
                }
            }
        }
        Ok(())
    }

    /// The conversation that a step is about.
    fn pick(&self, pick: Option<u64>) -> Option<String> {
        let mut known = self.known();
        let count = u64::try_from(known.conversations.len()).unwrap_or(1).max(1);
        let picked = pick.and_then(|pick| usize::try_from(pick % count).ok()).unwrap_or(known.at);
        known.at = picked;
        known.conversations.get(picked).cloned()
    }

    /// Whether nothing of this conversation runs or is ending.
    pub(super) fn rests(&self, id: &str) -> bool {
        let status = self.conversation(id).status();
        status.is_ok_and(|status| status != "running") && self.stage.server().settled(id).unwrap_or(false)
    }
}
