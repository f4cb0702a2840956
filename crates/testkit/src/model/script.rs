//! The small language in which a message tells the scripted model what to answer.
//!
//! Each line is a directive; the first is the answer to the message, each further line that starts with `then ` is
//! the answer after the next tool result. A text that is no directive is answered with a short text.
//!
//! | directive | answer |
//! |---|---|
//! | `run: <command>` | one terminal call |
//! | `run all: a ;; b ;; c` | several terminal calls in one reply |
//! | `call: <tool> <JSON arguments>` | one call of any tool |
//! | `call all: <call> ;; <call>` | several such calls in one reply |
//! | `say: <text>` | a text |
//! | `finish: <text>` | a call of the finish tool |
//! | `think: <text>` | a call of the think tool |
//! | `bad-args` | a terminal call with arguments that no terminal accepts |
//! | `empty` | an empty text |
//! | `fail <status>` | an HTTP error instead of a reply |
//! | `slow <ms>: <directive>` | the same, after that many milliseconds |
//! | `reuse-id <id> <directive>` | the same, with this `tool_call_id` |
//! | `summary "<words>" <directive>` | the same, with these words of the model about its call |
//!
//! In the arguments of a call, `{call}` stands for a word that no other call ever has.

use serde_json::{Value, json};

/// The longest delay that a directive can ask for, in milliseconds.
pub const MAX_DELAY_MS: u64 = 600_000;
/// In the arguments of a call, this stands for a word that no other call ever has.
pub const CALL_WORD: &str = "{call}";
/// What the model says about its own terminal calls unless told otherwise.
pub const DEFAULT_SUMMARY: &str = "list files";
/// The risk that the model claims for its own calls.
pub const CLAIMED_RISK: &str = "LOW";
/// Bounds the text that a plain message is echoed with, in characters.
const ECHO_CHARS: usize = 50;

/// One tool call of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The `tool_call_id`; `None` lets the model make a unique one.
    pub id: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The arguments as the model writes them: usually, not necessarily, JSON.
    pub arguments: String,
}

/// One answer of the scripted model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Milliseconds to wait before the first byte.
    pub delay_ms: u64,
    /// The text, possibly empty; `None` when the reply is tool calls only.
    pub text: Option<String>,
    /// Tool calls, in order.
    pub calls: Vec<ToolCall>,
    /// Answer with this HTTP status instead.
    pub fail_status: Option<u16>,
}

impl Reply {
    /// A text.
    #[must_use]
    pub fn say(text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..Self::default() }
    }

    /// An empty text.
    #[must_use]
    pub fn empty() -> Self {
        Self::say("")
    }

    /// One terminal call.
    #[must_use]
    pub fn run(command: &str) -> Self {
        Self::run_all(&[command])
    }

    /// Several terminal calls in one reply.
    #[must_use]
    pub fn run_all(commands: &[&str]) -> Self {
        let calls = commands.iter().map(|command| call("terminal", &terminal_arguments(command)));
        Self { calls: calls.collect(), ..Self::default() }
    }

    /// One call of any tool.
    #[must_use]
    pub fn call(tool: &str, arguments: &Value) -> Self {
        Self { calls: vec![call(tool, arguments)], ..Self::default() }
    }

    /// An HTTP error.
    #[must_use]
    pub fn fail(status: u16) -> Self {
        Self { fail_status: Some(status), ..Self::default() }
    }

    /// The same reply, later.
    #[must_use]
    pub fn after_ms(mut self, delay_ms: u64) -> Self {
        self.delay_ms = delay_ms.min(MAX_DELAY_MS);
        self
    }

    /// The same reply with this `tool_call_id` on its first call.
    #[must_use]
    pub fn with_call_id(mut self, id: &str) -> Self {
        if let Some(first) = self.calls.first_mut() {
            first.id = Some(id.to_owned());
        }
        self
    }

    /// The same reply with other words of the model about its calls.
    #[must_use]
    pub fn with_summary(mut self, summary: &str) -> Self {
        for call in &mut self.calls {
            if let Ok(Value::Object(mut arguments)) = serde_json::from_str::<Value>(&call.arguments) {
                arguments.insert("summary".to_owned(), json!(summary));
                call.arguments = Value::Object(arguments).to_string();
            }
        }
        self
    }
}

fn call(tool: &str, arguments: &Value) -> ToolCall {
    ToolCall { id: None, tool: tool.to_owned(), arguments: arguments.to_string() }
}

fn terminal_arguments(command: &str) -> Value {
    json!({"command": command, "security_risk": CLAIMED_RISK, "summary": DEFAULT_SUMMARY})
}

/// The answers that one user message asks for: the first, then one after each tool result.
///
/// The list is never empty. A line that starts with `then ` but holds no directive belongs to the line before it, so
/// that shell text over several lines stays whole.
#[must_use]
pub fn replies(text: &str) -> Vec<Reply> {
    let mut parts: Vec<String> = Vec::new();
    for line in text.trim().lines() {
        let continuation = line.strip_prefix("then ").filter(|rest| directive(rest).is_some());
        match (continuation, parts.last_mut()) {
            (Some(rest), Some(_)) => parts.push(rest.to_owned()),
            (None, Some(last)) => {
                last.push('\n');
                last.push_str(line);
            }
            (_, None) => parts.push(line.to_owned()),
        }
    }
    let answer = |part: &String| directive(part).unwrap_or_else(|| echo(part));
    if parts.is_empty() { vec![Reply::say("ok")] } else { parts.iter().map(answer).collect() }
}

