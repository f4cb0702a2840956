//! From the model's tool call to the action that the server would run, or the error it answers.

use crate::model::ToolCall;
use serde_json::{Value, json};

/// What a tool call becomes.
pub(super) enum Parsed {
    /// An executable action.
    Action(Value),
    /// An error in these words.
    Error(String),
}

/// Arguments that belong to the call, not to the action.
const ABOUT_THE_CALL: [&str; 2] = ["security_risk", "summary"];

pub(super) fn parse(call: &ToolCall, extra_tools: &[String]) -> Parsed {
    let (kind, required): (&str, &[&str]) = match call.tool.as_str() {
        "terminal" => ("TerminalAction", &["command"]),
        "file_editor" => ("FileEditorAction", &["command", "path"]),
        "task_tracker" => ("TaskTrackerAction", &["command"]),
        "finish" => ("FinishAction", &["message"]),
        "think" => ("ThinkAction", &["thought"]),
        other if extra_tools.iter().any(|tool| tool == other) => ("ExtraAction", &[]),
        other => return Parsed::Error(format!("Tool '{other}' not found.")),
    };
    let Ok(Value::Object(mut action)) = serde_json::from_str(&call.arguments) else {
        return Parsed::Error(format!("Error validating tool '{}': the arguments are no object", call.tool));
    };
    action.retain(|name, _| !ABOUT_THE_CALL.contains(&name.as_str()));
    if let Some(missing) = required.iter().find(|name| !action.get(**name).is_some_and(Value::is_string)) {
        return Parsed::Error(format!(
            "Error validating tool '{}': 1 validation error for {kind}\n{missing}\n  Input should be a valid string",
            call.tool
        ));
    }
    if kind == "TerminalAction" {
        action.entry("is_input").or_insert(json!(false));
        action.entry("reset").or_insert(json!(false));
    }
    action.insert("kind".to_owned(), json!(kind));
    Parsed::Action(Value::Object(action))
}

/// True for the two actions that never wait for confirmation when they stand alone.
pub(super) fn never_waits(action: &Value) -> bool {
    matches!(action["action"]["kind"].as_str(), Some("FinishAction" | "ThinkAction"))
}
