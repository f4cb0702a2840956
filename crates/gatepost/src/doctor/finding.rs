//! What a check found, and how it is told.

use cli::sanitize;
use serde_json::{Value, json};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// As it must be, or for information.
    Ok,
    /// It works, or will with one more step.
    Warning,
    /// It does not work like this.
    Failed,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// Stable word for what was looked at; several findings may have the same.
    pub(super) check: &'static str,
    pub(super) state: State,
    /// What was seen.
    pub(super) detail: String,
    /// What mends it, when something is to be mended.
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, state: State::Ok, detail: detail.into(), remedy: None }
    }

    pub(super) fn warning(check: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, state: State::Warning, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn failed(check: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, state: State::Failed, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    fn object(&self) -> Value {
        json!({"check": self.check, "state": self.state.as_str(), "detail": self.detail, "remedy": self.remedy})
    }
}

/// How many failed.
pub(super) fn failures(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.state == State::Failed).count()
}

/// The list for programs.
pub(super) fn list(findings: &[Finding]) -> Value {
    findings.iter().map(Finding::object).collect()
}

/// A line a finding, its remedy set in below it.
pub(super) fn words(findings: &[Finding]) -> String {
    let mut words = String::new();
    for Finding { check, state, detail, remedy } in findings {
        words.push_str(&format!("{:<8} {check}: {}\n", state.as_str(), sanitize::line(detail)));
        if let Some(remedy) = remedy {
            words.push_str(&format!("         next: {}\n", sanitize::line(remedy)));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> [Finding; 3] {
        [
            Finding::ok("git", "/usr/bin/git"),
            Finding::warning("daemon", "not running", "`gatepost serve`"),
            Finding::failed("tmux", "not\non\u{1b}[2J PATH", "install tmux"),
        ]
    }

    #[test]
    fn each_finding_is_a_line_with_its_remedy_below_and_nothing_acts_on_the_terminal() {
        let words = words(&three());
        let lines: Vec<&str> = words.lines().collect();
        assert_eq!(lines.len(), 5, "{words}");
        assert_eq!(lines[0], "ok       git: /usr/bin/git");
        assert_eq!(lines[1..3], ["warning  daemon: not running", "         next: `gatepost serve`"]);
        assert!(lines[3].starts_with("failed   tmux: not") && !words.contains('\u{1b}'), "{words:?}");
    }

    #[test]
    fn the_list_has_four_fields_each_and_only_failures_count() {
        let list = list(&three());
        assert_eq!(list[0], json!({"check": "git", "state": "ok", "detail": "/usr/bin/git", "remedy": null}));
        assert_eq!(list[1]["state"], "warning");
        assert_eq!((&list[2]["state"], &list[2]["remedy"]), (&json!("failed"), &json!("install tmux")));
        assert_eq!(failures(&three()), 1);
        assert_eq!(failures(&three()[..2]), 0);
    }
}
