//! Chat completions as the OpenAI API writes them: which reply a request gets, and the reply's bytes.

use super::script::{CALL_WORD, Reply, ToolCall, replies};
use serde_json::{Value, json};

/// What the model answers to a request without tools: a summary for a condensation, a title.
pub(super) const SUMMARY_TEXT: &str = "Summary: the conversation so far.";
/// What the model says after a tool result when the script has no further line.
const DONE_TEXT: &str = "done";
/// How the server answers an empty reply, as the user: the model stays empty until the server gives up.
const NUDGE_AFTER_EMPTY: &str = "Your last response did not include a function call";

/// The reply that the messages themselves ask for.
///
/// A request without tools (a condensation, a title) is answered with a text, whatever its messages say.
pub(super) fn scripted_reply(request: &Value) -> Reply {
    let has_tools = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    if !has_tools {
        return Reply::say(SUMMARY_TEXT);
    }
    let empty = Vec::new();
    let messages = request["messages"].as_array().unwrap_or(&empty);
    let role = |message: &Value| message["role"].as_str().unwrap_or_default().to_owned();
    let Some(position) = messages.iter().rposition(|message| role(message) == "user") else {
        return Reply::say(DONE_TEXT);
    };
    let turns_taken = messages.iter().skip(position).filter(|message| role(message) == "assistant").count();
    let text = last_text(&messages[position]);
    if text.starts_with(NUDGE_AFTER_EMPTY) {
        return Reply::empty();
    }
    let mut script = replies(&text);
    if turns_taken < script.len() { script.swap_remove(turns_taken) } else { Reply::say(DONE_TEXT) }
}

/// The last text of a message: messages posted one after the other arrive as several parts of one.
fn last_text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().rev().find_map(|part| part["text"].as_str()).unwrap_or_default().to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// What a reply needs beside its content.
pub(super) struct Envelope<'a> {
    pub(super) completion_id: &'a str,
    pub(super) model: &'a str,
}

impl Envelope<'_> {
    fn finish_reason(reply: &Reply) -> &'static str {
        if reply.calls.is_empty() { "stop" } else { "tool_calls" }
    }

    fn usage() -> Value {
        json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
    }

    fn call(&self, index: usize, call: &ToolCall) -> Value {
        let word = format!("{}_{index}", self.completion_id);
        let arguments = call.arguments.replace(CALL_WORD, &word);
        let id = call.id.clone().unwrap_or_else(|| format!("call_{word}"));
        json!({"id": id, "type": "function", "function": {"name": call.tool, "arguments": arguments}})
    }

    /// The body of a reply in one piece.
    pub(super) fn whole(&self, reply: &Reply) -> Value {
        let mut message = json!({"role": "assistant", "content": reply.text});
        if !reply.calls.is_empty() {
            let calls = reply.calls.iter().enumerate().map(|(index, call)| self.call(index, call));
            message["tool_calls"] = calls.collect();
        }
        json!({
            "id": self.completion_id, "object": "chat.completion", "created": 1, "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": Self::finish_reason(reply)}],
            "usage": Self::usage(),
        })
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        json!({
            "id": self.completion_id, "object": "chat.completion.chunk", "created": 1, "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        })
    }

    /// The frames of a streamed reply, each with its blank line, `[DONE]` last.
    pub(super) fn frames(&self, reply: &Reply, include_usage: bool) -> Vec<String> {
        let start = if reply.text.is_some() { json!("") } else { Value::Null };
        let mut chunks = vec![self.chunk(&json!({"role": "assistant", "content": start}), None)];
        if let Some(text) = &reply.text {
            let words = text.split_inclusive(' ').filter(|word| !word.is_empty());
            chunks.extend(words.map(|word| self.chunk(&json!({"content": word}), None)));
        }
        for (index, call) in reply.calls.iter().enumerate() {
            let mut call = self.call(index, call);
            call["index"] = json!(index);
            chunks.push(self.chunk(&json!({"tool_calls": [call]}), None));
        }
        chunks.push(self.chunk(&json!({}), Some(Self::finish_reason(reply))));
        if include_usage {
            let mut usage = self.chunk(&json!({}), None);
            usage["choices"] = json!([]);
            usage["usage"] = Self::usage();
            chunks.push(usage);
        }
        let done = "data: [DONE]\n\n".to_owned();
        chunks.into_iter().map(|chunk| format!("data: {chunk}\n\n")).chain([done]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(messages: &Value) -> Value {
        json!({"messages": messages, "tools": [{"function": {"name": "terminal"}}]})
    }

    #[test]
    fn the_last_part_of_the_last_user_message_decides() {
        let messages = json!([{"role": "user", "content": [{"text": "run: a"}, {"text": "run: b"}]}]);
        assert_eq!(scripted_reply(&request(&messages)), Reply::run("b"));
    }

    #[test]
    fn a_tool_result_gets_the_next_line_then_done() {
        let user = json!({"role": "user", "content": "run: a\nthen run: b"});
        let assistant = json!({"role": "assistant", "tool_calls": []});
        let tool = json!({"role": "tool", "content": "ok"});
        assert_eq!(scripted_reply(&request(&json!([user, assistant, tool]))), Reply::run("b"));
        let twice = json!([user, assistant, tool, assistant, tool]);
        assert_eq!(scripted_reply(&request(&twice)), Reply::say(DONE_TEXT));
    }

    #[test]
    fn an_empty_reply_stays_empty_when_the_server_asks_again() {
        let nudge = format!("{NUDGE_AFTER_EMPTY} or a message.");
        let messages = json!([{"role": "user", "content": "empty"}, {"role": "user", "content": nudge}]);
        assert_eq!(scripted_reply(&request(&messages)), Reply::empty());
    }

    #[test]
    fn without_tools_nothing_is_proposed() {
        let body = json!({"messages": [{"role": "user", "content": "run: a"}]});
        assert_eq!(scripted_reply(&body), Reply::say(SUMMARY_TEXT));
    }

    #[test]
    fn frames_carry_every_call_with_a_unique_id() {
        let envelope = Envelope { completion_id: "c9", model: "m" };
        let frames = envelope.frames(&Reply::run_all(&["a", "b"]), true);
        let text = frames.concat();
        assert!(text.contains("call_c9_0") && text.contains("call_c9_1"), "{text}");
        assert!(text.contains("\"usage\""), "{text}");
        assert_eq!(frames.last().map(String::as_str), Some("data: [DONE]\n\n"));
        let whole = envelope.whole(&Reply::run_all(&["a", "echo {call}"]));
        let second = &whole["choices"][0]["message"]["tool_calls"][1];
        assert_eq!(second["id"], "call_c9_1");
        assert!(second["function"]["arguments"].as_str().unwrap().contains("echo c9_1"), "{second}");
    }
}
