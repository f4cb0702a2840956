//! The event log of one conversation: append-only, with a leaf that says which branch is active.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// Events of a turn in a log that was made up, both messages among them.
const EVENTS_OF_A_TURN: u64 = 10;

/// The log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Log {
    events: Vec<Value>,
    leaf: Option<String>,
}

impl Log {
    /// A log of so many events in which somebody and the agent talked, with the state updates that come with it.
    pub(super) fn of_talk(events: u64) -> Self {
        let mut log = Self::default();
        for number in 0..events {
            match number % EVENTS_OF_A_TURN {
                0 => log.append("MessageEvent", "user", message("user", &format!("say: {number}"))),
                1 => log.append("MessageEvent", "agent", message("assistant", &format!("reply {number}"))),
                _ => log.append(
                    STATE_UPDATE,
                    "environment",
                    json!({"key": "activated_knowledge_skills", "value": [number]}),
                ),
            };
        }
        log
    }

    pub(super) fn events(&self) -> &[Value] {
        &self.events
    }

    /// The event that was appended last.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.events.last().and_then(|event| event["id"].as_str())
    }

    pub(super) fn leaf(&self) -> Option<&str> {
        self.leaf.as_deref()
    }

    /// Appends an event below the leaf, and makes it the leaf unless it is a state update.
    pub(super) fn append(&mut self, kind: &str, source: &str, fields: Value) -> Value {
        let id = Uuid::new_v4().to_string();
        let mut event = Map::new();
        event.insert("id".into(), json!(id));
        event.insert("timestamp".into(), json!(naive_time()));
        event.insert("source".into(), json!(source));
        // A root has no parent, and shows none.
        if let Some(leaf) = &self.leaf {
            event.insert("parent_id".into(), json!(leaf));
        }
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        event.insert("kind".into(), json!(kind));
        let event = Value::Object(event);
        self.events.push(event.clone());
        if kind != STATE_UPDATE {
            self.leaf = Some(id);
        }
        event
    }

    /// Makes an event the leaf; false when it is unknown.
    pub(super) fn navigate(&mut self, event_id: &str) -> bool {
        let known = self.events.iter().any(|event| event["id"] == event_id);
        if known {
            self.leaf = Some(event_id.to_owned());
        }
        known
    }

    /// The active branch, root first.
    pub(super) fn branch(&self) -> Vec<&Value> {
        let by_id: HashMap<&str, &Value> =
            self.events.iter().filter_map(|event| Some((event["id"].as_str()?, event))).collect();
        let mut branch = Vec::new();
        let mut next = self.leaf.as_deref();
        while let Some(event) = next.and_then(|id| by_id.get(id)) {
            branch.push(*event);
            // A cycle cannot be written here: a parent is always older.
            next = event["parent_id"].as_str();
        }
        branch.reverse();
        branch
    }

    /// The executable actions of the active branch that nothing after them answers, oldest first.
    pub(crate) fn pending(&self) -> Vec<Value> {
        let (mut answered, mut failed) = (HashSet::new(), HashSet::new());
        let mut pending = Vec::new();
        for event in self.branch().into_iter().rev() {
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            match event["kind"].as_str().unwrap_or_default() {
                "ObservationEvent" | "UserRejectObservation" => {
                    answered.insert(text("action_id"));
                }
                "AgentErrorEvent" => {
                    failed.insert(text("tool_call_id"));
                }
                "ActionEvent"
                    if event["action"].is_object()
                        && !answered.contains(&text("id"))
                        && !failed.contains(&text("tool_call_id")) =>
                {
                    pending.push(event.clone());
                }
                _ => {}
            }
        }
        pending.reverse();
        pending
    }

    /// A copy that ends at an event, of its branch only and without state updates; `None` when it is unknown.
    pub(super) fn cut_at(&self, event_id: &str) -> Option<Self> {
        let mut at = self.clone();
        if !at.navigate(event_id) {
            return None;
        }
        let branch = at.branch().into_iter().filter(|event| event["kind"] != STATE_UPDATE).cloned();
        Some(Self { events: branch.collect(), leaf: Some(event_id.to_owned()) })
    }

    /// A page of at most `limit` events in append order. A page id is an event's, inclusive; an unknown one starts
    /// from the beginning.
    pub(super) fn page(&self, page_id: Option<&str>, limit: usize) -> Value {
        let position = |id: &str| self.events.iter().position(|event| event["id"] == id);
        let start = page_id.and_then(position).unwrap_or(0);
        let end = (start + limit).min(self.events.len());
        let next = self.events.get(end).map(|event| event["id"].clone());
        json!({"items": self.events[start..end], "next_page_id": next})
    }
}

/// The kind that hangs off the branch.
pub(super) const STATE_UPDATE: &str = "ConversationStateUpdateEvent";

/// What somebody says, as a message's event holds it.
pub(super) fn message(role: &str, text: &str) -> Value {
    json!({"llm_message": {"role": role, "content": [{"cache_prompt": false, "type": "text", "text": text}],
                           "thinking_blocks": []},
           "activated_skills": [], "extended_content": []})
}

/// The present, as the server writes it: without a zone.
pub(super) fn naive_time() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}", since.subsec_micros())
}

/// The date of a day since 1970, in the Gregorian calendar, with years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(log: &mut Log, call: &str) -> String {
        let event = log.append("ActionEvent", "agent", json!({"action": {"command": "x"}, "tool_call_id": call}));
        event["id"].as_str().unwrap().to_owned()
    }

    #[test]
    fn only_what_stands_after_an_action_on_the_branch_answers_it() {
        let mut log = Log::default();
        log.append("AgentErrorEvent", "agent", json!({"tool_call_id": "reused"}));
        let first = action(&mut log, "reused");
        assert_eq!(log.pending().len(), 1, "an older error answers nothing");
        log.append(STATE_UPDATE, "environment", json!({"key": "execution_status", "value": "running"}));
        assert_eq!(log.leaf(), Some(first.as_str()), "a state update does not move the leaf");
        log.append("ObservationEvent", "environment", json!({"action_id": first}));
        assert!(log.pending().is_empty());
        assert!(log.navigate(&first));
        assert_eq!(log.pending().len(), 1, "after a rewind it is unanswered again");
    }

    #[test]
    fn a_cut_keeps_the_branch_and_its_ids() {
        let mut log = Log::default();
        let root = log.append("MessageEvent", "user", json!({}))["id"].as_str().unwrap().to_owned();
        log.append(STATE_UPDATE, "environment", json!({}));
        action(&mut log, "a");
        let cut = log.cut_at(&root).unwrap();
        assert_eq!((cut.events().len(), cut.leaf()), (1, Some(root.as_str())));
        assert!(log.cut_at("unknown").is_none());
    }

    #[test]
    fn pages_are_inclusive_and_an_unknown_page_starts_over() {
        let mut log = Log::default();
        let ids: Vec<String> =
            (0..3).map(|_| log.append("MessageEvent", "user", json!({}))["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(log.page(None, 2)["next_page_id"], ids[2].as_str());
        assert_eq!(log.page(Some(&ids[2]), 2)["items"].as_array().unwrap().len(), 1);
        assert_eq!(log.page(Some("unknown"), 100)["items"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(civil(20_787), (2026, 11, 30));
    }
}
