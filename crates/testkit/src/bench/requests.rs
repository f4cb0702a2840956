//! What is asked of the server: nothing when nothing changed, and little by an operation.

use super::stage::{Stage, at_rest};
use super::{Figure, Options, Tell};
use crate::failure::{Failure, Outcome};
use crate::fake_server::requests_of_operation;
use crate::talk::{Talk, Waiting};
use serde_json::{Value, json};

/// Requests of most operations, their own call included.
const FEW: f64 = 3.0;
/// Requests of those that change twice.
const SOME: f64 = 6.0;

pub(super) fn measure(options: &Options, _tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let stage = Stage::start()?;
    let session = stage.session(0)?;
    session.prompt("say: something")?;
    at_rest(&session)?;
    let looks = options.size(100, 5);
    let (snapshots, polls) = looked(&stage, &session, looks)?;
    let counted = Counted { stage: &stage, session: &session, tries: options.size(5, 3) };
    let (few, some) = (counted.few()?, counted.some()?);
    stage.stop()?;
    let most =
        |of: &Value| of.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_f64()).fold(0.0, f64::max);
    Ok(vec![
        Figure::new("requests_snapshot", snapshots, "requests", 0.0, &json!({"snapshots": looks})),
        Figure::new("requests_poll", polls, "requests", 0.0, &json!({"polls": looks})),
        Figure::new("requests_operation", most(&few), "requests", FEW, &few),
        Figure::new("requests_double_operation", most(&some), "requests", SOME, &some),
    ])
}

/// The requests of looks at a session in which nothing changed: snapshots and approvals, then polls.
fn looked(stage: &Stage, session: &Talk, looks: usize) -> Outcome<(f64, f64)> {
    let before = stage.silence()?;
    let mut cursor = String::new();
    for _ in 0..looks {
        let snapshot = session.snapshot()?;
        snapshot["cursor"].as_str().unwrap_or_default().clone_into(&mut cursor);
        session.waiting()?;
    }
    let between = stage.silence()?;
    let mut line = stage.line()?;
    for wait_ms in (0..looks).map(|look| if look == 0 { 500 } else { 0 }) {
        let page = line.ask("GET", &format!("{}?after={cursor}&wait_ms={wait_ms}", session.events()), None)?.json()?;
        if page["events"].as_array().is_none_or(|events| !events.is_empty()) {
            return Err(Failure::new(format!("something is new: {page}")));
        }
    }
    let after = stage.silence()?;
    Ok(((between - before) as f64, (after - between) as f64))
}

/// How many requests operations take: something else may read in the middle of a try, so the least of a few counts.
struct Counted<'a> {
    stage: &'a Stage,
    session: &'a Talk,
    tries: usize,
}

impl Counted<'_> {
    fn few(&self) -> Outcome<Value> {
        Ok(json!({
            "prompt": self.least(|| self.nothing_waits(), |()| self.applied("session.prompt.send", json!({"text": "say: x"})))?,
            "reject": self.least(|| self.batch(), |batch| self.decide(&batch, "reject"))?,
            "approve": self.least(|| self.batch(), |batch| self.decide(&batch, "accept"))?,
            "interrupt": self.least(|| self.nothing_waits(), |()| self.applied("session.turn.interrupt", json!({})))?,
            "title": self.least(|| self.nothing_waits(), |()| self.applied("session.title.set", json!({"title": "x"})))?,
            "rewind": self.least(|| self.safe_point(), |at| self.applied("session.rewind", json!({"event_id": at})))?,
        }))
    }

    fn some(&self) -> Outcome<Value> {
        let instead = || self.applied("session.prompt.send", json!({"text": "say: instead", "on_pending": "reject"}));
        let model = || self.applied("session.model.set", json!({"model": "openai/other"}));
        Ok(json!({
            "prompt_with_reject": self.least(|| self.batch(), |_| instead())?,
            "model": self.least(|| self.nothing_waits(), |()| model())?,
            "fork": self.least(|| self.nothing_waits(), |()| self.applied("session.fork", json!({})))?,
        }))
    }

    fn applied(&self, operation_id: &str, input: Value) -> Outcome<()> {
        let reply = self.session.act(operation_id, &input)?;
        match reply.body["status"].as_str().or(reply.body["state"].as_str()) {
            Some("applied") => Ok(()),
            _ => Err(Failure::new(format!("{operation_id} was answered with {}", reply.text))),
        }
    }

    fn decide(&self, batch: &Waiting, decision: &str) -> Outcome<()> {
        self.applied("session.approval.decide", json!({"approval_id": batch.approval_id, "decision": decision}))
    }

    fn batch(&self) -> Outcome<Waiting> {
        match self.session.waiting()? {
            Some(waiting) => Ok(waiting),
            None => self.session.propose("run: true"),
        }
    }

    fn nothing_waits(&self) -> Outcome<()> {
        let Some(batch) = self.session.waiting()? else { return Ok(()) };
        self.decide(&batch, "reject")
    }

    fn safe_point(&self) -> Outcome<String> {
        self.nothing_waits()?;
        at_rest(self.session)?;
        let snapshot = self.session.snapshot()?;
        let choice = snapshot["choices"]["rewind"].as_array().and_then(|choices| choices.last()).cloned();
        let event_id = choice.and_then(|choice| choice["event_id"].as_str().map(str::to_owned));
        event_id.ok_or_else(|| Failure::new(format!("nowhere to go back to: {snapshot}")))
    }

    fn least<T>(&self, prepare: impl Fn() -> Outcome<T>, act: impl Fn(T) -> Outcome<()>) -> Outcome<usize> {
        let one = || {
            at_rest(self.session)?;
            let prepared = prepare()?;
            at_rest(self.session)?;
            let before = self.stage.silence()?;
            act(prepared)?;
            Ok(requests_of_operation(&self.stage.asked()?.split_off(before)))
        };
        (0..self.tries).map(|_| one()).min_by_key(|count: &Outcome<usize>| count.clone().unwrap_or(0)).unwrap_or(Ok(0))
    }
}
