//! One client: its operations on one session, one after the other.

use super::plan::{Deed, Step, Text};
use super::play::Play;
use super::record::Keyed;
use super::stage::MARKS;
use crate::failure::Outcome;
use crate::model::script::CALL_WORD;
use crate::soak::daemon::is_quiet;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited for a batch to decide, and for the agent to rest.
const BATCH_LIMIT: Duration = Duration::from_secs(5);
const REST_LIMIT: Duration = Duration::from_secs(6);
/// How long closing a session may take, restarts included.
const CLOSE_LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);
/// Sessions at once, forks included; beyond, no more forks are made.
const MAX_SESSIONS: usize = 14;

impl Play<'_> {
    /// Does the steps of one round.
    pub(super) fn drive(&self, driver: usize, steps: &[Step]) -> Outcome<()> {
        for step in steps {
            let session = self.session_of(driver)?;
            self.carry_out(driver, &session, step);
            match step.pause_ms {
                Some(wait_ms) => thread::sleep(Duration::from_millis(wait_ms)),
                None => self.wait_rest(&session),
            }
        }
        Ok(())
    }

    fn carry_out(&self, driver: usize, session: &str, step: &Step) {
        match step.deed {
            Deed::Prompt(text) => self.prompt(driver, session, text, step),
            Deed::TwoPrompts(first, second) => thread::scope(|scope| {
                scope.spawn(|| self.prompt(driver, session, first, step));
                self.prompt(driver, session, second, step);
            }),
            Deed::Approve => self.decide(driver, session, step, "accept"),
            Deed::Reject => self.decide(driver, session, step, "reject"),
            Deed::Rewind => {
                let snapshot = self.snapshot(session).unwrap_or_default();
                if let Some(point) = chosen(&snapshot["choices"]["rewind"], step.target) {
                    let input = json!({"event_id": point["event_id"]});
                    self.ask(self.keyed(driver, session, "rewind"), "session.rewind", &input, true, step);
                }
            }
            Deed::Fork if self.known().sessions.len() < MAX_SESSIONS => {
                let keyed = self.keyed(driver, session, "fork");
                let input = json!({"title": keyed.key});
                self.ask(keyed, "session.fork", &input, true, step);
            }
            Deed::Title | Deed::Fork => {
                let keyed = self.keyed(driver, session, "title");
                let input = json!({"title": keyed.key});
                self.ask(keyed, "session.title.set", &input, true, step);
            }
            Deed::Interrupt => {
                let keyed = self.keyed(driver, session, "interrupt");
                self.ask(keyed, "session.turn.interrupt", &json!({}), false, step);
            }
            Deed::Resume => {
                self.ask(self.keyed(driver, session, "resume"), "session.resume", &json!({}), true, step);
            }
            Deed::Model => {
                let snapshot = self.snapshot(session).unwrap_or_default();
                if let Some(model) = chosen(&snapshot["choices"]["model"], step.target) {
                    let input = json!({"model": model});
                    self.ask(self.keyed(driver, session, "model"), "session.model.set", &input, true, step);
                }
            }
            Deed::Close => self.close(driver, session),
        }
    }

    pub(super) fn keyed(&self, driver: usize, session: &str, kind: &str) -> Keyed {
        Keyed { key: self.key(driver), session: session.to_owned(), kind: kind.to_owned(), ..Keyed::default() }
    }

    fn prompt(&self, driver: usize, session: &str, text: Text, step: &Step) {
        let keyed = self.keyed(driver, session, "prompt");
        let on_pending = if step.target.is_multiple_of(3) { "reject" } else { "refuse" };
        let input = json!({"text": self.text(text, &keyed.key), "on_pending": on_pending});
        self.ask(keyed, "session.prompt.send", &input, true, step);
    }

    /// A prompt that holds its key, and whose commands leave a marker each.
    fn text(&self, text: Text, key: &str) -> String {
        let command = format!("echo ran >> {MARKS}/{CALL_WORD} # {key}");
        match text {
            Text::Run(1, 0) => format!("run: {command}"),
            Text::Run(1, delay_ms) => format!("slow {delay_ms}: run: {command}"),
            Text::Run(count, _) => {
                let commands = vec![command; usize::try_from(count).unwrap_or(1)];
                format!("run all: {}", commands.join(" ;; "))
            }
            Text::LongRun => format!("run: sleep 1; {command}"),
            Text::Say(0) => format!("say: {key}"),
            Text::Say(delay_ms) => format!("slow {delay_ms}: say: {key}"),
        }
    }

    fn decide(&self, driver: usize, session: &str, step: &Step, decision: &str) {
        let begun = Instant::now();
        let batch = loop {
            if let Some(batch) = self.batch(session) {
                break batch;
            }
            if begun.elapsed() > BATCH_LIMIT || self.rests(session) {
                return;
            }
            thread::sleep(LOOK);
        };
        self.decide_batch(driver, session, step, decision, batch);
    }

    pub(super) fn decide_batch(
        &self,
        driver: usize,
        session: &str,
        step: &Step,
        decision: &str,
        (approval_id, event_ids): (String, Vec<String>),
    ) {
        let accepts = decision == "accept";
        let mut keyed = self.keyed(driver, session, decision);
        if accepts {
            keyed.event_ids = event_ids;
        }
        let input = json!({"approval_id": approval_id, "decision": decision});
        self.ask(keyed, "session.approval.decide", &input, accepts, step);
    }

    /// Closes the session of a driver, asking again until it is gone.
    pub(super) fn close(&self, driver: usize, session: &str) {
        {
            let mut known = self.known();
            known.closed.insert(session.to_owned());
            if let Some(own) = known.driven.get_mut(driver) {
                *own = None;
            }
        }
        let begun = Instant::now();
        while begun.elapsed() < CLOSE_LIMIT {
            *self.known().closes.entry(session.to_owned()).or_default() += 1;
            let reply = self.stage.client().delete(&format!("/v1/sessions/{session}"));
            if reply.is_ok_and(|reply| reply.status == 200 || reply.status == 404) {
                return;
            }
            thread::sleep(LOOK);
        }
        (self.tell)(&format!("session {session} could not be closed"));
    }

    /// Whether the agent does nothing now.
    pub(super) fn rests(&self, session: &str) -> bool {
        self.snapshot(session).is_some_and(|snapshot| is_quiet(&snapshot))
    }

    fn wait_rest(&self, session: &str) {
        let begun = Instant::now();
        while begun.elapsed() < REST_LIMIT && !self.known().closed.contains(session) && !self.rests(session) {
            thread::sleep(LOOK);
        }
    }
}

/// One of several, as the number says.
fn chosen(from: &Value, number: u64) -> Option<Value> {
    let from = from.as_array()?;
    let count = u64::try_from(from.len()).ok().filter(|count| *count > 0)?;
    usize::try_from(number % count).ok().and_then(|at| from.get(at)).cloned()
}
