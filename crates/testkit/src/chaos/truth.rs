//! What the servers themselves hold: their conversations on disk and their logs of requests.

use super::record::Conversation;
use crate::daemon::ServerLog;
use crate::failure::{Doing, Failure, Outcome};
use crate::soak::log::{Line, Reading, read};
use crate::soak::shape::marker_of;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// All conversations, and what their logs say of our commands.
pub(super) fn conversations(state: &Path, marks: &Path) -> Outcome<(BTreeMap<String, Conversation>, Reading)> {
    let (mut found, mut readings) = (BTreeMap::new(), Reading::default());
    for binding in entries(&state.join("bindings"))? {
        let directory = binding.join("conversations");
        if !directory.is_dir() {
            continue;
        }
        for path in entries(&directory)? {
            let meta = json(&path.join("meta.json")).unwrap_or_default();
            let mut conversation = Conversation {
                title: meta["title"].as_str().map(str::to_owned),
                broken: broken(&path)?,
                ..Conversation::default()
            };
            let mut lines = Vec::new();
            // Named by their number in five digits, in which they were appended; beside them is a lock.
            for file in entries(&path.join("events"))?.iter().filter(|file| is_json(file)) {
                let Ok(event) = json(file) else { continue };
                let event_id = event["id"].as_str().unwrap_or_default().to_owned();
                if event["kind"] == "MessageEvent" && event["source"] == "user" {
                    let text = event["llm_message"]["content"][0]["text"].as_str().unwrap_or_default();
                    conversation.messages.insert(event_id.clone(), text.to_owned());
                }
                lines.extend(line(&event, marks));
                conversation.events.push(event_id);
            }
            let reading = read(lines);
            readings.proposed.extend(reading.proposed);
            readings.ended.extend(reading.ended);
            found.insert(dashed(&path.file_name().unwrap_or_default().to_string_lossy()), conversation);
        }
    }
    Ok((found, readings))
}

/// Reads a database that nobody has open: it is neither locked nor written beside.
const LATE: &str = "import json,sqlite3,sys
journal = sqlite3.connect('file:' + sys.argv[1] + '?immutable=1', uri=True)
print(json.dumps(journal.execute('SELECT session_id, event_id FROM events WHERE is_late = 1').fetchall()))";

/// Sessions and events that the journal of a stopped daemon has as late.
pub(crate) fn late(state: &Path) -> Outcome<BTreeSet<(String, String)>> {
    let journal = state.join("journal.sqlite3");
    let output = Command::new("python3").args(["-I", "-c", LATE]).arg(&journal).output();
    let output = output.doing("the journal could not be read")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("the journal could not be read: {said}")));
    }
    serde_json::from_slice(&output.stdout).doing("the journal's late events")
}

/// The file of this conversation that its server can read no more, if there is one.
pub(super) fn broken_in(state: &Path, session: &str) -> Outcome<Option<String>> {
    for binding in entries(&state.join("bindings"))? {
        let path = binding.join("conversations").join(session.replace('-', ""));
        if path.is_dir() {
            return broken(&path);
        }
    }
    Ok(None)
}

fn broken(conversation: &Path) -> Outcome<Option<String>> {
    let mut files = entries(&conversation.join("events"))?;
    files.extend(["meta.json", "base_state.json"].map(|name| conversation.join(name)));
    let whole = |file: &PathBuf| !is_json(file) || !file.exists() || json(file).is_ok();
    Ok(files.into_iter().find(|file| !whole(file)).map(|file| {
        let bytes = std::fs::metadata(&file).map_or(0, |data| data.len());
        format!("{} of {bytes} bytes", file.file_name().unwrap_or_default().to_string_lossy())
    }))
}

/// A directory's name as the id that it stands for.
fn dashed(name: &str) -> String {
    let part = |from, to| name.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// How often each conversation was asked for each mutation, by the logs in this directory.
pub(super) fn requests(logs: &Path) -> Outcome<BTreeMap<(String, String), u64>> {
    let mut counted = BTreeMap::new();
    for log in entries(logs)? {
        for request in ServerLog::at(&log).requests() {
            let Some((session, kind)) = mutation(&request.method, &request.target) else { continue };
            *counted.entry((session.to_owned(), kind.to_owned())).or_default() += 1;
        }
    }
    Ok(counted)
}

/// The conversation and the kind of a mutation that a step of a receipt accounts for.
fn mutation<'a>(method: &str, target: &'a str) -> Option<(&'a str, &'static str)> {
    let rest = target.strip_prefix("/api/conversations/")?;
    let (session, what) = rest.split_once('/').unwrap_or((rest, ""));
    let kind = match (method, what) {
        ("POST", "events") => "message",
        ("POST", "events/respond_to_confirmation") => "decision",
        ("POST", "navigate") => "navigate",
        ("POST", "fork") => "fork",
        ("POST", "switch_profile") => "switch_profile",
        ("POST", "run") => "run",
        ("POST", "condense") => "condense",
        ("POST", "interrupt") => "interrupt",
        ("PATCH", "") => "set_title",
        _ => return None,
    };
    Some((session, kind))
}

