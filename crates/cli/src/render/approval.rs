//! The pending batch, whole: what would run, and what the agent says of it, told apart.

use api_types::{Approval, PendingAction};

use super::block;
use super::style::Style;
use crate::sanitize;

/// `1 action` or `3 actions`.
pub(crate) fn count(actions: usize) -> String {
    if actions == 1 { "1 action".to_owned() } else { format!("{actions} actions") }
}

/// What waits for a decision.
pub(crate) fn list(approvals: &[Approval], style: &Style) -> String {
    if approvals.is_empty() {
        return "nothing waits for a decision\n".to_owned();
    }
    approvals.iter().map(|one| approval(one, style)).collect()
}

/// One batch.
pub(crate) fn approval(approval: &Approval, style: &Style) -> String {
    let mut out = format!(
        "{} {}\n  session {}, expires {}\n  confinement: {}\n",
        style.bold("approval"),
        style.bold(&sanitize::line(&approval.approval_id)),
        sanitize::line(&approval.session_id),
        sanitize::line(&approval.expires_at),
        sanitize::line(&approval.confinement_level),
    );
    for note in &approval.notes {
        out.push_str(&format!("  note: {}\n", sanitize::line(note)));
    }
    if approval.holds_secret {
        out.push_str(&warning(style, "a live secret stands in it: it can only be rejected"));
    }
    if !approval.complete {
        out.push_str(&warning(style, "not shown whole: `gatepost approvals ID --full` shows everything"));
    }
    for file in &approval.named_files {
        let digest = file.sha256.as_deref().unwrap_or("not hashed");
        out.push_str(&format!("  names {} (sha256 {})\n", sanitize::line(&file.path), sanitize::line(digest)));
        if file.changed {
            let words = format!("{} changed since the batch was first seen: it can only be rejected", file.path);
            out.push_str(&warning(style, &sanitize::line(&words)));
        }
    }
    for process in &approval.background_processes {
        let name = sanitize::line(&process.name);
        out.push_str(&format!("  still running from earlier: {name} (pid {})\n", process.pid));
    }
    let total = approval.actions.len();
    for (index, one) in approval.actions.iter().enumerate() {
        out.push_str(&action(one, index + 1, total, style));
    }
    out
}

fn action(action: &PendingAction, number: usize, total: usize, style: &Style) -> String {
    let mut out =
        format!("\n  {}\n", style.bold(&format!("action {number} of {total}: {}", sanitize::line(&action.tool))));
    out.push_str(&block::value(&action.arguments, style.columns()));
    if action.agent_risk.is_some() || action.agent_summary.is_some() {
        out.push_str(&format!("  {}\n", style.dim("the agent's own words, not checked:")));
        for (name, words) in [("risk", &action.agent_risk), ("summary", &action.agent_summary)] {
            if let Some(words) = words {
                out.push_str(&block::named(name, words, style.columns()));
            }
        }
    }
    for (flagged, words) in [
        (action.redacted, "redacted: something is replaced by a mark"),
        (action.truncated, "truncated: something was left out"),
        (action.deceptive_text, "deceptive text: control, bidirectional or invisible characters are shown as marks"),
        (action.in_doubt, "in doubt: it was approved before and may have run; it can only be rejected"),
    ] {
        if flagged {
            out.push_str(&warning(style, words));
        }
    }
    out
}

fn warning(style: &Style, words: &str) -> String {
    format!("  {}\n", style.warn(&format!("! {words}")))
}
