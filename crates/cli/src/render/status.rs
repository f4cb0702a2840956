//! One look at everything.

use api_types::{OverallState, Server, ServerState, Status};

use super::session;
use super::style::Style;
use crate::sanitize;

/// The API's word for a state.
pub(crate) fn state_word(state: OverallState) -> &'static str {
    match state {
        OverallState::Ready => "ready",
        OverallState::Degraded => "degraded",
        OverallState::Blocked => "blocked",
        OverallState::Starting => "starting",
    }
}

/// The daemon, its servers with each canary, confinement, findings and sessions.
pub(crate) fn status(status: &Status, style: &Style) -> String {
    let word = state_word(status.state);
    let state = match status.state {
        OverallState::Ready => style.good(word),
        OverallState::Degraded | OverallState::Starting => style.warn(word),
        OverallState::Blocked => style.bad(word),
    };
    let mut out = format!(
        "{state}  gatepost {} (pid {}), contract {}\n  installed: {}\n  confinement: {}\n",
        sanitize::line(&status.gatepost_version),
        status.pid,
        sanitize::line(&status.contract_version),
        sanitize::line(status.installed.as_deref().unwrap_or("no; `gatepost server install`")),
        sanitize::line(&status.confinement_level),
    );
    for missing in &status.confinement_missing {
        out.push_str(&format!("    lacks: {}\n", sanitize::line(missing)));
    }
    for finding in &status.findings {
        out.push_str(&format!(
            "  {} {}\n    remedy: {}\n",
            style.warn(&format!("! {}:", sanitize::line(&finding.code))),
            sanitize::line(&finding.detail),
            sanitize::line(&finding.remedy),
        ));
    }
    for note in &status.notes {
        out.push_str(&format!("  note: {}\n", sanitize::line(note)));
    }
    for one in &status.servers {
        out.push_str(&server(one, style));
    }
    out.push('\n');
    out.push_str(&session::list(&status.sessions, style));
    out
}

fn server(server: &Server, style: &Style) -> String {
    let state = match server.state {
        ServerState::Stopped => style.dim("stopped"),
        ServerState::Starting => style.warn("starting"),
        ServerState::Ready => style.good("ready"),
        ServerState::Failed => style.bad("failed"),
        ServerState::CrashLooping => style.bad("crash-looping"),
        ServerState::Stopping => style.warn("stopping"),
    };
    let pid = server.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let mut out = format!(
        "  server {state}: {} (version {}{pid})\n",
        sanitize::line(&server.workspace),
        sanitize::line(server.version.as_deref().unwrap_or("not proved")),
    );
    if let Some(reason) = &server.reason {
        out.push_str(&format!("    {}: {}\n", sanitize::line(&reason.code), sanitize::line(&reason.detail)));
    }
    if let Some(next_try_at) = &server.next_try_at {
        let failures = server.failures_in_a_row;
        out.push_str(&format!("    failed {failures} times in a row, next try {}\n", sanitize::line(next_try_at)));
    }
    for canary in &server.canaries {
        let mark = if canary.passed { style.good("passed") } else { style.bad("FAILED") };
        out.push_str(&format!("    {mark}  {}  {}\n", sanitize::line(&canary.canary), sanitize::line(&canary.detail)));
    }
    out
}
