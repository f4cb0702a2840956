//! What is known while a run goes on, and asking under a key until there is a final answer.

use super::plan::Step;
use super::reader::{Reader, Way};
use super::record::{Answer, Keyed, View};
use super::stage::{Stage, lock};
use crate::daemon::Reply;
use crate::failure::{Failure, Outcome};
use crate::random::Random;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// How long an operation is asked for again, restarts of the daemon and of a server included.
const ASK_LIMIT: Duration = Duration::from_secs(150);
/// How long its receipt may be under way once nothing is lost any more.
const FINAL_LIMIT: Duration = Duration::from_secs(60);
/// How often a refusal that may pass is asked again.
const REFUSALS: usize = 10;
const AGAIN: Duration = Duration::from_millis(150);
const LOOK: Duration = Duration::from_millis(80);
/// The streams of random numbers for ids lie beyond those of the rounds.
const IDS: u64 = 1 << 40;
/// Readers at once: a daemon lets 32 wait.
const MAX_READERS: usize = 24;

/// What several threads learn.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) keyed: BTreeMap<String, Keyed>,
    /// Every session, with the number of its workspace.
    pub(super) sessions: Vec<(String, usize)>,
    /// The session of each driver.
    pub(super) driven: Vec<Option<String>>,
    pub(super) closed: BTreeSet<String>,
    pub(super) closes: BTreeMap<String, u64>,
    /// Actions that were shown as doubtful.
    pub(super) in_doubt: BTreeSet<String>,
    next_id: u64,
}

/// A run while it goes on.
pub(super) struct Play<'a> {
    pub(super) stage: &'a Stage,
    pub(super) seed: u64,
    pub(super) tell: &'a (dyn Fn(&str) + Sync),
    known: Mutex<Known>,
    readers: Mutex<Vec<Reader>>,
}

impl<'a> Play<'a> {
    pub(super) fn new(stage: &'a Stage, seed: u64, drivers: usize, tell: &'a (dyn Fn(&str) + Sync)) -> Self {
        let known = Known { driven: vec![None; drivers], ..Known::default() };
        Self { stage, seed, tell, known: Mutex::new(known), readers: Mutex::default() }
    }

