//! Bringing a run to rest, and gathering what it left.

use super::plan::{Deed, Step};
use super::play::Play;
use super::reader::seen;
use super::record::{Receipt, Record, View};
use super::stage::MARKS;
use super::truth;
use crate::daemon::Client;
use crate::failure::{Failure, Outcome};
use crate::soak::daemon::is_quiet;
use crate::soak::judge::{Approved, Evidence};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long everything may take to come to rest, starts of the servers included.
const REST_LIMIT: Duration = Duration::from_secs(240);
/// How long readers may take for what is there already.
const READ_LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(300);
/// Events asked for at once, and the most pages of one session.
const PAGE: usize = 1000;
const MAX_PAGES: usize = 50;
/// Number of the client that decides what is left.
const LAST_DRIVER: usize = 9;

/// What a run left.
pub(super) struct Left {
    pub(super) record: Record,
    pub(super) evidence: Evidence,
    pub(super) leftovers: Vec<String>,
    pub(super) sessions: usize,
    /// What did not come to rest in time.
    pub(super) restless: Vec<String>,
}

impl Play<'_> {
    /// Waits, within bounds, until nothing runs and no receipt is open, says so, and stops the daemon; then reads everything.
    pub(super) fn settle(&self, at_rest: &dyn Fn()) -> Outcome<Left> {
        for session in self.listed()? {
            self.take_in(&session, 0, &[]);
        }
        let begun = Instant::now();
        let mut restless = self.restless()?;
        while !restless.is_empty() && begun.elapsed() < REST_LIMIT {
            self.reject_all();
            thread::sleep(LOOK);
            restless = self.restless()?;
        }
        let mut whole = BTreeMap::new();
        let mut views = Vec::new();
        for session in &self.open() {
            // Reads the server's log to its end.
            self.stage.client().get(&format!("/v1/sessions/{session}/attestation"))?;
            let view = self.read_whole(session)?;
            whole.insert(session.clone(), view.epochs.first().map_or(0, Vec::len));
            views.push(view);
        }
        let (read, hung_up) = self.end_readers(&whole, READ_LIMIT);
        (0..hung_up).for_each(|_| self.stage.count_kill("client_connection"));
        views.extend(read);
        let mut keyed: Vec<_> = self.known().keyed.values().cloned().collect();
        for keyed in &mut keyed {
            keyed.receipt = self.receipt(&keyed.key)?;
        }
        at_rest();
        let stopped = self.stage.stop()?;
        let (conversations, reading) = truth::conversations(self.stage.state(), Path::new(MARKS))?;
        let known = self.known();
        let evidence = Evidence {
            proposed: reading.proposed,
            ended: reading.ended,
            approved: approved(&keyed),
            shown_in_doubt: known.in_doubt.clone(),
            runs: self.stage.runs()?,
        };
        let record = Record {
            keyed,
            conversations,
            requests: truth::requests(self.stage.logs())?,
            closes: known.closes.clone(),
            views,
            late: truth::late(self.stage.state())?,
        };
        let leftovers = stopped.leftovers.into_iter().map(|left| format!("{} {}", left.pid, left.command)).collect();
        Ok(Left { record, evidence, leftovers, sessions: known.sessions.len(), restless })
    }

    /// The ids of every session of the daemon.
    fn listed(&self) -> Outcome<Vec<String>> {
        let list = self.stage.client().get("/v1/sessions")?.expect_status(200)?;
        let sessions = list["sessions"].as_array().into_iter().flatten();
        Ok(sessions.filter_map(|session| session["session_id"].as_str().map(str::to_owned)).collect())
    }

    /// The sessions that nobody has closed.
    fn open(&self) -> Vec<String> {
        let known = self.known();
        let ids = known.sessions.iter().map(|(session, _)| session.clone());
        ids.filter(|session| !known.closed.contains(session)).collect()
    }

    fn restless(&self) -> Outcome<Vec<String>> {
        let mut found = Vec::new();
        for session in &self.open() {
            match self.snapshot(session) {
                Some(snapshot) if is_at_rest(&snapshot) => {}
                // Its server will never read it again, so what is queued there never gets its turn.
                Some(_) if truth::broken_in(self.stage.state(), session)?.is_some() => {
                    self.close(LAST_DRIVER, session);
                }
                Some(snapshot) => found.push(format!(
                    "session {session} is {} and blocked by {}, with {} queued",
                    snapshot["status"], snapshot["blocked_reason"], snapshot["values"]["queued_prompts"]
                )),
                None => found.push(format!("session {session} cannot be read")),
            }
        }
        let keys: Vec<String> = self.known().keyed.keys().cloned().collect();
        for key in keys {
            match self.receipt(&key) {
                Ok(Some(receipt)) if !receipt.is_final() => found.push(format!("{key} is {}", receipt.state)),
                Ok(_) => {}
                Err(why) => found.push(format!("{key}: {why}")),
            }
        }
        Ok(found)
    }

    /// Rejects what waits, so that queued prompts get their turn.
    fn reject_all(&self) {
        let step = Step { deed: Deed::Reject, target: 0, hangs_up_ms: None, pause_ms: None };
        for session in &self.open() {
            if let Some(batch) = self.batch(session) {
                self.decide_batch(LAST_DRIVER, session, &step, "reject", batch);
            }
        }
    }

    fn receipt(&self, key: &str) -> Outcome<Option<Receipt>> {
        receipt(self.stage.client(), key)
    }

    /// Everything from the beginning, as a reader who comes last gets it.
    fn read_whole(&self, session: &str) -> Outcome<View> {
        let mut events = Vec::new();
        let mut after = String::new();
        for _ in 0..MAX_PAGES {
            let path = format!("/v1/sessions/{session}/events?limit={PAGE}&wait_ms=0{after}");
            let page = self.stage.client().get(&path)?.expect_status(200)?;
            let found = page["events"].as_array().cloned().unwrap_or_default();
            if found.is_empty() {
                let view = View { reader: "last".to_owned(), session: session.to_owned(), ..View::default() };
                return Ok(View { epochs: vec![events], ..view });
            }
            events.extend(found.iter().map(seen));
            after = format!("&after={}", page["next_cursor"].as_str().unwrap_or_default());
        }
        Err(Failure::new("the events have no end"))
    }
}

