//! Sessions: the list, one snapshot, a closed one.

use api_types::{BlockChoice, Closed, Reason, SessionSnapshot, SessionState, SessionSummary};
use serde_json::Value;

use super::canary;
use super::style::Style;
use super::table::table;
use crate::sanitize;

/// All sessions, a line each.
pub(crate) fn list(sessions: &[SessionSummary], style: &Style) -> String {
    if sessions.is_empty() {
        return "no sessions; `gatepost session start --workspace DIR` starts one\n".to_owned();
    }
    let rows: Vec<Vec<String>> = sessions.iter().map(row).collect();
    let mut out = table(&["SESSION", "STATE", "STATUS", "PENDING", "TITLE", "WORKSPACE"], &rows);
    for session in sessions {
        if let Some(reason) = &session.blocked_reason {
            out.push_str(&format!("{}  {}", sanitize::line(&session.session_id), blocked(reason, style)));
        }
    }
    out
}

fn row(session: &SessionSummary) -> Vec<String> {
    vec![
        session.session_id.clone(),
        state_word(session.state).to_owned(),
        session.status.clone(),
        session.pending_actions.to_string(),
        session.title.clone().unwrap_or_default(),
        session.workspace.clone(),
    ]
}

/// The API's word for a state.
fn state_word(state: SessionState) -> &'static str {
    match state {
        SessionState::Starting => "starting",
        SessionState::Ready => "ready",
        SessionState::Blocked => "blocked",
        SessionState::CrashLooping => "crash-looping",
        SessionState::Stopped => "stopped",
    }
}

fn blocked(reason: &Reason, style: &Style) -> String {
    let Reason { code, detail, remedy } = reason;
    let told = format!("{} {}: {}", style.bad("blocked:"), sanitize::line(code), sanitize::line(detail));
    format!("{told}\n    remedy: {}\n", sanitize::line(remedy))
}

/// What the tripwire found, with the digest that acknowledges it.
pub(crate) fn block(block: &BlockChoice, style: &Style) -> String {
    let mut out = format!("  {} {}\n", style.bad("ran without an accept, block"), sanitize::line(&block.block_id));
    for observation_id in &block.observation_ids {
        out.push_str(&format!("    observed in event {}\n", sanitize::line(observation_id)));
    }
    out
}

/// One session, with what it offers now.
pub(crate) fn snapshot(snapshot: &SessionSnapshot, style: &Style) -> String {
    let mut out = format!("{} {}\n", style.bold("session"), style.bold(&sanitize::line(&snapshot.session_id)));
    let title = snapshot.title.as_deref().unwrap_or("(none)");
    for (name, value) in [
        ("title", title),
        ("workspace", &snapshot.workspace),
        ("state", state_word(snapshot.state)),
        ("status", &snapshot.status),
        ("pending", &snapshot.pending_actions.to_string()),
        ("generation", &snapshot.capability_generation.to_string()),
        ("observed at", &snapshot.observed_at),
        ("cursor", &snapshot.cursor),
    ] {
        out.push_str(&format!("  {name:<12} {}\n", sanitize::line(value)));
    }
    if let Some(reason) = &snapshot.blocked_reason {
        out.push_str(&format!("  {}", blocked(reason, style)));
    }
    for choice in &snapshot.choices.acknowledge {
        out.push_str(&block(choice, style));
    }
    for (name, value) in &snapshot.values {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if !matches!(value, Value::Null) && name != "title" {
            out.push_str(&format!("  {:<12} {}\n", sanitize::line(name), sanitize::line(&text)));
        }
    }
    let operations: Vec<&str> = snapshot.advertised_operations.iter().map(|one| one.operation_id.as_str()).collect();
    let offered = if operations.is_empty() { "(nothing)".to_owned() } else { operations.join(", ") };
    out.push_str(&format!("  {:<12} {}\n", "offers", sanitize::line(&offered)));
    if !snapshot.canaries.is_empty() {
        out.push_str("  canaries\n");
        out.push_str(&canary::list(&snapshot.canaries, style));
    }
    if !snapshot.choices.model.is_empty() {
        out.push_str(&format!("  {:<12} {}\n", "models", sanitize::line(&snapshot.choices.model.join(", "))));
    }
    if !snapshot.choices.rewind.is_empty() {
        let rows: Vec<Vec<String>> = snapshot
            .choices
            .rewind
            .iter()
            .map(|choice| vec![choice.turn.to_string(), choice.at.clone(), choice.text.clone()])
            .collect();
        out.push_str("  can be taken back to before\n");
        out.push_str(
            &table(&["TURN", "AT", "PROMPT"], &rows).lines().map(|line| format!("    {line}\n")).collect::<String>(),
        );
    }
    out
}

/// A session that was closed.
pub(crate) fn closed(closed: &Closed) -> String {
    let how = if closed.deleted { "closed and deleted" } else { "closed" };
    format!("{how} {}\n", sanitize::line(&closed.session_id))
}
