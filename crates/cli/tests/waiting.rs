//! Following a turn to its end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::*;

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
    blocked["blocked_reason"] = json!({"code": "canary_failed", "detail": "policy", "remedy": "look"});
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

/// The page that tells of a new epoch shows a whole turn that was before.
fn started_over() -> Reply {
    let old = [said(1, "before"), status(2, "running"), status(3, "finished")];
    ok(json!({"events": old, "next_cursor": "2-3", "resync": {"reason": "epoch", "first_cursor": "2-0"}}))
}

fn look_at(cursor: &str, status: &str, quiet: bool) -> Reply {
    let mut snapshot = snapshot_value();
    (snapshot["status"], snapshot["values"]["quiet"], snapshot["cursor"]) =
        (json!(status), json!(quiet), json!(cursor));
    ok(snapshot)
}

#[test]
fn a_turn_that_a_new_epoch_shows_again_does_not_end_the_wait() {
    // Its own turn had begun, and has not ended when the epoch comes; then it waits for an approval.
    let seen = [
        look("idle", true),
        look_at("2-9", "running", false),
        look("running", false),
        look("waiting_for_confirmation", true),
    ];
    let fake = prompting(receipt("applied", None))
        .on(&format!("GET /v1/sessions/{S1}"), seen)
        .on(&events_line(10_000, Some("1-0")), [page(&[said(1, "go"), status(2, "running")], "1-2")])
        .on(&events_line(10_000, Some("1-2")), [started_over()])
        .on(&events_line(10_000, Some("2-9")), [page(&[status(10, "finished")], "2-10")])
        .on(&events_line(10_000, Some("2-10")), [page(&[], "2-10")])
        .on(&events_line(1_000, Some("2-10")), [page(&[], "2-10")]);
    let ran = fake.run(&["prompt", S1, "go", "--wait", "--json"]);
    let lines = json_lines(&ran.out);
    assert_eq!((ran.exit, looks(&fake)), (0, 5), "{ran:?}");
    assert_eq!(lines.last().unwrap()["turn_status"], json!("waiting_for_confirmation"));
    assert_eq!(lines[2]["resync"]["reason"], json!("epoch"));
    assert_eq!(lines.len(), 5, "what the epoch shows again is not printed: {}", ran.out);
}

#[test]
fn a_turn_that_begins_after_a_new_epoch_ends_by_its_events() {
    let turn = vec![said(10, "go"), status(11, "running"), status(12, "error")];
    let fake = prompting(receipt("queued", None))
        .on(&format!("GET /v1/sessions/{S1}"), [look("idle", true), look_at("2-9", "finished", true)])
        .on(&events_line(1_000, Some("1-0")), [started_over()])
        .on("GET /v1/actions/mine", [ok(receipt("applied", None))])
        .on(&events_line(10_000, Some("2-9")), [page(&turn, "2-12")]);
    let ran = fake.run(&["prompt", S1, "go", "--wait", "--json", "--action-id", "mine"]);
    assert_eq!((ran.exit, looks(&fake)), (1, 1), "{ran:?}");
    assert_eq!(json_lines(&ran.out).last().unwrap()["turn_status"], json!("error"));
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
