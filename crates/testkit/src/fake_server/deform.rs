//! What a planned stream makes of a conversation's events.

use super::log::naive_time;
use super::plan::StreamPlan;
use serde_json::{Value, json};
use uuid::Uuid;

/// The faults of one connection.
pub(super) struct Deformer {
    /// The connection's number, from 0.
    connection: u64,
    /// Events so far.
    count: u64,
    sent: bool,
    held: Option<Value>,
}

impl Deformer {
    pub(super) fn new(connection: u64) -> Self {
        Self { connection, count: 0, sent: false, held: None }
    }

    /// The frames in place of an event.
    pub(super) fn deform(&mut self, mut event: Value, plan: &StreamPlan) -> Vec<Value> {
        if event["kind"] == "StreamingDeltaEvent" {
            return vec![event];
        }
        self.count += 1;
        let is_due = |every: Option<u64>| every.is_some_and(|every| every > 0 && self.count.is_multiple_of(every));
        if plan.alters && event["kind"] == "MessageEvent" {
            event["llm_message"]["content"][0]["text"] = json!("altered");
        }
        if is_due(plan.loses_every) {
            return Vec::new();
        }
        if is_due(plan.swaps_every) {
            return self.held.replace(event).into_iter().collect();
        }
        let invented = is_due(plan.invents_every).then(stranger);
        invented.into_iter().chain([event]).chain(self.held.take()).collect()
    }

    /// After how many bytes the connection breaks, when this is its first event.
    pub(super) fn breaks_at(&mut self, plan: &StreamPlan) -> Option<u64> {
        let is_first = !std::mem::replace(&mut self.sent, true);
        (is_first && self.connection < plan.breaks).then_some(self.connection)
    }
}

/// An event of another conversation.
pub(super) fn stranger() -> Value {
    json!({"id": Uuid::new_v4().to_string(), "timestamp": naive_time(), "source": "agent",
           "parent_id": Uuid::new_v4().to_string(), "kind": "MessageEvent",
           "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "of another conversation"}]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(plan: &StreamPlan) -> Vec<String> {
        let mut deformer = Deformer::new(0);
        let event = |id: &str| json!({"id": id, "kind": "MessageEvent", "llm_message": {"content": [{"text": id}]}});
        let frames = ["a", "b", "c", "d", "e"].map(|id| deformer.deform(event(id), plan));
        let text = |frame: Value| frame["llm_message"]["content"][0]["text"].as_str().unwrap().to_owned();
        frames.into_iter().flatten().map(text).collect()
    }

    #[test]
    fn each_fault_is_as_planned() {
        let none = StreamPlan::default();
        assert_eq!(sent(&none), ["a", "b", "c", "d", "e"]);
        assert_eq!(sent(&StreamPlan { loses_every: Some(2), ..none.clone() }), ["a", "c", "e"]);
        assert_eq!(sent(&StreamPlan { swaps_every: Some(2), ..none.clone() }), ["a", "c", "b", "e", "d"]);
        let other = "of another conversation";
        assert_eq!(sent(&StreamPlan { invents_every: Some(4), ..none.clone() }), ["a", "b", "c", other, "d", "e"]);
        assert_eq!(sent(&StreamPlan { alters: true, ..none }), ["altered"; 5]);
    }

    #[test]
    fn each_connection_breaks_a_byte_later_once() {
        let plan = StreamPlan { breaks: 2, ..StreamPlan::default() };
        let breaks = |connection| {
            let mut deformer = Deformer::new(connection);
            [deformer.breaks_at(&plan), deformer.breaks_at(&plan)]
        };
        assert_eq!([breaks(0), breaks(1), breaks(2)], [[Some(0), None], [Some(1), None], [None, None]]);
    }
}
