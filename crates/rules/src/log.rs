//! What the decisions need to know of an event of the server's log.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Parent id by which the server marks a further root.
pub const ROOT_PARENT_ID: &str = "__root__";

/// One event of the log, in append order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogEvent {
    /// The server's id, unique within a log.
    pub event_id: String,
    /// The event it hangs off; absent on the root.
    pub parent_id: Option<String>,
    /// What it is.
    pub kind: LogEventKind,
}

/// The kinds the decisions tell apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum LogEventKind {
    /// The agent proposed an action.
    Action(ActionRecord),
    /// An action ran: this is what came of it.
    Observation {
        /// Event id of the action.
        action_id: String,
    },
    /// An action was rejected.
    UserReject {
        /// Event id of the action.
        action_id: String,
    },
    /// A tool call failed before or while it ran.
    AgentError {
        /// The model's own id of the call, which may repeat.
        tool_call_id: String,
    },
    /// A person's message.
    UserMessage {
        /// Its text.
        text: String,
    },
    /// The agent's message.
    AgentMessage {
        /// Its text.
        text: String,
    },
    /// The execution status moved. Does not move the branch.
    Status(ExecutionStatus),
    /// Some other state update. Does not move the branch.
    StateUpdate,
    /// Anything else: system prompt, condensation, interrupt, error.
    Other,
}

/// A proposed action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// Name of the tool.
    pub tool: String,
    /// The model's own id of the call, which may repeat.
    pub tool_call_id: String,
    /// What would run, exactly. `None` when the call was malformed and cannot execute.
    pub action: Option<Value>,
    /// Set when it is of a kind without effect outside the conversation.
    pub exempt_kind: Option<ExemptKind>,
    /// The model's own word on the risk; decides nothing.
    pub claimed_risk: Option<String>,
    /// The model's own summary; decides nothing.
    pub claimed_summary: Option<String>,
}

/// Actions without effect outside the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExemptKind {
    /// Ends the turn with a message.
    Finish,
    /// Notes a thought.
    Think,
}

/// The server's execution status of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    /// Waits for a message.
    Idle,
    /// A step is going on.
    Running,
    /// Was interrupted or paused.
    Paused,
    /// Stopped before pending actions.
    WaitingForConfirmation,
    /// The turn ended.
    Finished,
    /// The turn ended with an error.
    Error,
    /// The agent repeated itself and was stopped.
    Stuck,
    /// The conversation is being deleted.
    Deleting,
    /// A word this version does not know.
    Unknown,
}

impl ExecutionStatus {
    /// Every status.
    pub const ALL: [Self; 9] = [
        Self::Idle,
        Self::Running,
        Self::Paused,
        Self::WaitingForConfirmation,
        Self::Finished,
        Self::Error,
        Self::Stuck,
        Self::Deleting,
        Self::Unknown,
    ];

    /// Reads the server's word; an unknown one is [`Self::Unknown`], never an idle guess.
    pub fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|status| status.as_str() == word).unwrap_or(Self::Unknown)
    }

    /// The server's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::WaitingForConfirmation => "waiting_for_confirmation",
            Self::Finished => "finished",
            Self::Error => "error",
            Self::Stuck => "stuck",
            Self::Deleting => "deleting",
            Self::Unknown => "unknown",
        }
    }

    /// Whether no step goes on: a run has ended or none was begun. Unknown words and a conversation on its way out
    /// are not.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Idle | Self::Paused | Self::WaitingForConfirmation | Self::Finished | Self::Error | Self::Stuck => {
                true
            }
            Self::Running | Self::Deleting | Self::Unknown => false,
        }
    }
}

impl LogEvent {
    /// The action, when the event proposes one that can execute.
    pub fn executable(&self) -> Option<(&ActionRecord, &Value)> {
        match &self.kind {
            LogEventKind::Action(record) => record.action.as_ref().map(|action| (record, action)),
            LogEventKind::Observation { .. }
            | LogEventKind::UserReject { .. }
            | LogEventKind::AgentError { .. }
            | LogEventKind::UserMessage { .. }
            | LogEventKind::AgentMessage { .. }
            | LogEventKind::Status(_)
            | LogEventKind::StateUpdate
            | LogEventKind::Other => None,
        }
    }

    /// Whether it proposes an action, executable or not.
    pub fn is_action(&self) -> bool {
        matches!(self.kind, LogEventKind::Action(_))
    }

    /// Whether it only reports state and so stands beside the branch.
    pub fn is_state_update(&self) -> bool {
        matches!(self.kind, LogEventKind::Status(_) | LogEventKind::StateUpdate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// What is set aside and taken up again is what a person approves: it must not change on the way.
    #[test]
    fn an_event_is_written_down_and_read_back_as_it_was() {
        let action =
            serde_json::json!({"z": [0.1, 1e300, -0.0, 5e-324, u64::MAX, i64::MIN], "a": {"ü\u{0}": null}, "m": 1.0});
        let odd = ActionRecord { action: Some(action), claimed_risk: None, ..testing::record("c") };
        let kinds = [
            LogEventKind::Action(odd),
            testing::action("c1"),
            testing::malformed("c2"),
            testing::exempt("c3", ExemptKind::Finish),
            testing::exempt("c4", ExemptKind::Think),
            testing::observation("a"),
            testing::reject("a"),
            testing::error("c1"),
            testing::user("hi\u{202e}"),
            LogEventKind::AgentMessage { text: String::new() },
            LogEventKind::StateUpdate,
            LogEventKind::Other,
        ];
        let statuses = ExecutionStatus::ALL.map(LogEventKind::Status);
        for kind in kinds.into_iter().chain(statuses) {
            for parent_id in [None, Some(ROOT_PARENT_ID.to_owned())] {
                let event = LogEvent { event_id: "e".to_owned(), parent_id, kind: kind.clone() };
                let written = serde_json::to_string(&event).unwrap();
                let read: LogEvent = serde_json::from_str(&written).unwrap();
                assert_eq!(read, event);
                assert_eq!(serde_json::to_string(&read).unwrap(), written, "the order of names too");
            }
        }
    }

    #[test]
    fn statuses_parse_and_unknown_words_are_not_terminal() {
        for status in ExecutionStatus::ALL {
            assert_eq!(ExecutionStatus::parse(status.as_str()), status);
        }
        for word in ["", "IDLE", "done", "running "] {
            assert_eq!(ExecutionStatus::parse(word), ExecutionStatus::Unknown);
        }
        let open: Vec<_> = ExecutionStatus::ALL.into_iter().filter(|status| !status.is_terminal()).collect();
        assert_eq!(open, [ExecutionStatus::Running, ExecutionStatus::Deleting, ExecutionStatus::Unknown]);
    }
}