fn echo(text: &str) -> Reply {
    Reply::say(&format!("ok: {}", text.chars().take(ECHO_CHARS).collect::<String>()))
}

/// Reads one directive; `None` when the text is none.
fn directive(text: &str) -> Option<Reply> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("slow ") {
        let (delay_ms, rest) = rest.split_once(':')?;
        return Some(directive(rest)?.after_ms(delay_ms.trim().parse().ok()?));
    }
    if let Some(rest) = text.strip_prefix("reuse-id ") {
        let (id, rest) = rest.trim_start().split_once(' ')?;
        return Some(directive(rest)?.with_call_id(id));
    }
    if let Some(rest) = text.strip_prefix("summary \"") {
        let (summary, rest) = rest.split_once('"')?;
        return Some(directive(rest)?.with_summary(summary));
    }
    if let Some(status) = text.strip_prefix("fail ") {
        return Some(Reply::fail(status.trim().parse().ok()?));
    }
    match text {
        "empty" => return Some(Reply::empty()),
        "bad-args" => return Some(bad_arguments()),
        _ => {}
    }
    let (verb, rest) = text.split_once(':')?;
    let rest = rest.trim();
    match verb {
        "run" => Some(Reply::run(rest)),
        "run all" => Some(Reply::run_all(&rest.split(";;").map(str::trim).collect::<Vec<_>>())),
        "say" => Some(Reply::say(rest)),
        "finish" => Some(Reply::call("finish", &json!({"message": rest}))),
        "think" => Some(Reply::call("think", &json!({"thought": rest}))),
        "call" => Some(Reply { calls: vec![any_call(rest)?], ..Reply::default() }),
        "call all" => {
            let calls: Option<Vec<ToolCall>> = rest.split(";;").map(any_call).collect();
            Some(Reply { calls: calls?, ..Reply::default() })
        }
        _ => None,
    }
}

fn any_call(text: &str) -> Option<ToolCall> {
    let (tool, arguments) = text.trim().split_once(' ')?;
    Some(call(tool, &serde_json::from_str(arguments).ok()?))
}

fn bad_arguments() -> Reply {
    Reply::call("terminal", &json!({"command": {"not": "a text"}, "security_risk": CLAIMED_RISK}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directive_gives_its_reply() {
        let table = [
            ("run: echo hi: there", Reply::run("echo hi: there")),
            ("run all: a ;; b ;; c", Reply::run_all(&["a", "b", "c"])),
            ("say: hello", Reply::say("hello")),
            ("empty", Reply::empty()),
            ("bad-args", bad_arguments()),
            ("fail 401", Reply::fail(401)),
            ("finish: bye", Reply::call("finish", &json!({"message": "bye"}))),
            ("think: hm", Reply::call("think", &json!({"thought": "hm"}))),
            ("call: task {\"a\": 1}", Reply::call("task", &json!({"a": 1}))),
            (
                "call all: task {\"a\": 1} ;; finish {\"message\": \"bye\"}",
                Reply {
                    calls: [("task", json!({"a": 1})), ("finish", json!({"message": "bye"}))]
                        .map(|(tool, arguments)| call(tool, &arguments))
                        .to_vec(),
                    ..Reply::default()
                },
            ),
            ("slow 250: run: ls", Reply::run("ls").after_ms(250)),
            ("reuse-id call_7 run: ls", Reply::run("ls").with_call_id("call_7")),
            ("summary \"harmless\" run: rm x", Reply::run("rm x").with_summary("harmless")),
            ("slow 5: reuse-id z bad-args", bad_arguments().with_call_id("z").after_ms(5)),
        ];
        for (text, reply) in table {
            assert_eq!(replies(text), vec![reply], "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_directive_is_echoed() {
        for text in [
            "Wait, do NOT run that",
            "call: terminal not-json",
            "call all: think {} ;; finish",
            "slow soon: run: ls",
            "fail often",
        ] {
            assert_eq!(replies(text), vec![echo(text)], "{text}");
        }
        assert_eq!(replies(""), vec![Reply::say("ok")]);
    }

    #[test]
    fn then_lines_follow_tool_results_and_shell_text_stays_whole() {
        assert_eq!(
            replies("run: a\nthen run: b\nthen say: c"),
            vec![Reply::run("a"), Reply::run("b"), Reply::say("c")]
        );
        assert_eq!(replies("run: if true\nthen ls\nfi"), vec![Reply::run("if true\nthen ls\nfi")]);
    }

    #[test]
    fn a_delay_is_bounded() {
        assert_eq!(Reply::empty().after_ms(u64::MAX).delay_ms, MAX_DELAY_MS);
    }
}