/// An event of the server as the reading of a log takes it.
fn line(event: &Value, marks: &Path) -> Option<Line> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let observation = &event["observation"];
    match event["kind"].as_str()? {
        "ActionEvent" => {
            let marker = marker_of(event["action"]["command"].as_str()?, marks)?;
            Some(Line::Proposed { event_id: text(&event["id"]), marker })
        }
        "AgentErrorEvent" => {
            Some(Line::Failed { tool_call_id: text(&event["tool_call_id"]), words: text(&event["error"]) })
        }
        "UserRejectObservation" => {
            Some(Line::Refused { event_id: text(&event["action_id"]), words: text(&event["rejection_reason"]) })
        }
        "ObservationEvent" if observation["is_error"] == true || observation["exit_code"] == -1 => {
            Some(Line::Refused { event_id: text(&event["action_id"]), words: observation["content"].to_string() })
        }
        _ => None,
    }
}

/// What is in a directory, by name.
fn entries(directory: &Path) -> Outcome<Vec<PathBuf>> {
    // A server that was killed in the middle of a creation may not have made it.
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let listed = std::fs::read_dir(directory).doing("a directory of a server could not be listed")?;
    let mut paths: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

fn json(path: &Path) -> Outcome<Value> {
    let text = std::fs::read_to_string(path).doing("a file of a server could not be read")?;
    serde_json::from_str(&text).doing(&format!("{} is not JSON", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutation_is_told_by_method_and_path() {
        let cases = [
            ("POST", "/api/conversations/c/events", Some("message")),
            ("GET", "/api/conversations/c/events/search?limit=100", None),
            ("POST", "/api/conversations/c/events/respond_to_confirmation", Some("decision")),
            ("PATCH", "/api/conversations/c", Some("set_title")),
            ("GET", "/api/conversations/c", None),
            ("POST", "/api/conversations/c/confirmation_policy", None),
            ("POST", "/api/conversations", None),
        ];
        for (method, target, kind) in cases {
            assert_eq!(mutation(method, target), kind.map(|kind| ("c", kind)), "{method} {target}");
        }
    }

    #[test]
    fn late_events_are_read_from_the_journal_and_nothing_is_left_beside_it() {
        let state = tempfile::tempdir().unwrap();
        let make = "import sqlite3,sys\nj=sqlite3.connect(sys.argv[1])\nj.executescript('CREATE TABLE events (session_id, \
                    event_id, is_late); INSERT INTO events VALUES (1, 1, 0)')\nj.execute(\"INSERT INTO events VALUES \
                    ('s', 'e', 1)\")\nj.commit()";
        let journal = state.path().join("journal.sqlite3");
        assert!(Command::new("python3").args(["-c", make]).arg(&journal).status().unwrap().success());
        assert_eq!(late(state.path()).unwrap(), [("s".to_owned(), "e".to_owned())].into());
        assert_eq!(entries(state.path()).unwrap(), [journal]);
        assert!(late(&state.path().join("nowhere")).is_err());
    }

    #[test]
    fn a_conversation_is_read_in_the_order_in_which_it_was_written() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("bindings/b/conversations/0123456789abcdef0123456789abcdef");
        std::fs::create_dir_all(directory.join("events")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
        write("meta.json", r#"{"title": "t"}"#);
        write(
            "events/event-00001-a.json",
            r#"{"id": "a", "kind": "ActionEvent", "action": {"command": "echo ran >> /m/x_0 # k"}}"#,
        );
        let message =
            r#"{"id": "z", "kind": "MessageEvent", "source": "user", "llm_message": {"content": [{"text": "hi"}]}}"#;
        write("events/event-00000-z.json", message);
        write("base_state.json", "{}");
        let id = "01234567-89ab-cdef-0123-456789abcdef";
        assert_eq!(broken_in(root.path(), id).unwrap(), None);
        let (found, reading) = conversations(root.path(), Path::new("/m")).unwrap();
        assert_eq!(found[id].events, ["z", "a"]);
        assert_eq!((found[id].title.as_deref(), found[id].messages["z"].as_str()), (Some("t"), "hi"));
        assert_eq!((reading.proposed["a"].as_str(), &found[id].broken), ("x_0", &None));
        std::fs::create_dir_all(root.path().join("bindings/b/conversations/fedcba9876543210fedcba9876543210")).unwrap();
        let half_made = "fedcba98-7654-3210-fedc-ba9876543210";
        assert_eq!(broken_in(root.path(), half_made).unwrap(), None, "what was never made is not broken");
        write("base_state.json", "");
        let (found, _) = conversations(root.path(), Path::new("/m")).unwrap();
        assert_eq!(found[id].broken.as_deref(), Some("base_state.json of 0 bytes"));
    }
}
