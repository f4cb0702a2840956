//! Events, and following them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod support;

use std::io::{Cursor, Write};

use cli::{Command, Console, ParseOutcome};
use serde_json::{Value, json};
use support::*;

#[test]
fn events_are_one_object_a_line_and_say_where_to_go_on() {
    let all = [said(1, "hi"), status(2, "running")];
    let fake = Fake::start()
        .on(&events_line(0, Some("0%2Bx%2F%26")), [page(&all, "1-2")])
        .on(&events_line(0, Some("1-2")), [page(&[], "1-2")]);
    let ran = fake.run(&["events", S1, "--after", "0+x/&", "--json"]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    let lines = json_lines(&ran.out);
    assert_eq!(lines, [all[0].clone(), all[1].clone(), json!({"ok": true, "next_cursor": "1-2"})]);
}

#[test]
fn pages_are_read_up_to_the_first_that_is_empty() {
    // The second is cut by its size, not by the number of its events.
    let first: Vec<Value> = (1..=500).map(|seq| status(seq, "running")).collect();
    let fake = Fake::start()
        .on(&events_line(0, None), [page(&first, "1-500")])
        .on(&events_line(0, Some("1-500")), [page(&[said(501, "long")], "1-501")])
        .on(&events_line(0, Some("1-501")), [page(&[status(502, "finished")], "1-502")])
        .on(&events_line(0, Some("1-502")), [page(&[], "1-502")]);
    let ran = fake.run(&["events", S1, "--json"]);
    assert_eq!((ran.exit, ran.out.lines().count()), (0, 503));
    assert_eq!(json_lines(&ran.out).last(), Some(&json!({"ok": true, "next_cursor": "1-502"})));
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
    let fake = Fake::start()
        .on(&events_line(0, None), [page(&all, "1-7")])
        .on(&events_line(0, Some("1-7")), [page(&[], "1-7")]);
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
    let fake =
        Fake::start().on(&events_line(0, Some("1-9")), [ok(body)]).on(&events_line(0, Some("2-1")), [page(&[], "2-1")]);
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
