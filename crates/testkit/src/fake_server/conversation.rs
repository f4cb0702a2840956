//! One conversation: its log and status, and the agent's steps, which run every pending action first.

use super::journal::{Entry, Journal};
use super::latch::{Executed, Latch};
use super::log::{Log, STATE_UPDATE, message};
use super::plan::Plan;
use super::{command, tools};
use crate::model::script::replies;
use crate::model::{Reply, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Frames that a slow reader of the stream may be behind. More than any test has published at once: a stream that leaves
/// something out is to be planned, not to happen.
const STREAM_FRAMES: usize = 4096;
/// Empty replies in a row after which the agent is stuck.
const STUCK_AFTER: usize = 3;
/// What the server tells an agent that answered nothing.
const NUDGE: &str = "Your last response did not include a function call or a message. Please use a tool.";

/// What of a conversation survives a restart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) workspace: String,
    pub(super) profile_id: Value,
    pub(super) profile_revision: u64,
    pub(super) model: String,
    pub(super) tools: Value,
    pub(super) title: Option<String>,
    pub(super) policy: Value,
    pub(super) status: String,
    pub(super) forked_from: Option<String>,
    pub(super) forked_event: Option<String>,
    pub(super) log: Log,
}

pub(super) struct Conversation {
    record: Mutex<Record>,
    frames: broadcast::Sender<Value>,
    run: Mutex<Option<JoinHandle<()>>>,
    latch: Arc<Latch>,
    file: Option<PathBuf>,
    journal: Journal,
}

