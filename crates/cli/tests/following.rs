//! Events, following them, and following a turn to its end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod support;

use std::io::{Cursor, Write};
use std::time::Duration;

use cli::{Command, Console, ParseOutcome};
use serde_json::{Value, json};
use support::*;

fn events_line(wait_ms: u64, after: Option<&str>) -> String {
    let after = after.map(|cursor| format!("&after={cursor}")).unwrap_or_default();
    format!("GET /v1/sessions/{S1}/events?limit=500&wait_ms={wait_ms}{after}")
}

fn status(seq: u64, word: &str) -> Value {
    event(seq, "status", json!({"status": word}))
}

fn said(seq: u64, text: &str) -> Value {
    event(seq, "user_message", json!({"text": text}))
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_are_one_object_a_line_and_say_where_to_go_on() {
    let all = [said(1, "hi"), status(2, "running")];
    let fake = Fake::start().on(&events_line(0, Some("0%2Bx%2F%26")), [page(&all, "1-2")]);
    let ran = fake.run(&["events", S1, "--after", "0+x/&", "--json"]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    let lines = json_lines(&ran.out);
    assert_eq!(lines, [all[0].clone(), all[1].clone(), json!({"ok": true, "next_cursor": "1-2"})]);
}

#[test]
fn full_pages_are_read_to_the_last() {
    let first: Vec<Value> = (1..=500).map(|seq| status(seq, "running")).collect();
    let fake = Fake::start()
        .on(&events_line(0, None), [page(&first, "1-500")])
        .on(&events_line(0, Some("1-500")), [page(&[status(501, "finished")], "1-501")]);
    let ran = fake.run(&["events", S1, "--json"]);
    assert_eq!((ran.exit, ran.out.lines().count()), (0, 502));
}

#[test]
fn people_read_events_as_text_in_which_nothing_acts() {
    let all = [
        said(1, "hello\nthere"),
        event(
            2,
            "tool_call",
            json!({"tool": "terminal", "arguments": {"command": "ls \u{1b}]0;x\u{7}"}, "agent_risk": "LOW", "agent_summary": "lists"}),
        ),
        event(
            3,
            "tool_result",
            json!({"tool": "terminal", "outcome": "observed", "exit_code": 2, "text": "no\u{9b}31m"}),
        ),
        status(4, "finished"),
        event(5, "lifecycle", json!({"what": "server_crashed"})),
        event(6, "agent_message", json!({"text": "ok\u{202e}"})),
        event(7, "other", json!({"source_kind": "X"})),
    ];
    let fake = Fake::start().on(&events_line(0, None), [page(&all, "1-7")]);
    let ran = fake.run(&["events", S1]);
    assert_eq!(ran.exit, 0);
    for words in [
        "│ hello\n",
        "│ there\n",
        "tool_call terminal",
        "command  │ ls ␛]0;x␇",
        "its risk │ LOW",
        "terminal observed, exit code 2",
        "│ no\\u{9b}31m",
        "status finished",
        "what     │ server_crashed",
        "│ ok\\u{202e}",
        "other X",
    ] {
        assert!(ran.out.contains(words), "{words:?} in\n{}", ran.out);
    }
    assert!(!ran.out.chars().any(|c| c.is_control() && c != '\n'));
}

#[test]
fn a_resync_is_shown() {
    let body = json!({"events": [status(1, "idle")], "next_cursor": "2-1", "resync": {"reason": "epoch", "first_cursor": "2-0"}});
    let fake = Fake::start().on(&events_line(0, Some("1-9")), [ok(body)]);
    let lines = json_lines(&fake.run(&["events", S1, "--after", "1-9", "--json"]).out);
    assert_eq!(lines[0], json!({"resync": {"reason": "epoch", "first_cursor": "2-0"}}));
    assert!(fake.run(&["events", S1, "--after", "1-9"]).out.starts_with("resync (epoch)"));
}

#[test]
fn following_polls_on_until_the_daemon_is_gone() {
    let fake = Fake::start()
        .on(&events_line(30_000, None), [page(&[status(1, "running")], "1-1")])
        .on(&events_line(30_000, Some("1-1")), [page(&[], "1-1"), page(&[status(2, "idle")], "1-2")])
        .on(&events_line(30_000, Some("1-2")), [problem(503, "shutting_down")]);
    let ran = fake.run(&["events", S1, "--follow", "--json"]);
    assert_eq!(ran.exit, 1);
    let lines = json_lines(&ran.out);
    assert_eq!((lines.len(), &lines[2]["error"]["code"]), (3, &json!("shutting_down")));
}

/// A reader who leaves after the first write.
struct Leaves(usize);

impl Write for Leaves {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        self.0 -= 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn run_into(fake: &Fake, words: &[&str], stdout: Box<dyn Write + Send>) -> (u8, String) {
    let err = Kept::default();
    let arguments = std::iter::once("gatepost").chain(words.iter().copied());
    let ParseOutcome::Run(parsed) = cli::parse(arguments, &mut Kept::default(), &mut Kept::default()) else {
        panic!("refused")
    };
    let Command::Client(command) = &parsed.command else { panic!("not for the daemon") };
    let console = Console::new(Box::new(Cursor::new(Vec::new())), stdout, Box::new(err.clone()));
    (cli::client::run_with(command, &fake.context(), console), err.text())
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let fake = Fake::start().on(&events_line(30_000, None), [page(&[status(1, "running"), status(2, "idle")], "1-2")]);
    assert_eq!(run_into(&fake, &["events", S1, "--follow"], Box::new(Leaves(1))), (0, String::new()));
    assert_eq!(fake.lines().len(), 1, "nobody reads, so nothing more is asked");
    let mut closed = Leaves(0);
    assert!(matches!(cli::parse(["gatepost", "--help"], &mut closed, &mut Kept::default()), ParseOutcome::Exit(0)));
}

/// A full disk.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn output_that_is_lost_otherwise_is_a_failure() {
    let fake = Fake::start().on("GET /v1/sessions", [sessions()]);
    let (exit, err) = run_into(&fake, &["session", "list"], Box::new(Full));
    assert!(exit == 1 && err.contains("output_failed"), "{exit} {err}");
}

fn prompting(first: Value) -> Fake {
    Fake::start()
        .on(&format!("GET /v1/sessions/{S1}"), [ok(snapshot_value())])
        .on(&format!("POST /v1/sessions/{S1}/actions"), [ok(first)])
}

fn polls(from: u64, pages: Vec<(u64, Vec<Value>)>, fake: Fake, wait_ms: u64) -> Fake {
    let mut at = from;
    pages.into_iter().fold(fake, |fake, (next, events)| {
        let line = events_line(wait_ms, Some(&format!("1-{at}")));
        at = next;
        fake.on(&line, [page(&events, &format!("1-{next}"))])
    })
}

#[test]
fn waiting_ends_with_the_turn() {
    for (word, exit) in [("finished", 0), ("waiting_for_confirmation", 0), ("paused", 0), ("error", 1), ("stuck", 1)] {
        let fake = polls(
            0,
            vec![
                (2, vec![said(1, "go"), status(2, "running")]),
                (4, vec![event(3, "agent_message", json!({"text": "done"})), status(4, word)]),
            ],
            prompting(receipt("applied", None)),
            10_000,
        );
        let ran = fake.run(&["prompt", S1, "go", "--wait", "--json"]);
        assert_eq!(ran.exit, exit, "{ran:?}");
        let lines = json_lines(&ran.out);
        assert_eq!(lines.len(), 5, "four events and the end");
        let end = &lines[4];
        assert_eq!(
            (&end["ok"], &end["turn_status"], &end["state"]),
            (&json!(exit == 0), &json!(word), &json!("applied"))
        );
        let ran = fake.run(&["prompt", S1, "go", "--wait"]);
        assert!(ran.out.contains(&format!("the turn ended: {word}")), "{}", ran.out);
        assert_eq!(ran.out.contains("gatepost approve"), word == "waiting_for_confirmation");
    }
}

#[test]
fn an_end_that_came_before_the_turn_ran_is_not_its_end() {
    let fake = polls(
        0,
        vec![
            (1, vec![status(1, "finished")]),
            (3, vec![said(2, "go"), status(3, "idle")]),
            (5, vec![status(4, "running"), status(5, "finished")]),
        ],
        prompting(receipt("applied", None)),
        10_000,
    );
    let ran = fake.run(&["prompt", S1, "go", "--wait", "--json"]);
    assert_eq!((ran.exit, json_lines(&ran.out).len()), (0, 6));
}

#[test]
fn the_end_of_the_turn_before_a_queued_prompt_is_not_its_end() {
    let earlier = vec![said(1, "theirs"), status(2, "running"), status(3, "finished")];
    let fake = prompting(receipt("queued", None))
        .on(&events_line(1_000, Some("1-0")), [page(&earlier, "1-3")])
        .on(
            "GET /v1/actions/mine",
            [ok(receipt("queued", None)), ok(receipt("in_flight", None)), ok(receipt("applied", None))],
        )
        .on(&events_line(1_000, Some("1-3")), [page(&[], "1-3")])
        .on(
            &events_line(10_000, Some("1-3")),
            [page(&[said(4, "go"), status(5, "running"), status(6, "finished")], "1-6")],
        );
    let ran = fake.run(&["prompt", S1, "go", "--wait", "--json", "--action-id", "mine"]);
    assert_eq!((ran.exit, json_lines(&ran.out).len()), (0, 7), "{ran:?}");
}

#[test]
fn waiting_ends_when_the_prompt_is_rejected() {
    let fake = prompting(receipt("queued", None))
        .on(&events_line(1_000, Some("1-0")), [page(&[], "1-0")])
        .on("GET /v1/actions/mine", [ok(receipt("rejected", Some("interrupted")))]);
    let (exit, object) = fake.run_json(&["prompt", S1, "go", "--wait", "--action-id", "mine"]);
    assert_eq!((exit, &object["error"]["code"]), (1, &json!("interrupted")));
}

#[test]
fn waiting_ends_when_the_session_is_blocked() {
    let mut blocked = snapshot_value();
    blocked["blocked_reason"] = json!({"code": "canary_failed", "detail": "policy"});
    let fake = prompting(receipt("applied", None))
        .on(&format!("GET /v1/sessions/{S1}"), [ok(snapshot_value()), ok(blocked)])
        .on(&events_line(10_000, Some("1-0")), [page(&[], "1-0")]);
    let (exit, object) = fake.run_json(&["prompt", S1, "go", "--wait"]);
    assert_eq!((exit, &object["error"]["code"]), (4, &json!("canary_failed")));
}

fn look(status: &str, quiet: bool) -> Reply {
    let mut snapshot = snapshot_value();
    (snapshot["status"], snapshot["values"]["quiet"]) = (json!(status), json!(quiet));
    ok(snapshot)
}

/// How often the session was looked at while waiting; once it is before the prompt.
fn looks(fake: &Fake) -> usize {
    fake.lines().iter().filter(|line| **line == format!("GET /v1/sessions/{S1}")).count() - 1
}

#[test]
fn an_end_that_the_events_do_not_tell_is_seen_three_times_in_a_row() {
    for (word, exit) in [("error", 1), ("finished", 0)] {
        // Each look that is not like the ones before it begins anew: a step that goes on, then another that does.
        let seen = [
            look("idle", true),
            look("finished", false),
            look(word, true),
            look(word, true),
            look("running", false),
            look(word, true),
            look(word, true),
            look(word, true),
        ];
        let begun = vec![said(1, "go"), status(2, "running")];
        let fake = prompting(receipt("applied", None))
            .on(&format!("GET /v1/sessions/{S1}"), seen)
            .on(&events_line(10_000, Some("1-0")), [page(&begun, "1-2")])
            .on(&events_line(10_000, Some("1-2")), [page(&[], "1-2")])
            .on(&events_line(1_000, Some("1-2")), [page(&[], "1-2")]);
        let ran = fake.run(&["prompt", S1, "go", "--wait", "--json"]);
        assert_eq!((ran.exit, looks(&fake)), (exit, 7), "{ran:?}");
        assert_eq!(json_lines(&ran.out).last().unwrap()["turn_status"], json!(word));
    }
}

#[test]
fn a_status_of_the_turn_before_never_ends_a_turn() {
    // However often it is seen: the daemon does not say that the step is over.
    let fake = prompting(receipt("applied", None))
        .on(&format!("GET /v1/sessions/{S1}"), [look("idle", true), look("finished", false)])
        .on("*events", [page(&[], "1-0").after(Duration::from_millis(50))]);
    let ran = fake.run(&["prompt", S1, "go", "--wait", "--json", "--timeout-s", "2"]);
    assert_eq!(ran.exit, 7, "{ran:?}");
    assert!(looks(&fake) > 5, "{}", looks(&fake));
}

#[test]
fn looks_do_not_count_across_what_the_events_say() {
    // Two quiet looks, then the stream catches up: its word counts, not theirs.
    let fake = prompting(receipt("applied", None))
        .on(&format!("GET /v1/sessions/{S1}"), [look("idle", true), look("paused", true)])
        .on(&events_line(10_000, Some("1-0")), [page(&[], "1-0")])
        .on(&events_line(1_000, Some("1-0")), [page(&[], "1-0"), page(&[said(1, "go"), status(2, "running")], "1-2")])
        .on(&events_line(10_000, Some("1-2")), [page(&[status(3, "waiting_for_confirmation")], "1-3")]);
    let ran = fake.run(&["prompt", S1, "go", "--wait", "--json"]);
    assert_eq!((ran.exit, looks(&fake)), (0, 2), "{ran:?}");
    assert_eq!(json_lines(&ran.out).last().unwrap()["turn_status"], json!("waiting_for_confirmation"));
}

#[test]
fn looks_before_and_after_something_new_are_not_in_a_row() {
    let fake = prompting(receipt("applied", None))
        .on(&format!("GET /v1/sessions/{S1}"), [look("idle", true), look("finished", true)])
        .on(&events_line(10_000, Some("1-0")), [page(&[], "1-0")])
        .on(
            &events_line(1_000, Some("1-0")),
            [page(&[], "1-0"), page(&[event(1, "agent_message", json!({"text": "late"}))], "1-1")],
        )
        .on(&events_line(10_000, Some("1-1")), [page(&[], "1-1")])
        .on(&events_line(1_000, Some("1-1")), [page(&[], "1-1")]);
    let ran = fake.run(&["prompt", S1, "go", "--wait", "--json"]);
    assert_eq!((ran.exit, looks(&fake)), (0, 5), "{ran:?}");
}

#[test]
fn waiting_is_bounded() {
    let fake = prompting(receipt("queued", None)).on("GET /v1/actions/mine", [ok(receipt("queued", None))]);
    // The hold of a poll shrinks with the time that is left, so its number cannot be known: any poll is answered.
    let fake = fake.on("*events", [page(&[], "1-0").after(Duration::from_millis(300))]);
    let ran = fake.run(&["prompt", S1, "go", "--wait", "--json", "--action-id", "mine", "--timeout-s", "1"]);
    let lines = json_lines(&ran.out);
    assert_eq!((ran.exit, lines.len(), &lines[0]["error"]["code"]), (7, 1, &json!("timed_out")));
    assert!(lines[0]["error"]["hint"].as_str().unwrap().contains("gatepost receipt mine"));

    let running = prompting(receipt("applied", None))
        .on("*events", [page(&[said(1, "go"), status(2, "running")], "1-2").after(Duration::from_millis(300))]);
    let ran = running.run(&["prompt", S1, "go", "--wait", "--timeout-s", "1"]);
    assert!(ran.exit == 7 && ran.err.contains("--follow"), "{ran:?}");
}
