//! How a command fails: a stable code, words, the next step, and the exit code.

use std::io::Write;

use api_types::{ExitCode, Problem};
use serde_json::{Map, Value, json};

use crate::{output, sanitize};

/// A failure, as it is told to people and programs.
#[derive(Debug)]
pub struct Failure {
    /// How the command ends.
    pub exit: ExitCode,
    /// Stable snake_case word: the daemon's own, or one of the command line's.
    pub code: String,
    /// What happened, for people.
    pub detail: String,
    /// What to do next.
    pub hint: Option<String>,
    retryable: bool,
    capability_generation: Option<u64>,
    /// The reply that tells of the failure, when there is one (a rejected receipt); `ok` and `error` are added to it.
    body: Box<Map<String, Value>>,
}

impl Failure {
    /// Of this kind; the hint is the one known for the code, if any.
    #[must_use]
    pub fn new(exit: ExitCode, code: &str, detail: impl Into<String>) -> Self {
        Self {
            exit,
            code: code.to_owned(),
            detail: detail.into(),
            hint: hint(code),
            retryable: false,
            capability_generation: None,
            body: Box::default(),
        }
    }

    /// A mistake in what was typed.
    #[must_use]
    pub fn usage(detail: impl Into<String>) -> Self {
        Self::new(ExitCode::Usage, "usage", detail)
    }

    /// A reply that cannot be understood.
    pub(crate) fn malformed(what: &str) -> Self {
        Self::new(ExitCode::Failed, "reply_malformed", format!("the daemon's reply is not what {what} looks like"))
    }

    /// From what the daemon answered.
    pub(crate) fn from_problem(problem: &Problem) -> Self {
        let mut failure = Self::new(ExitCode::of_problem(problem), &problem.code, problem.detail.clone());
        failure.retryable = problem.retryable;
        failure.hint = failure.hint.or_else(|| problem.remedy.clone());
        failure.capability_generation = problem.capability_generation;
        failure
    }

    /// Whether the same may succeed later, without anything being done about it: the daemon says so, or was not heard.
    pub(crate) fn passes(&self) -> bool {
        self.retryable || matches!(self.code.as_str(), "daemon_not_running" | "no_reply" | "timed_out")
    }

    /// The same with another next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Tells a program more than words can, beside `error`.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.body.insert(name.to_owned(), value.into());
        self
    }

    /// The reply that tells of the failure.
    #[must_use]
    pub fn body(mut self, body: &Value) -> Self {
        if let Value::Object(fields) = body {
            let reserved = |name: &str| matches!(name, "ok" | "error" | "exit_code");
            let fields = fields.iter().filter(|(name, _)| !reserved(name));
            self.body.extend(fields.map(|(name, field)| (name.clone(), field.clone())));
        }
        self
    }

    /// The lines for people.
    pub(crate) fn words(&self) -> String {
        // A detail may quote the agent: its further lines are set in, so that they cannot pass for lines of ours.
        let detail = self.detail.replace('\n', "\n  ");
        let mut words = format!("error: {}: {}\n", sanitize::line(&self.code), sanitize::lines(&detail));
        if let Some(hint) = &self.hint {
            words.push_str(&format!("next: {}\n", sanitize::lines(hint)));
        }
        words
    }

    /// The one object of `--json`.
    pub(crate) fn object(&self) -> Value {
        let mut error =
            json!({"code": self.code, "detail": self.detail, "hint": self.hint, "retryable": self.retryable});
        if let (Some(generation), Some(fields)) = (self.capability_generation, error.as_object_mut()) {
            fields.insert("capability_generation".to_owned(), generation.into());
        }
        let mut object = Map::new();
        object.insert("ok".to_owned(), Value::Bool(false));
        object.extend(self.body.as_ref().clone());
        object.insert("error".to_owned(), error);
        object.insert("exit_code".to_owned(), self.exit.code().into());
        Value::Object(object)
    }
}

/// Says how a command of the binary ended, as every other command does: with `json` one object on `stdout`; otherwise the words
/// of a failure on `stderr`, and nothing of a success, whose text the caller has printed. `trouble` is what kept the caller from
/// printing: a success that nobody could be told of is none.
pub fn conclude(
    ended: &Result<Value, Failure>,
    json: bool,
    trouble: Option<&str>,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> ExitCode {
    let (exit, object) = match ended {
        Ok(body) => (ExitCode::Done, output::with_ok(body)),
        Err(failure) => (failure.exit, failure.object()),
    };
    let mut trouble = trouble.map(str::to_owned);
    if json {
        trouble = trouble.or(output::write(stdout, &output::json_line(&object)));
    } else if let Err(failure) = ended {
        output::write_quietly(stderr, &failure.words());
    }
    output::after_trouble(trouble.as_deref(), exit, stderr)
}

/// The next step after a refusal; `None` where the detail says it already.
fn hint(code: &str) -> Option<String> {
    let words = match code {
        "daemon_not_running" => "start it with `gatepost serve`, or name its socket with --socket",
        "unauthenticated" => {
            "the token is not one of this daemon's: check --token-file, GATEPOST_TOKEN_FILE and --state-dir"
        }
        "records_checking" => "the daemon checks its records: try again shortly",
        "ledger_damaged" => "`gatepost status` has the remedy; nothing is done until then",
        "disk_full" => "free some space; nothing was half written",
        "not_permitted" => "use a token with the role that is needed (--token-file)",
        "session_not_found" => "`gatepost session list` shows the sessions",
        "action_not_found" => "the id must be whole; an action that was refused before it began leaves no receipt",
        "not_advertised" => "`gatepost session show ID` lists what may be done now",
        "server_not_installed" => "`gatepost server install` installs the reviewed Agent Server",
        "server_limit" | "queue_full" | "too_many_connections" | "too_many_waiting" | "shutting_down" => {
            "try again later"
        }
        "conversation_not_found" => "the workspace's server has no such conversation: check --workspace and the id",
        "workspace_outside_roots" => "use a directory inside a configured root ([workspaces] roots)",
        "generation_stale" | "approval_superseded" | "approval_expired" | "approval_not_found" => {
            "what may be done has changed: look again (`gatepost approvals ID`, `gatepost session show ID`), then decide again"
        }
        "approval_pending" => "decide first (`gatepost approvals ID`), or send the prompt with --on-pending reject",
        "approval_holds_secret" | "approval_in_doubt" => "it can only be rejected: `gatepost reject ID`",
        "approval_not_shown_in_full" => "fetch it whole with the same token: `gatepost approvals ID --full`",
        "session_running" | "session_not_quiet" => {
            "wait for the turn to end (`gatepost events ID --follow`), or `gatepost interrupt ID`"
        }
        "unreviewed_action" => {
            "look at what ran (`gatepost events ID`), then `gatepost acknowledge ID`, or `gatepost session close ID`"
        }
        "session_blocked" | "canary_failed" => {
            "`gatepost status` and `gatepost session show ID` say what is wrong and what mends it"
        }
        "client_action_id_reused" => "choose another --action-id: this one belongs to a different request",
        "outcome_unknown" => "it may have been done: look at `gatepost events ID` before doing it again",
        "model_not_reviewed" => "`gatepost session show ID` lists the reviewed models",
        "server_start_failed" | "server_crash_looping" | "server_unavailable" => {
            "`gatepost status` shows the server's state and reason"
        }
        _ => return None,
    };
    Some(words.to_owned())
}