    pub(super) fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        lock(&self.known)
    }

    /// A key that is no part of another one.
    pub(super) fn key(&self, driver: usize) -> String {
        let mut known = self.known();
        known.next_id += 1;
        format!("chaos-{}-{driver}-{:06}", self.seed, known.next_id)
    }

    /// A session id of a new session.
    fn session_id(&self) -> String {
        let number = {
            let mut known = self.known();
            known.next_id += 1;
            known.next_id
        };
        let mut random = Random::of(self.seed, IDS + number);
        let (high, low) = (random.next(), random.next());
        let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xfff);
        format!("{a:08x}-{b:04x}-4{c:03x}-8{:03x}-{:012x}", low >> 52, low & 0xffff_ffff_ffff)
    }

    /// The session of a driver, a new one when it has none.
    pub(super) fn session_of(&self, driver: usize) -> Outcome<String> {
        if let Some(session) = self.known().driven.get(driver).cloned().flatten() {
            return Ok(session);
        }
        let number = driver % self.stage.workspaces().len();
        let session = self.new_session(number)?;
        self.take_in(&session, number, &[Way::Poll, Way::Stream]);
        if let Some(own) = self.known().driven.get_mut(driver) {
            *own = Some(session.clone());
        }
        Ok(session)
    }

    /// Asks for the same session until it stands.
    fn new_session(&self, number: usize) -> Outcome<String> {
        let session = self.session_id();
        let workspace = self.stage.workspaces().get(number);
        let begun = Instant::now();
        let (mut path, mut body) = ("/v1/sessions", json!({"session_id": session, "workspace": workspace}));
        loop {
            let last = match self.stage.client().post(path, &body) {
                Ok(reply) if reply.status < 300 => return Ok(session),
                Ok(reply) => {
                    if reply.body["code"] == "session_exists" {
                        // Created on the server, and the daemon died before it had recorded that.
                        path = "/v1/sessions/attach";
                        body = json!({"conversation_id": session, "workspace": workspace});
                    }
                    reply.text
                }
                Err(why) => why.to_string(),
            };
            if begun.elapsed() > ASK_LIMIT {
                return Err(Failure::new(format!("no session could be made: {last}")));
            }
            thread::sleep(AGAIN);
        }
    }

    /// Notes a session and lets it be read.
    pub(super) fn take_in(&self, session: &str, number: usize, ways: &[Way]) {
        {
            let mut known = self.known();
            if known.sessions.iter().any(|(own, _)| own == session) {
                return;
            }
            known.sessions.push((session.to_owned(), number));
        }
        let mut readers = lock(&self.readers);
        for way in ways {
            if readers.iter().filter(|reader| !reader.is_over()).count() < MAX_READERS {
                let number = u64::try_from(readers.len()).unwrap_or(0);
                let random = Random::of(self.seed, 2 * IDS + number);
                readers.push(Reader::start(self.stage.client(), session, *way, random));
            }
        }
    }

    /// Ends every reader once each has what was there, or the time is over; what they got, and how often they hung up.
    pub(super) fn end_readers(&self, whole: &BTreeMap<String, usize>, limit: Duration) -> (Vec<View>, u64) {
        let readers = std::mem::take(&mut *lock(&self.readers));
        let begun = Instant::now();
        let behind = |reader: &Reader| whole.get(reader.session()).is_some_and(|count| reader.got() < *count);
        while begun.elapsed() < limit && readers.iter().any(|reader| !reader.is_over() && behind(reader)) {
            thread::sleep(LOOK);
        }
        readers.iter().for_each(Reader::tell_to_end);
        let ended: Vec<(View, u64)> = readers.into_iter().filter_map(Reader::end).collect();
        let hung_up = ended.iter().map(|(_, hung_up)| hung_up).sum();
        (ended.into_iter().map(|(view, _)| view).collect(), hung_up)
    }

    pub(super) fn snapshot(&self, session: &str) -> Option<Value> {
        let reply = self.stage.client().get(&format!("/v1/sessions/{session}")).ok()?;
        (reply.status == 200).then_some(reply.body)
    }

    /// Asks under the key, again after each lost connection, until the receipt is final or queued, or it is refused.
    pub(super) fn ask(&self, keyed: Keyed, operation_id: &str, input: &Value, needs_generation: bool, step: &Step) {
        let (key, session) = (keyed.key.clone(), keyed.session.clone());
        let kind = keyed.kind.clone();
        self.known().keyed.insert(key.clone(), keyed);
        let (begun, mut refusals, mut hangs_up_ms) = (Instant::now(), 0, step.hangs_up_ms);
        while begun.elapsed() < ASK_LIMIT {
            let mut body = json!({"operation_id": operation_id, "input": input, "client_action_id": key});
            if needs_generation {
                let snapshot = self.snapshot(&session).unwrap_or_default();
                body["capability_generation"] = json!(snapshot["capability_generation"].as_u64().unwrap_or(0));
            }
            let path = format!("/v1/sessions/{session}/actions");
            if let Some(after_ms) = hangs_up_ms.take() {
                self.hang_up(&path, &body, after_ms);
                self.answered(&key, Answer::Lost);
                continue;
            }
            match self.stage.client().post(&path, &body) {
                Err(_) => self.answered(&key, Answer::Lost),
                Ok(reply) if reply.status < 300 => return self.follow(&key, &kind, &reply),
                Ok(reply) => {
                    let code = reply.body["code"].as_str().unwrap_or("no code").to_owned();
                    refusals += 1;
                    let may_pass = reply.body["retryable"] == true || code == "generation_stale";
                    if !may_pass || refusals > REFUSALS {
                        (self.tell)(&format!("{key} {kind}: {code}"));
                        return self.answered(&key, Answer::Refused(code));
                    }
                }
            }
            thread::sleep(AGAIN);
        }
        (self.tell)(&format!("{key} {kind}: no answer in time"));
    }

    /// Looks at the receipt until it is final; a queued one waits for a decision of the same client.
    fn follow(&self, key: &str, kind: &str, reply: &Reply) {
        let mut state = self.receipt_seen(key, &reply.body);
        let begun = Instant::now();
        while state == "in_flight" && begun.elapsed() < FINAL_LIMIT {
            thread::sleep(AGAIN);
            if let Ok(reply) = self.stage.client().get(&format!("/v1/actions/{key}"))
                && reply.status == 200
            {
                state = self.receipt_seen(key, &reply.body);
            }
        }
        (self.tell)(&format!("{key} {kind}: {state} {}", reply.body["code"].as_str().unwrap_or_default()));
    }

    fn receipt_seen(&self, key: &str, body: &Value) -> String {
        let state = body["state"].as_str().unwrap_or_default().to_owned();
        self.answered(key, Answer::Receipt(state.clone()));
        if let Some(fork) = body["result"]["session_id"].as_str() {
            self.take_in(fork, 0, &[Way::Poll]);
        }
        state
    }

    fn answered(&self, key: &str, answer: Answer) {
        if let Some(keyed) = self.known().keyed.get_mut(key)
            && keyed.answers.last() != Some(&answer)
        {
            keyed.answers.push(answer);
        }
    }

    /// Sends, and closes the connection without having read.
    fn hang_up(&self, path: &str, body: &Value, after_ms: u64) {
        let client = self.stage.client();
        let bytes =
            client.written("POST", path, &[("content-type", "application/json")], Some(body.to_string().as_bytes()));
        if let Ok(mut stream) = client.connect()
            && stream.write_all(&bytes).is_ok()
        {
            thread::sleep(Duration::from_millis(after_ms));
            self.stage.count_kill("client_connection");
        }
    }

    /// What waits: the batch's id and its actions, when the connection holds.
    pub(super) fn batch(&self, session: &str) -> Option<(String, Vec<String>)> {
        let reply = self.stage.client().get(&format!("/v1/sessions/{session}/approvals")).ok()?;
        let approval = reply.body["approvals"].as_array()?.first()?.clone();
        let actions = approval["actions"].as_array()?;
        let id_of = |action: &Value| action["event_id"].as_str().map(str::to_owned);
        let doubtful = actions.iter().filter(|action| action["in_doubt"] == true).filter_map(id_of);
        self.known().in_doubt.extend(doubtful);
        Some((approval["approval_id"].as_str()?.to_owned(), actions.iter().filter_map(id_of).collect()))
    }
}
