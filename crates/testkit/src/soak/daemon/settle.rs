//! Waiting for a sequence to come to rest, and reading what it left.

use super::super::judge::{Approved, Evidence};
use super::super::log::{Line, read};
use super::super::shape::marker_of;
use super::sequence::{Sequence, is_quiet};
use crate::failure::{Failure, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a sequence may take to come to rest, a restart of the server included.
const SETTLE_LIMIT: Duration = Duration::from_secs(120);
/// How long a command that was let out in error would need to leave its mark.
const GRACE: Duration = Duration::from_millis(700);
const LOOK: Duration = Duration::from_millis(80);
/// Events asked for at once, and the most pages of one session.
const PAGE: usize = 1000;
const MAX_PAGES: usize = 50;
/// Events told of a session that does not come to rest, and how much of each.
const MAX_TOLD: usize = 40;
const TOLD_CHARS: usize = 160;

impl Sequence<'_> {
    /// Waits, within bounds, until nothing runs and every receipt is final or queued behind a batch; then reads.
    pub(super) fn settle(&self) -> Outcome<(Evidence, Vec<(String, String)>)> {
        self.stage.revive()?;
        self.stage.note_server()?;
        // Forks whose reply was lost are there all the same.
        let sessions = self.stage.sessions()?;
        self.known().sessions.clone_from(&sessions);
        let mut oddities = Vec::new();
        let begun = Instant::now();
        let mut restless = self.restless(&sessions);
        while !restless.is_empty() && begun.elapsed() < SETTLE_LIMIT {
            thread::sleep(LOOK);
            restless = self.restless(&sessions);
        }
        if !restless.is_empty() {
            sessions.iter().for_each(|session| self.tell_events(session));
        }
        oddities.extend(restless.into_iter().map(|what| ("unsettled".to_owned(), what)));
        self.stage.note_server()?;
        thread::sleep(GRACE);
        let mut evidence = Evidence::default();
        for session in &sessions {
            self.read_session(session, &mut evidence, &mut oddities)?;
        }
        self.read_decisions(&mut evidence, &mut oddities)?;
        evidence.runs = self.stage.marks().take_new()?;
        Ok((evidence, oddities))
    }

    /// What is not at rest yet.
    fn restless(&self, sessions: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for session in sessions {
            match self.snapshot(session) {
                Some(snapshot) if is_quiet(&snapshot) => {}
                Some(snapshot) => found.push(format!("session {session} is {}", snapshot["status"])),
                None => found.push(format!("session {session} cannot be read")),
            }
        }
        let asked = self.known().asked.clone();
        for action_id in asked {
            if let Ok(reply) = self.stage.client().get(&format!("/v1/actions/{action_id}"))
                && reply.body["state"] == "in_flight"
            {
                found.push(format!("{action_id} ({}) is in flight", reply.body["operation_id"]));
            }
        }
        found
    }

    /// The events of a session, in the history.
    fn tell_events(&self, session: &str) {
        let events = self.events(session).unwrap_or_default();
        for event in events.iter().rev().take(MAX_TOLD).rev() {
            let payload: String = event["payload"].to_string().chars().take(TOLD_CHARS).collect();
            self.note(&format!("{session} {} {} {payload}", event["at"], event["kind"]));
        }
    }

    fn read_session(
        &self,
        session: &str,
        evidence: &mut Evidence,
        oddities: &mut Vec<(String, String)>,
    ) -> Outcome<()> {
        let marks = self.stage.marks().directory().to_path_buf();
        let events = self.events(session)?;
        let reading = read(events.iter().filter_map(|event| line(event, &marks)));
        let held = events.iter().filter(|event| event["payload"]["event"] == "action_held").count();
        self.known().held += u64::try_from(held).unwrap_or(0);
        evidence.proposed.extend(reading.proposed);
        evidence.ended.extend(reading.ended);
        let approvals = self.stage.client().get(&format!("/v1/sessions/{session}/approvals"))?;
        for approval in approvals.body["approvals"].as_array().into_iter().flatten() {
            let doubtful = approval["actions"].as_array().into_iter().flatten().filter(|one| one["in_doubt"] == true);
            evidence.shown_in_doubt.extend(doubtful.filter_map(|one| one["event_id"].as_str().map(str::to_owned)));
        }
        let blocked = self.snapshot(session).map(|snapshot| snapshot["blocked_reason"].clone()).unwrap_or_default();
        if !blocked.is_null() {
            oddities.push(("blocked".to_owned(), format!("session {session}: {blocked}")));
        }
        Ok(())
    }

    /// Whose approval gatepost took, by its receipts. One that it refused to the client's face is none, whatever the
    /// receipt says.
    fn read_decisions(&self, evidence: &mut Evidence, oddities: &mut Vec<(String, String)>) -> Outcome<()> {
        let decisions = self.known().decisions.clone();
        let mut taken: BTreeMap<String, String> = BTreeMap::new();
        let taken_keys = |action_id: &str| decisions.iter().any(|one| one.action_id == action_id && !one.refused);
        for decision in decisions.iter().filter(|decision| taken_keys(&decision.action_id)) {
            let reply = self.stage.client().get(&format!("/v1/actions/{}", decision.action_id))?;
            let state = match (reply.status, reply.body["state"].as_str()) {
                (404, _) | (200, Some("rejected")) => continue,
                (200, Some("outcome_unknown")) => Approved::InDoubt,
                (200, Some(_)) => Approved::Told,
                (status, _) => return Err(Failure::new(format!("a receipt with status {status}: {}", reply.text))),
            };
            for event_id in &decision.event_ids {
                evidence.approved.insert(event_id.clone(), state);
                let other = taken.insert(event_id.clone(), decision.action_id.clone());
                if other.as_ref().is_some_and(|other| *other != decision.action_id) {
                    let detail = format!("{event_id} by {other:?} and {}", decision.action_id);
                    oddities.push(("approved_twice".to_owned(), detail));
                }
            }
        }
        Ok(())
    }

    /// Every event of a session.
    pub(super) fn events(&self, session: &str) -> Outcome<Vec<Value>> {
        let mut found: Vec<Value> = Vec::new();
        let mut after = String::new();
        for _ in 0..MAX_PAGES {
            let path = format!("/v1/sessions/{session}/events?limit={PAGE}&wait_ms=0{after}");
            let page = self.stage.client().get(&path)?.expect_status(200)?;
            let events = page["events"].as_array().cloned().unwrap_or_default();
            if events.is_empty() {
                return Ok(found);
            }
            found.extend(events);
            after = format!("&after={}", page["next_cursor"].as_str().unwrap_or_default());
        }
        Err(Failure::new("the events have no end"))
    }

    /// Closes every session, so that the next sequence begins with none.
    pub(super) fn clear(&self) {
        for session in self.known().sessions.clone() {
            let reply = self.stage.client().delete(&format!("/v1/sessions/{session}?delete=true"));
            let outcome = match reply {
                Ok(reply) if reply.status == 200 => continue,
                Ok(reply) => reply.body["code"].as_str().unwrap_or("no code").to_owned(),
                Err(_) => "no answer".to_owned(),
            };
            self.known().outcomes.push(("close".to_owned(), outcome));
        }
    }
}

/// An event as the reading of a log takes it.
fn line(event: &Value, marks: &Path) -> Option<Line> {
    let payload = &event["payload"];
    let text = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
    match (event["kind"].as_str()?, payload["outcome"].as_str()) {
        ("tool_call", _) if payload["executable"] == true => {
            let marker = marker_of(payload["arguments"]["command"].as_str()?, marks)?;
            Some(Line::Proposed { event_id: event["event_id"].as_str()?.to_owned(), marker })
        }
        ("tool_result", Some("error")) => {
            Some(Line::Failed { tool_call_id: text("tool_call_id"), words: text("text") })
        }
        ("tool_result", Some("rejected")) => {
            Some(Line::Refused { event_id: text("action_event_id"), words: text("text") })
        }
        ("tool_result", Some(_)) if payload["is_error"] == true || payload["exit_code"] == -1 => {
            Some(Line::Refused { event_id: text("action_event_id"), words: text("text") })
        }
        _ => None,
    }
}
