//! Playing one sequence: its steps, its kills, and what was done.

use super::super::Played;
use super::super::plan::{Pause, Plan, Step, Victim};
use super::super::summary::Summary;
use super::stage::Stage;
use crate::failure::Outcome;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited for a batch or the end of a turn between two steps.
const PAUSE_LIMIT: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(60);

/// An acceptance that was asked for.
#[derive(Debug, Clone)]
pub(super) struct Decision {
    pub(super) action_id: String,
    /// The actions of the batch that it names, as the client was shown them.
    pub(super) event_ids: Vec<String>,
    /// Whether gatepost refused it to the client's face. Where there was no answer, it did not.
    pub(super) refused: bool,
}

/// A batch that was shown.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) session: String,
    pub(super) event_ids: Vec<String>,
}

/// What is known so far; several threads act at once.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) sessions: Vec<String>,
    pub(super) shown: BTreeMap<String, Shown>,
    pub(super) decisions: Vec<Decision>,
    pub(super) decided: BTreeSet<String>,
    pub(super) asked: Vec<String>,
    pub(super) history: Vec<String>,
    pub(super) outcomes: Vec<(String, String)>,
    /// Actions that the latch inside the server was told to have stopped.
    pub(super) held: u64,
    /// The session of the last step.
    at: usize,
    next_action: u64,
}

/// One sequence while it is played.
pub(super) struct Sequence<'a> {
    pub(super) stage: &'a Stage,
    name: String,
    begun: Instant,
    known: Mutex<Known>,
}

/// Plays one sequence to its end and gathers what it left.
pub(crate) fn play(stage: &Stage, plan: &Plan, name: &str, summary: &mut Summary) -> Outcome<Played> {
    let known = Known::default();
    let sequence = Sequence { stage, name: name.to_owned(), begun: Instant::now(), known: Mutex::new(known) };
    for _ in 0..plan.sessions {
        let id = stage.new_session()?;
        sequence.known().sessions.push(id);
    }
    stage.note_server()?;
    stage.check_latch()?;
    for step in &plan.steps {
        sequence.step(step, summary)?;
    }
    let (evidence, oddities) = sequence.settle()?;
    sequence.clear();
    let known = sequence.known.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.held += known.held;
    summary.sessions += u64::try_from(known.sessions.len()).unwrap_or(0);
    for (kind, outcome) in &known.outcomes {
        summary.count(|summary| &mut summary.outcomes, &format!("{kind}: {outcome}"));
    }
    Ok(Played { evidence, history: known.history, oddities })
}

impl Sequence<'_> {
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line of the history, with its time.
    pub(super) fn note(&self, line: &str) {
        let line = format!("{:>6} ms  {line}", self.begun.elapsed().as_millis());
        self.known().history.push(line);
    }

    /// A fresh idempotency key, the same in each replay of the sequence.
    pub(super) fn action_id(&self) -> String {
        let mut known = self.known();
        known.next_action += 1;
        let id = format!("soak-{}-{}", self.name, known.next_action);
        known.asked.push(id.clone());
        id
    }

    fn step(&self, step: &Step, summary: &mut Summary) -> Outcome<()> {
        let session = self.pick(step.pick);
        summary.count(|summary| &mut summary.operations, step.operation.kind());
        if let Some((_, other)) = step.alongside {
            summary.count(|summary| &mut summary.operations, other.kind());
        }
        let killed = thread::scope(|scope| {
            let first = scope.spawn(|| self.carry_out(step.operation, &session, step.target));
            let second = step.alongside.map(|(delay_ms, operation)| {
                let session = &session;
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(delay_ms));
                    self.carry_out(operation, session, step.target);
                })
            });
            let killed = step.kill.map(|(after_ms, victim)| {
                thread::sleep(Duration::from_millis(after_ms));
                (victim, self.kill(victim))
            });
            drop((first.join(), second.map(thread::ScopedJoinHandle::join)));
            killed
        });
        match killed {
            Some((Victim::Server, Ok(true))) => summary.count(|summary| &mut summary.kills, "server"),
            Some((Victim::Daemon, Ok(true))) => {
                summary.count(|summary| &mut summary.kills, "daemon");
                self.stage.revive()?;
            }
            Some((_, Err(why))) => {
                self.stage.revive()?;
                return Err(why);
            }
            Some((_, Ok(false))) | None => {}
        }
        self.pause(step.pause, &session);
        Ok(())
    }

    /// The session that a step is about.
    fn pick(&self, pick: Option<u64>) -> String {
        let mut known = self.known();
        let count = u64::try_from(known.sessions.len()).unwrap_or(1).max(1);
        let picked = pick.and_then(|pick| usize::try_from(pick % count).ok()).unwrap_or(known.at);
        known.at = picked;
        known.sessions.get(picked).cloned().unwrap_or_default()
    }

    fn kill(&self, victim: Victim) -> Outcome<bool> {
        let killed = match victim {
            Victim::Server => self.stage.kill_server(),
            Victim::Daemon => self.stage.kill_daemon().map(|()| true),
        };
        self.note(&format!("SIGKILL of the {victim:?}: {killed:?}"));
        killed
    }

    fn pause(&self, pause: Pause, session: &str) {
        match pause {
            Pause::None => {}
            Pause::Ms(wait_ms) => thread::sleep(Duration::from_millis(wait_ms)),
            Pause::Batch => {
                let begun = Instant::now();
                while begun.elapsed() < PAUSE_LIMIT && !self.rests(session) {
                    thread::sleep(LOOK);
                }
                // As a person who has it before them: what is shown now can be named when it is old.
                self.look(session);
            }
        }
    }

    /// Whether the agent of this session does nothing now: it waits for a decision or its turn is over.
    pub(super) fn rests(&self, session: &str) -> bool {
        self.snapshot(session).is_some_and(|snapshot| is_quiet(&snapshot))
    }

    pub(super) fn snapshot(&self, session: &str) -> Option<Value> {
        let reply = self.stage.client().get(&format!("/v1/sessions/{session}")).ok()?;
        (reply.status == 200).then_some(reply.body)
    }
}

/// The model can be changed while nothing runs, and only then; a blocked session does nothing.
pub(crate) fn is_quiet(snapshot: &Value) -> bool {
    let mut advertised = snapshot["advertised_operations"].as_array().into_iter().flatten();
    !snapshot["blocked_reason"].is_null()
        || advertised.any(|operation| operation["operation_id"] == "session.model.set")
}
