//! The turns of a session: a prompt, what the agent proposes, and a decision on that very batch.

use super::pace::{Clock, Pace};
use super::stage::Session;
use crate::chaos::record::{Answer, Keyed};
use crate::failure::{Failure, Outcome};
use crate::random::Random;
use crate::talk::Waiting;
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// How often, in a hundred, a session is left alone after a turn, a request is sent again under its key, and a batch is
/// first decided by a digest that is not its own.
const LEAVES_ALONE: u64 = 6;
const SENDS_AGAIN: u64 = 5;
const ERRS: u64 = 5;
/// How long a session is left alone, in times of what it takes to rest.
const ALONE_TIMES: u32 = 2;
const LOOK: Duration = Duration::from_millis(20);

/// What a turn is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Say,
    Approve,
    ApproveTwo,
    Reject,
}

/// One client that drives some of the sessions.
pub(super) struct Driver<'a> {
    sessions: Vec<(&'a Session, Duration)>,
    number: usize,
    random: Random,
    next_key: u64,
    done: Done,
}

/// What it did.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) keyed: Vec<Keyed>,
    pub(super) turns: u64,
    /// Decisions by a wrong digest, which were refused.
    pub(super) refused_digests: u64,
    /// Times that a session was left alone long enough to rest.
    pub(super) left_alone: u64,
    /// Turns that did not go as they must.
    pub(super) failed: Vec<String>,
}

impl<'a> Driver<'a> {
    /// Drives these; their first turns are spread over the first gap.
    pub(super) fn new(number: usize, sessions: Vec<&'a Session>, mut random: Random, pace: &Pace) -> Self {
        let first = |session| (session, some(pace.gap, &mut random));
        let sessions = sessions.into_iter().map(first).collect();
        Self { sessions, number, random, next_key: 0, done: Done::default() }
    }

    /// Turn after turn, until no more may begin.
    pub(super) fn drive(mut self, clock: &Clock) -> Done {
        let pace = &clock.pace;
        while clock.takes_turns() {
            let next = self.sessions.iter_mut().min_by_key(|(_, due)| *due);
            let Some((session, due)) = next.filter(|(_, due)| *due <= clock.elapsed()) else {
                thread::sleep(LOOK);
                continue;
            };
            let session = *session;
            let is_alone = self.random.chance(LEAVES_ALONE);
            let rest = Duration::from_secs(pace.rest_after_s) * ALONE_TIMES * u32::from(is_alone);
            let wait = pace.gap / 2 + some(pace.gap, &mut self.random) + rest;
            *due = clock.elapsed() + wait;
            if let Err(why) = self.turn(session) {
                self.done.failed.push(format!("session {}: {why}", session.talk.id));
            }
            self.done.turns += 1;
            if is_alone {
                self.done.left_alone += 1;
                session.leave_alone(wait, clock);
            }
        }
        self.done
    }

    fn turn(&mut self, session: &Session) -> Outcome<()> {
        let choices = [(60, Turn::Approve), (10, Turn::ApproveTwo), (15, Turn::Reject), (15, Turn::Say)];
        let turn = self.random.weighted(&choices, Turn::Say);
        let key = self.key();
        let (text, actions) = match turn {
            Turn::Say => (format!("say: {key}"), 0),
            Turn::Approve | Turn::Reject => (format!("run: echo {key}"), 1),
            Turn::ApproveTwo => (format!("run all: echo {key} ;; echo {key} again"), 2),
        };
        self.ask(session, keyed(&key, session, "prompt"), "session.prompt.send", &json!({"text": text}))?;
        if actions == 0 {
            return session.talk.rest();
        }
        let waiting = session.talk.batch()?;
        let event_ids = own_batch(&session.talk.shown(&waiting)?, &key, actions)?;
        if self.random.chance(ERRS) {
            self.err(session, &waiting)?;
        }
        let decision = if turn == Turn::Reject { "reject" } else { "accept" };
        let input = json!({"approval_id": waiting.approval_id, "decision": decision});
        let mut decided = keyed(&self.key(), session, decision);
        if turn != Turn::Reject {
            decided.event_ids = event_ids;
        }
        self.ask(session, decided, "session.approval.decide", &input)?;
        session.talk.rest()
    }

    /// Accepts a batch of another digest, which must be refused.
    fn err(&mut self, session: &Session, waiting: &Waiting) -> Outcome<()> {
        let wrong: String = waiting.approval_id.chars().rev().collect();
        let input = json!({"approval_id": wrong, "decision": "accept"});
        let reply = session.talk.act_as(&self.key(), "session.approval.decide", &input)?;
        if reply.status < 400 {
            return Err(Failure::new(format!("a wrong digest was accepted: {}", reply.text)));
        }
        self.done.refused_digests += 1;
        Ok(())
    }

    /// Asks under a key, now and then twice, and keeps what was said.
    fn ask(&mut self, session: &Session, mut keyed: Keyed, operation_id: &str, input: &Value) -> Outcome<()> {
        let times = if self.random.chance(SENDS_AGAIN) { 2 } else { 1 };
        let mut last = Ok(());
        for _ in 0..times {
            let (answer, outcome) = match session.talk.act_as(&keyed.key, operation_id, input) {
                Err(why) => (Answer::Lost, Err(why)),
                Ok(reply) if reply.status < 300 => {
                    (Answer::Receipt(reply.body["state"].as_str().unwrap_or_default().to_owned()), Ok(()))
                }
                Ok(reply) => {
                    let code = reply.body["code"].as_str().unwrap_or("no code").to_owned();
                    (Answer::Refused(code), Err(Failure::new(reply.text)))
                }
            };
            keyed.answers.push(answer);
            last = outcome;
        }
        let last = last.map_err(|why| Failure::new(format!("{} {}: {why}", keyed.kind, keyed.key)));
        self.done.keyed.push(keyed);
        last
    }

    /// A key that is no part of another one.
    fn key(&mut self) -> String {
        self.next_key += 1;
        format!("event-soak-{:02}-{:07}", self.number, self.next_key)
    }
}

fn keyed(key: &str, session: &Session, kind: &str) -> Keyed {
    Keyed { key: key.to_owned(), session: session.talk.id.clone(), kind: kind.to_owned(), ..Keyed::default() }
}

/// The events of a batch that is shown whole and is the one that the key's prompt leads to.
fn own_batch(shown: &Value, key: &str, actions: usize) -> Outcome<Vec<String>> {
    let listed = shown["actions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_own = |action: &Value| action["arguments"]["command"].as_str().is_some_and(|command| command.contains(key));
    if listed.len() != actions || !listed.iter().all(is_own) {
        return Err(Failure::new(format!("another batch than that of {key} is shown: {shown}")));
    }
    Ok(listed.iter().filter_map(|action| action["event_id"].as_str().map(str::to_owned)).collect())
}

/// Some part of a span of time.
pub(super) fn some(of: Duration, random: &mut Random) -> Duration {
    Duration::from_millis(random.below(u64::try_from(of.as_millis()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_ones_own_only_when_each_action_of_it_is() {
        let action = |command: &str| json!({"event_id": command.len().to_string(), "arguments": {"command": command}});
        let own = json!({"actions": [action("echo k"), action("echo k again")]});
        assert_eq!(own_batch(&own, "k", 2).unwrap(), ["6", "12"]);
        assert!(own_batch(&own, "k", 1).is_err());
        assert!(own_batch(&json!({"actions": [action("echo k"), action("echo")]}), "k", 2).is_err());
        assert!(own_batch(&json!({}), "k", 1).is_err());
    }
}
