//! Events as a person reads them: one heading line, then foreign text behind bars.

use api_types::{Event, EventKind, Resync};
use serde_json::Value;

use super::block;
use super::style::Style;
use crate::sanitize;

/// One event.
pub(crate) fn event(event: &Event, style: &Style) -> String {
    let text = |name: &str| event.payload.get(name).and_then(Value::as_str);
    let mut note = String::new();
    let body = match event.kind {
        EventKind::UserMessage | EventKind::AgentMessage => {
            block::named("", text("text").unwrap_or_default(), style.columns())
        }
        EventKind::ToolCall => {
            note = text("tool").unwrap_or_default().to_owned();
            let mut body = block::value(event.payload.get("arguments").unwrap_or(&Value::Null), style.columns());
            for (name, key) in [("its risk", "agent_risk"), ("its words", "agent_summary")] {
                if let Some(words) = text(key) {
                    body.push_str(&block::named(name, words, style.columns()));
                }
            }
            body
        }
        EventKind::ToolResult => {
            let outcome = text("outcome").unwrap_or_default();
            let exit = event.payload.get("exit_code").and_then(Value::as_i64).map(|code| format!(", exit code {code}"));
            note = format!("{} {outcome}{}", text("tool").unwrap_or_default(), exit.unwrap_or_default());
            block::named("", text("text").unwrap_or_default(), style.columns())
        }
        EventKind::Status => {
            note = text("status").unwrap_or_default().to_owned();
            String::new()
        }
        // Its content matters to a program; to a person, that it stands here does.
        EventKind::Other => {
            note = text("source_kind").unwrap_or_default().to_owned();
            String::new()
        }
        EventKind::Usage => {
            note = usage(&event.payload);
            String::new()
        }
        EventKind::ApprovalRequested | EventKind::ApprovalResolved | EventKind::Lifecycle => {
            block::value(&event.payload, style.columns())
        }
    };
    let kind = style.bold(event.kind.as_str());
    let at = style.dim(&sanitize::line(&event.at));
    format!("{}\n{body}", format!("{:>5} {at} {kind} {}", event.seq, sanitize::line(note.trim())).trim_end())
}

/// What each use of a model came to so far, of those that came to anything.
fn usage(payload: &Value) -> String {
    let uses = payload.pointer("/usage/usage_to_metrics").and_then(Value::as_object);
    let told = uses.into_iter().flatten().filter_map(|(name, metrics)| {
        let tokens = |key: &str| metrics["accumulated_token_usage"][key].as_u64().unwrap_or_default();
        let cost = metrics["accumulated_cost"].as_f64().unwrap_or_default();
        let (read, written) = (tokens("prompt_tokens"), tokens("completion_tokens"));
        let some = read > 0 || written > 0 || cost > 0.0;
        some.then(|| format!("{name}: {read} tokens in, {written} out, cost {cost:.4}"))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// The reader must start over.
pub(crate) fn resync(resync: &Resync, style: &Style) -> String {
    let words = format!("resync ({}): the events start over from here", sanitize::line(&resync.reason));
    format!("{}\n", style.warn(&words))
}