impl Conversation {
    pub(super) fn new(record: Record, latch: Arc<Latch>, storage: Option<&Path>, journal: Journal) -> Arc<Self> {
        let file = storage.map(|storage| storage.join(format!("{}.json", record.id)));
        let (frames, _) = broadcast::channel(STREAM_FRAMES);
        let own = Self { record: Mutex::new(record), frames, run: Mutex::default(), latch, file, journal };
        own.save(&own.record());
        Arc::new(own)
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Value> {
        self.frames.subscribe()
    }

    pub(super) fn forget_file(&self) {
        if let Some(file) = &self.file {
            std::fs::remove_file(file).ok();
        }
    }

    fn save(&self, record: &Record) {
        let Some(file) = &self.file else { return };
        let part = file.with_extension("part");
        if let Ok(text) = serde_json::to_vec(record)
            && std::fs::write(&part, text).is_ok()
        {
            std::fs::rename(&part, file).ok();
        }
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        let mut record = self.record();
        let changed = change(&mut record);
        self.save(&record);
        changed
    }

    fn log(&self, record: &mut Record, kind: &str, source: &str, fields: Value) -> Value {
        let event = record.log.append(kind, source, fields);
        self.journal.note(&Entry::appended(&record.id, &event));
        event
    }

    fn append(&self, kind: &str, source: &str, fields: Value) -> Value {
        self.change(|record| {
            let event = self.log(record, kind, source, fields);
            // Nobody listening is no failure.
            self.frames.send(event.clone()).ok();
            event
        })
    }

    /// Appends state updates that say nothing, all at once.
    pub(super) fn append_updates(&self, count: u64) {
        // As in every log of the real one: an event that is no root names a parent.
        if count > 0 && self.record().log.leaf().is_none() {
            self.append("SystemPromptEvent", "agent", json!({}));
        }
        let updates: Vec<Value> = self.change(|record| {
            let update = |number| json!({"key": "activated_knowledge_skills", "value": [number]});
            (0..count).map(|number| self.log(record, STATE_UPDATE, "environment", update(number))).collect()
        });
        for update in updates {
            self.frames.send(update).ok();
        }
    }

    fn set_status(&self, status: &str) {
        if self.change(|record| std::mem::replace(&mut record.status, status.to_owned())) != status {
            self.append(STATE_UPDATE, "environment", json!({"key": "execution_status", "value": status}));
        }
    }

    fn status_is(&self, statuses: &[&str]) -> bool {
        statuses.contains(&self.record().status.as_str())
    }

    fn append_stats(&self) {
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5});
        let agent = json!({"model_name": self.record().model, "accumulated_token_usage": usage});
        self.append(
            STATE_UPDATE,
            "environment",
            json!({"key": "stats", "value": {"usage_to_metrics": {"agent": agent}}}),
        );
    }

    pub(super) fn is_running(&self) -> bool {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        run.as_ref().is_some_and(|run| !run.is_finished())
    }

    /// Whether a user's message of this text stands on the branch.
    pub(super) fn was_told(&self, text: &str) -> bool {
        let record = self.record();
        let is_it = |event: &&Value| event["source"] == "user" && event["llm_message"]["content"][0]["text"] == text;
        record.log.branch().iter().any(is_it)
    }

    /// Stores a user's message; with `run`, starts a turn unless one is under way.
    pub(super) fn send_message(self: &Arc<Self>, text: &str, run: bool, plan: &Plan) {
        if self.status_is(&["finished", "stuck"]) {
            self.set_status("idle");
        }
        let message = self.append("MessageEvent", "user", message("user", text));
        self.append(STATE_UPDATE, "environment", json!({"key": "last_user_message_id", "value": message["id"]}));
        if run {
            self.start_run(plan);
        }
    }

    /// Starts the step loop; false when one is under way. A finished or stuck conversation does nothing.
    pub(super) fn start_run(self: &Arc<Self>, plan: &Plan) -> bool {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if run.as_ref().is_some_and(|run| !run.is_finished()) {
            return false;
        }
        if !self.status_is(&["finished", "stuck"]) {
            let (own, plan) = (Arc::clone(self), plan.clone());
            *run = Some(tokio::spawn(async move { own.turn(&plan).await }));
        }
        true
    }

    /// Cancels what is under way: a running tool is answered by an error. Does nothing when nothing is.
    pub(super) async fn interrupt(&self) {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(run) = run.filter(|run| !run.is_finished()) else { return };
        run.abort();
        run.await.ok();
        let pending = self.record().log.pending();
        for action in &pending {
            self.answer_with_error(action, "Tool call interrupted before completion. The action may not be complete.");
        }
        self.set_status("paused");
        self.append("InterruptEvent", "user", json!({}));
    }

    /// Rejects every pending action, whatever the status.
    pub(super) fn reject(&self, reason: &str) {
        let pending = self.record().log.pending();
        if self.status_is(&["waiting_for_confirmation"]) {
            self.set_status("idle");
        }
        for action in pending {
            self.append(
                "UserRejectObservation",
                "environment",
                json!({"tool_name": action["tool_name"], "tool_call_id": action["tool_call_id"],
                       "rejection_reason": reason, "rejection_source": "user", "action_id": action["id"]}),
            );
        }
    }

    /// Condenses: a step like any other, so pending actions run first. The status stays as it is.
    pub(super) async fn condense(&self, plan: &Plan) {
        let pending = self.record().log.pending();
        if !pending.is_empty() && !self.execute(&pending, plan).await {
            return;
        }
        let forgotten: Vec<Value> =
            self.record().log.branch().iter().take(2).map(|event| event["id"].clone()).collect();
        self.append("CondensationRequest", "environment", json!({}));
        let fields = json!({"forgotten_event_ids": forgotten, "summary": "Summary: the conversation so far.",
                            "summary_offset": 0, "llm_response_id": Uuid::new_v4().simple().to_string()});
        self.append("Condensation", "environment", fields);
        self.append_stats();
    }

    async fn turn(&self, plan: &Plan) {
        // The real server holds its lock from the status on until it asks the model: what comes after the status is not read.
        let waits = !self.record().log.pending().is_empty();
        let mut asked = if waits { None } else { Some(self.next_reply()) };
        self.set_status("running");
        loop {
            let pending = self.record().log.pending();
            if !pending.is_empty() {
                // The implicit confirmation: whatever is unanswered on the branch runs now.
                if !self.execute(&pending, plan).await {
                    self.set_status("waiting_for_confirmation");
                    return;
                }
                if pending.iter().any(|action| action["action"]["kind"] == "FinishAction") {
                    self.set_status("finished");
                    self.append_stats();
                    return;
                }
                continue;
            }
            let reply = asked.take().unwrap_or_else(|| self.next_reply());
            tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
            if let Some(status) = self.say(&reply, plan) {
                self.set_status(status);
                self.append_stats();
                return;
            }
        }
    }

    /// Puts a reply into the log, and answers the status that ends the turn, if one does.
    fn say(&self, reply: &Reply, plan: &Plan) -> Option<&'static str> {
        let response_id = Uuid::new_v4().simple().to_string();
        if let Some(status) = reply.fail_status {
            let fields = json!({"code": "LLMError", "detail": format!("the model answered {status}")});
            self.append("ConversationErrorEvent", "environment", fields);
            return Some("error");
        }
        if reply.calls.is_empty() {
            let text = reply.text.clone().unwrap_or_default();
            for word in text.split_inclusive(' ') {
                self.publish_delta(word);
            }
            let mut fields = message("assistant", &text);
            fields["llm_response_id"] = json!(response_id);
            self.append("MessageEvent", "agent", fields);
            return if text.is_empty() { self.nudge() } else { Some("finished") };
        }
        for call in &reply.calls {
            self.propose(call, &response_id, plan);
        }
        let pending = self.record().log.pending();
        let asks = match pending.as_slice() {
            [] => false,
            [alone] => !tools::never_waits(alone),
            _ => true,
        };
        (asks && !plan.asks_nothing).then_some("waiting_for_confirmation")
    }

    fn nudge(&self) -> Option<&'static str> {
        self.append("MessageEvent", "environment", message("user", NUDGE));
        let empty = |event: &&Value| event["llm_message"]["content"][0]["text"] == "";
        let said = |event: &&Value| event["kind"] == "MessageEvent" && event["source"] == "agent";
        let record = self.record();
        let branch = record.log.branch();
        let running = branch.into_iter().rev().filter(said).take_while(empty).count();
        (running >= STUCK_AFTER).then_some("stuck")
    }

    fn propose(&self, call: &ToolCall, response_id: &str, plan: &Plan) {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{}", Uuid::new_v4().simple()));
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        let mut fields = json!({
            "thought": [], "thinking_blocks": [], "tool_name": call.tool, "tool_call_id": id,
            "tool_call": {"id": id, "name": call.tool, "arguments": call.arguments, "origin": "completion"},
            "llm_response_id": response_id, "security_risk": "UNKNOWN", "summary": arguments["summary"],
        });
        let parsed = tools::parse(call, &plan.extra_tools);
        if let tools::Parsed::Action(action) = &parsed {
            fields["action"] = action.clone();
        }
        let event = self.append("ActionEvent", "agent", fields);
        if let tools::Parsed::Error(why) = parsed {
            self.answer_with_error(&event, &why);
        }
    }

    fn answer_with_error(&self, action: &Value, why: &str) {
        let fields = json!({"tool_name": action["tool_name"], "tool_call_id": action["tool_call_id"], "error": why});
        self.append("AgentErrorEvent", "agent", fields);
    }

    /// Runs a batch when the latch lets it; false when it is held.
    async fn execute(&self, batch: &[Value], plan: &Plan) -> bool {
        let id = self.record().id.clone();
        let lone = batch.len() == 1 && batch.iter().all(tools::never_waits);
        let event_ids: Vec<String> =
            batch.iter().filter_map(|action| action["id"].as_str().map(str::to_owned)).collect();
        if !lone && !self.latch.take(&id, &event_ids) {
            return false;
        }
        for action in batch {
            let command = action["action"]["command"].as_str();
            let terminal = command.filter(|_| action["tool_name"] == "terminal");
            let what = terminal.map_or_else(|| action["tool_call"]["arguments"].to_string(), str::to_owned);
            if !lone {
                let event_id = action["id"].as_str().unwrap_or_default().to_owned();
                self.journal.note(&Entry::Executed { conversation_id: id.clone(), event_id: event_id.clone() });
                self.latch.note(Executed { conversation_id: id.clone(), event_id, what });
            }
            let (text, code) = match terminal {
                Some(command) if plan.runs_commands => {
                    let workspace = PathBuf::from(self.record().workspace.clone());
                    command::run(command, &workspace).await.unwrap_or_else(|error| (error.to_string(), -1))
                }
                _ => ("(pretended)".to_owned(), 0),
            };
            self.observe(action, terminal, &text, code);
        }
        true
    }

    fn observe(&self, action: &Value, command: Option<&str>, text: &str, code: i32) {
        let kind = action["action"]["kind"].as_str().unwrap_or_default().replace("Action", "Observation");
        let mut observation =
            json!({"content": [{"cache_prompt": false, "type": "text", "text": text}], "is_error": code == -1});
        if let Some(command) = command {
            observation["command"] = json!(command);
            observation["exit_code"] = json!(code);
        }
        observation["kind"] = json!(kind);
        self.append(
            "ObservationEvent",
            "environment",
            json!({"tool_name": action["tool_name"], "tool_call_id": action["tool_call_id"],
                   "observation": observation, "action_id": action["id"], "extended_content": []}),
        );
    }

    /// What the in-process model says next: the script of the last user message, one line a reply so far.
    fn next_reply(&self) -> Reply {
        let record = self.record();
        let branch = record.log.branch();
        let is_user = |event: &&Value| event["kind"] == "MessageEvent" && event["source"] == "user";
        let Some(position) = branch.iter().rposition(is_user) else { return Reply::say("done") };
        let text = branch[position]["llm_message"]["content"][0]["text"].as_str().unwrap_or_default();
        let mut responses: Vec<&Value> =
            branch[position..].iter().map(|event| &event["llm_response_id"]).filter(|id| id.is_string()).collect();
        responses.dedup();
        let mut script = replies(text);
        let empty = script.first() == Some(&Reply::empty());
        let next = responses.len();
        if empty {
            Reply::empty()
        } else if next < script.len() {
            script.swap_remove(next)
        } else {
            Reply::say("done")
        }
    }

    /// Deltas come by the stream only and are never in the log.
    fn publish_delta(&self, text: &str) {
        let delta = json!({"id": Uuid::new_v4().to_string(), "timestamp": super::log::naive_time(),
                           "source": "agent", "content": text, "kind": "StreamingDeltaEvent"});
        self.frames.send(delta).ok();
    }
}
