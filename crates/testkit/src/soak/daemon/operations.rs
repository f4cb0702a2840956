//! Carrying out one operation as a client does: look, then ask.

use super::super::plan::{Named, Operation};
use super::sequence::{Decision, Sequence, Shown};
use crate::daemon::Reply;
use crate::failure::Outcome;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited for a batch to approve.
const BATCH_LIMIT: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(60);
/// How often a client looks again when the session moved on between its look and its request.
const LOOKS: usize = 3;
/// What nobody was ever offered.
const UNHEARD: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// One of several, as the number says.
fn pick<T: Clone>(from: &[T], number: u64) -> Option<T> {
    let count = u64::try_from(from.len()).ok().filter(|count| *count > 0)?;
    usize::try_from(number % count).ok().and_then(|at| from.get(at)).cloned()
}

impl Sequence<'_> {
    pub(super) fn carry_out(&self, operation: Operation, session: &str, target: u64) {
        let kind = operation.kind();
        let outcome = match operation {
            Operation::Prompt(shape, rejecting) => {
                let text = shape.text(self.stage.marks().directory());
                let on_pending = if rejecting { "reject" } else { "refuse" };
                self.ask(session, "session.prompt.send", &json!({"text": text, "on_pending": on_pending}))
            }
            Operation::Approve(Named::Current) => self.with_batch(session, |id| self.approve(session, id)),
            Operation::Approve(named) => match self.other_batch(named, session, target) {
                Some(id) => self.approve(session, &id),
                None => "no such batch".to_owned(),
            },
            Operation::ApproveTwice(one_key) => self.with_batch(session, |id| self.approve_twice(session, id, one_key)),
            Operation::Reject => self.with_batch(session, |id| {
                self.ask(session, "session.approval.decide", &json!({"approval_id": id, "decision": "reject"}))
            }),
            Operation::Resume => self.ask(session, "session.resume", &json!({})),
            Operation::Fork => self.fork(session),
            Operation::RewindSafe => self.rewind(session, &self.safe_points(session), target),
            Operation::RewindAny => self.rewind(session, &self.event_ids(session), target),
            Operation::Compact => self.ask(session, "session.compact", &json!({})),
            Operation::Interrupt => self.ask(session, "session.turn.interrupt", &json!({})),
        };
        let at = self.known().sessions.iter().position(|own| own == session).unwrap_or(0);
        self.note(&format!("session {at}: {operation:?}: {outcome}"));
        self.known().outcomes.push((kind.to_owned(), outcome));
    }

    /// Looks at what waits.
    pub(super) fn look(&self, session: &str) -> Option<String> {
        let reply = self.stage.client().get(&format!("/v1/sessions/{session}/approvals")).ok()?;
        let approval = reply.body["approvals"].as_array()?.first()?.clone();
        let id = approval["approval_id"].as_str()?.to_owned();
        let actions = approval["actions"].as_array()?;
        let event_ids = actions.iter().filter_map(|action| action["event_id"].as_str().map(str::to_owned)).collect();
        self.known().shown.insert(id.clone(), Shown { session: session.to_owned(), event_ids });
        Some(id)
    }

    fn with_batch(&self, session: &str, act: impl FnOnce(&str) -> String) -> String {
        let begun = Instant::now();
        loop {
            if let Some(id) = self.look(session) {
                return act(&id);
            }
            if begun.elapsed() > BATCH_LIMIT || self.rests(session) {
                return "nothing waits".to_owned();
            }
            thread::sleep(LOOK);
        }
    }

    fn other_batch(&self, named: Named, session: &str, target: u64) -> Option<String> {
        let current = self.look(session);
        let known = self.known();
        let of = |wanted: &dyn Fn(&str, &Shown) -> bool| {
            let found: Vec<String> =
                known.shown.iter().filter(|(id, shown)| wanted(id, shown)).map(|(id, _)| id.clone()).collect();
            pick(&found, target)
        };
        match named {
            Named::Current => current,
            Named::Decided => of(&|id, shown| shown.session == session && known.decided.contains(id)),
            Named::Superseded => of(&|id, shown| {
                shown.session == session && !known.decided.contains(id) && current.as_deref() != Some(id)
            }),
            Named::OfAnother => of(&|_, shown| shown.session != session),
            Named::Unheard => Some(UNHEARD.to_owned()),
        }
    }

    fn approve(&self, session: &str, approval_id: &str) -> String {
        let action_id = self.action_id();
        self.approve_as(session, approval_id, &action_id)
    }

    fn approve_twice(&self, session: &str, approval_id: &str, one_key: bool) -> String {
        let first_key = self.action_id();
        let second_key = if one_key { first_key.clone() } else { self.action_id() };
        thread::scope(|scope| {
            let first = scope.spawn(|| self.approve_as(session, approval_id, &first_key));
            let second = self.approve_as(session, approval_id, &second_key);
            let mut both = [first.join().unwrap_or_default(), second];
            both.sort();
            both.join(" + ")
        })
    }

    fn approve_as(&self, session: &str, approval_id: &str, action_id: &str) -> String {
        let input = json!({"approval_id": approval_id, "decision": "accept"});
        let reply = self.ask_as(session, "session.approval.decide", &input, action_id);
        let refused = reply.as_ref().is_ok_and(|reply| reply.status >= 400);
        let mut known = self.known();
        let event_ids = known.shown.get(approval_id).map(|shown| shown.event_ids.clone()).unwrap_or_default();
        known.decisions.push(Decision { action_id: action_id.to_owned(), event_ids, refused });
        if !refused {
            known.decided.insert(approval_id.to_owned());
        }
        words(&reply)
    }

    fn fork(&self, session: &str) -> String {
        let action_id = self.action_id();
        let reply = self.ask_as(session, "session.fork", &json!({}), &action_id);
        if let Some(id) = reply.as_ref().ok().and_then(|reply| reply.body["result"]["session_id"].as_str()) {
            self.known().sessions.push(id.to_owned());
        }
        words(&reply)
    }

    fn rewind(&self, session: &str, points: &[String], target: u64) -> String {
        match pick(points, target) {
            Some(event_id) => self.ask(session, "session.rewind", &json!({"event_id": event_id})),
            None => "no such point".to_owned(),
        }
    }

    fn safe_points(&self, session: &str) -> Vec<String> {
        let snapshot = self.snapshot(session).unwrap_or_default();
        let choices = snapshot["choices"]["rewind"].as_array().cloned().unwrap_or_default();
        choices.iter().filter_map(|choice| choice["event_id"].as_str().map(str::to_owned)).collect()
    }

    fn event_ids(&self, session: &str) -> Vec<String> {
        let events = self.events(session).unwrap_or_default();
        events.iter().filter_map(|event| event["event_id"].as_str().map(str::to_owned)).collect()
    }

    fn ask(&self, session: &str, operation_id: &str, input: &Value) -> String {
        let action_id = self.action_id();
        words(&self.ask_as(session, operation_id, input, &action_id))
    }

    /// Asks on the current generation; looks again when it was stale, a few times.
    fn ask_as(&self, session: &str, operation_id: &str, input: &Value, action_id: &str) -> Outcome<Reply> {
        let mut reply = self.request(session, operation_id, input, action_id)?;
        for _ in 1..LOOKS {
            if reply.body["code"] != "generation_stale" {
                break;
            }
            reply = self.request(session, operation_id, input, action_id)?;
        }
        Ok(reply)
    }

    fn request(&self, session: &str, operation_id: &str, input: &Value, action_id: &str) -> Outcome<Reply> {
        let client = self.stage.client();
        let snapshot = client.get(&format!("/v1/sessions/{session}"))?;
        let body = json!({
            "operation_id": operation_id, "input": input, "client_action_id": action_id,
            "capability_generation": snapshot.body["capability_generation"].as_u64().unwrap_or(0),
        });
        client.post(&format!("/v1/sessions/{session}/actions"), &body)
    }
}

/// A reply in a word: the receipt's state with its code, or the refusal's code.
fn words(reply: &Outcome<Reply>) -> String {
    match reply {
        Err(_) => "no answer".to_owned(),
        Ok(reply) => {
            let state = reply.body["state"].as_str();
            let code = reply.body["code"].as_str();
            match (state, code) {
                (Some(state), Some(code)) => format!("{state} ({code})"),
                (Some(word), None) | (None, Some(word)) => word.to_owned(),
                (None, None) => format!("status {}", reply.status),
            }
        }
    }
}
