//! Waiting for a sequence to come to rest, and reading what it left, from the server's own log.

use super::super::judge::{Approved, Evidence};
use super::super::log::{Line, read};
use super::super::shape::marker_of;
use super::sequence::{LOOK, Sequence};
use crate::failure::Outcome;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a sequence may take to come to rest.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
/// How long a command that was let out in error would need to leave its mark.
const GRACE: Duration = Duration::from_millis(700);

impl Sequence<'_> {
    pub(super) fn settle(&self) -> Outcome<(Evidence, Vec<(String, String)>)> {
        let conversations = self.known().conversations.clone();
        let mut oddities = Vec::new();
        let begun = Instant::now();
        for id in &conversations {
            while !self.rests(id) {
                if begun.elapsed() > SETTLE_LIMIT {
                    let status = self.conversation(id).status();
                    oddities.push(("unsettled".to_owned(), format!("conversation {id} is {status:?}")));
                    break;
                }
                thread::sleep(LOOK);
            }
        }
        thread::sleep(GRACE);
        let mut evidence = Evidence::default();
        let (mut executed, mut pending) = (BTreeSet::new(), BTreeSet::new());
        for id in &conversations {
            let conversation = self.conversation(id);
            let marks = self.stage.marks().directory().to_path_buf();
            let events = conversation.events()?;
            let reading = read(events.iter().filter_map(|event| line(event, &marks)));
            evidence.proposed.extend(reading.proposed);
            evidence.ended.extend(reading.ended);
            let observed = events.iter().filter(|event| event["kind"] == "ObservationEvent");
            executed.extend(observed.filter_map(|event| event["action_id"].as_str().map(str::to_owned)));
            pending.extend(events.iter().filter(|event| event["kind"] == "ActionEvent").filter_map(id_of));
        }
        // Granted, used up, and answered by nothing: whether it ran is not known.
        for id in self.known().approved.clone() {
            let doubtful = pending.contains(&id) && !executed.contains(&id) && !evidence.ended.contains_key(&id);
            evidence.approved.insert(id, if doubtful { Approved::InDoubt } else { Approved::Told });
        }
        evidence.runs = self.stage.marks().take_new()?;
        Ok((evidence, oddities))
    }

    pub(super) fn clear(&self) {
        for id in self.known().conversations.clone() {
            let deleted = self.conversation(&id).delete();
            if !deleted.is_ok_and(|reply| reply.status == 200) {
                self.known().outcomes.push(("delete".to_owned(), "not deleted".to_owned()));
            }
        }
    }
}

fn id_of(event: &Value) -> Option<String> {
    event["id"].as_str().map(str::to_owned)
}

/// An event as the reading of a log takes it.
fn line(event: &Value, marks: &Path) -> Option<Line> {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    match event["kind"].as_str()? {
        "ActionEvent" => {
            let marker = marker_of(event["action"]["command"].as_str()?, marks)?;
            Some(Line::Proposed { event_id: id_of(event)?, marker })
        }
        "AgentErrorEvent" => Some(Line::Failed { tool_call_id: text("tool_call_id"), words: text("error") }),
        "UserRejectObservation" => Some(Line::Refused { event_id: text("action_id"), words: text("rejection_reason") }),
        "ObservationEvent" if event["observation"]["is_error"] == true || event["observation"]["exit_code"] == -1 => {
            Some(Line::Refused { event_id: text("action_id"), words: "an error".to_owned() })
        }
        _ => None,
    }
}