/// The receipt under this key; `None` when there is none.
pub(crate) fn receipt(client: &Client, key: &str) -> Outcome<Option<Receipt>> {
    let reply = client.get(&format!("/v1/actions/{key}"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match reply.status {
        404 => Ok(None),
        200 => {
            let steps = reply.body["steps"].as_array().into_iter().flatten();
            Ok(Some(Receipt {
                state: text(&reply.body["state"]),
                code: reply.body["code"].as_str().map(str::to_owned),
                steps: steps.map(|step| (text(&step["name"]), text(&step["state"]))).collect(),
            }))
        }
        status => Err(Failure::new(format!("a receipt with status {status}: {}", reply.text))),
    }
}

/// Nothing runs, nothing waits for its turn, and nothing hinders the next step.
pub(crate) fn is_at_rest(snapshot: &Value) -> bool {
    is_quiet(snapshot)
        && snapshot["blocked_reason"].is_null()
        && snapshot["values"]["queued_prompts"].as_u64() == Some(0)
}

/// Whose acceptance gatepost took, by its receipts.
pub(crate) fn approved(keyed: &[super::record::Keyed]) -> BTreeMap<String, Approved> {
    let mut approved = BTreeMap::new();
    for keyed in keyed {
        let state = match keyed.receipt.as_ref().map(|receipt| receipt.state.as_str()) {
            None | Some("rejected") => continue,
            Some("outcome_unknown") => Approved::InDoubt,
            Some(_) => Approved::Told,
        };
        approved.extend(keyed.event_ids.iter().map(|event_id| (event_id.clone(), state)));
    }
    approved
}
