//! One look at everything.

use api_types::{OverallState, Server, ServerState, Spare, SpareState, Status};

use super::style::Style;
use super::{canary, session};
use crate::sanitize;

/// The API's word for a state.
pub(crate) fn state_word(state: OverallState) -> &'static str {
    match state {
        OverallState::Ready => "ready",
        OverallState::Degraded => "degraded",
        OverallState::Blocked => "blocked",
        OverallState::Starting => "starting",
        OverallState::Stopping => "stopping",
    }
}

/// The daemon, its servers with each canary, confinement, findings and sessions.
pub(crate) fn status(status: &Status, style: &Style) -> String {
    let word = state_word(status.state);
    let state = match status.state {
        OverallState::Ready => style.good(word),
        OverallState::Degraded | OverallState::Starting | OverallState::Stopping => style.warn(word),
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
    for note in &status.confinement_notes {
        out.push_str(&format!("    note: {}\n", sanitize::line(note)));
    }
    let refused = &status.refused_peers;
    if refused.count > 0 {
        let (why, at) = (refused.last_code.as_deref().unwrap_or("-"), refused.last_at.as_deref().unwrap_or("-"));
        let (count, why, at) = (refused.count, sanitize::line(why), sanitize::line(at));
        out.push_str(&format!("  connections refused unread: {count}, the last at {at} ({why})\n"));
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
    if let Some(one) = &status.spare {
        out.push_str(&spare(one, style));
    }
    out.push('\n');
    out.push_str(&session::list(&status.sessions, style));
    out
}

fn spare(spare: &Spare, style: &Style) -> String {
    let state = match spare.state {
        SpareState::None => style.dim("none"),
        SpareState::Starting => style.warn("starting"),
        SpareState::Waiting => style.good("waiting"),
        SpareState::Failed => style.bad("failed"),
    };
    let pid = spare.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let mut out = format!("  spare {state}{pid}\n");
    if let Some(reason) = &spare.reason {
        out.push_str(&format!("    {}: {}\n", sanitize::line(&reason.code), sanitize::line(&reason.detail)));
    }
    if let Some(remedy) = &spare.remedy {
        out.push_str(&format!("    remedy: {}\n", sanitize::line(remedy)));
    }
    if let Some(next_try_at) = &spare.next_try_at {
        out.push_str(&format!("    next try {}\n", sanitize::line(next_try_at)));
    }
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
    if let Some(remedy) = &server.remedy {
        out.push_str(&format!("    remedy: {}\n", sanitize::line(remedy)));
    }
    if let Some(next_try_at) = &server.next_try_at {
        let failures = server.failures_in_a_row;
        out.push_str(&format!("    failed {failures} times in a row, next try {}\n", sanitize::line(next_try_at)));
    }
    out.push_str(&canary::list(&server.canaries, style));
    out
}
