//! Deciding: shown whole, named by digest, asked at a terminal only.

mod support;

use serde_json::{Value, json};
use support::*;

fn list(approvals: &[Value]) -> Reply {
    ok(json!({"approvals": approvals}))
}

fn pending(approval: &Value) -> Fake {
    let mut listed = approval.clone();
    listed["complete"] = json!(false);
    listed["actions"][0]["truncated"] = json!(true);
    listed["actions"][0]["arguments"] = json!({"command": "echo one…"});
    Fake::start()
        .on(&format!("GET /v1/sessions/{S1}"), [ok(snapshot_value())])
        .on(&format!("GET /v1/sessions/{S1}/approvals"), [list(&[listed])])
        .on(&format!("GET /v1/sessions/{S1}/approvals/{A1}?full=true"), [ok(approval.clone())])
        .on(&format!("POST /v1/sessions/{S1}/actions"), [ok(receipt("applied", None))])
}

fn posts(fake: &Fake) -> usize {
    fake.lines().iter().filter(|line| line.starts_with("POST")).count()
}

#[test]
fn at_a_terminal_the_batch_is_shown_whole_then_asked_then_that_digest_is_sent() {
    for answer in ["y\n", "Y\n", "yes\n", " YES \n"] {
        let fake = pending(&approval_value());
        let ran = fake.run_at_terminal(&["approve", S1], answer);
        assert_eq!(ran.exit, 0, "{ran:?}");
        for words in [
            A1,
            "confinement: weak",
            "note: a shell keeps its state",
            "action 1 of 2: terminal",
            "command  │ echo one\n             │ echo ␛[2Jtwo\n",
            "action 2 of 2: file_editor",
            "path     │ /etc/passwd",
            "the agent's own words, not checked:",
            "risk     │ LOW",
            "summary  │ harmless \\u{202e}really",
            "! deceptive text",
            "Approve these 2 actions? [y/N] ",
        ] {
            assert!(ran.out.contains(words), "{words:?} in\n{}", ran.out);
        }
        assert_eq!(
            fake.lines(),
            [
                format!("GET /v1/sessions/{S1}"),
                format!("GET /v1/sessions/{S1}/approvals"),
                format!("GET /v1/sessions/{S1}/approvals/{A1}?full=true"),
                format!("POST /v1/sessions/{S1}/actions"),
            ]
        );
        let sent = fake.sent();
        assert_eq!(sent["operation_id"], "session.approval.decide");
        assert_eq!(sent["input"], json!({"approval_id": A1, "decision": "accept"}));
        assert_eq!(sent["capability_generation"], 7);
    }
}

#[test]
fn anything_but_yes_sends_nothing() {
    for answer in ["", "\n", "n\n", "no\n", "yep\n", "y", "yy\n", &"y".repeat(1000)] {
        let fake = pending(&approval_value());
        let ran = fake.run_at_terminal(&["approve", S1], answer);
        assert_eq!((ran.exit, posts(&fake)), (1, 0), "{answer:?}");
        assert!(ran.err.contains("nothing was sent"), "{}", ran.err);
    }
}

#[test]
fn without_a_person_to_ask_the_digest_must_be_named() {
    let fake = pending(&approval_value());
    for command in ["approve", "reject"] {
        for (stdin_is_terminal, stdout_is_terminal) in [(false, false), (true, false), (false, true)] {
            let context = cli::ClientContext { stdin_is_terminal, stdout_is_terminal, ..fake.context() };
            let ran = run(&[command, S1], context, "y\n");
            assert_eq!(ran.exit, 2);
            assert!(ran.err.contains("12 digits"), "{}", ran.err);
        }
        let ran = fake.run_at_terminal(&[command, S1, "--json"], "y\n");
        assert_eq!((ran.exit, ran.out.lines().count()), (2, 1), "json cannot be asked");
    }
    assert!(fake.lines().is_empty(), "nothing was even read");
}

#[test]
fn a_named_batch_is_read_in_full_before_it_is_accepted() {
    let fake = pending(&approval_value());
    let ran = fake.run(&["approve", S1, &A1[..12].to_uppercase()]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert!(ran.out.contains("echo ␛[2Jtwo") && !ran.out.contains("[y/N]"));
    let lines = fake.lines();
    assert_eq!(lines[lines.len() - 2], format!("GET /v1/sessions/{S1}/approvals/{A1}?full=true"));
    assert_eq!(fake.sent()["input"]["approval_id"], A1, "the whole digest is sent");

    let whole = pending(&approval_value());
    let (exit, object) = whole.run_json(&["approve", S1, A1]);
    assert_eq!((exit, &object["state"]), (0, &json!("applied")));
    assert!(!whole.lines().contains(&format!("GET /v1/sessions/{S1}/approvals")), "a whole digest needs no list");
}

#[test]
fn a_prefix_must_name_exactly_one_pending_batch() {
    let fake = pending(&approval_value());
    let (exit, object) = fake.run_json(&["approve", S1, "ffffffffffff"]);
    assert_eq!((exit, &object["error"]["code"]), (1, &json!("approval_not_found")));

    let mut second = approval_value();
    second["approval_id"] = json!(format!("{}{}", &A1[..12], "e".repeat(52)));
    let fake =
        pending(&approval_value()).on(&format!("GET /v1/sessions/{S1}/approvals"), [list(&[approval_value(), second])]);
    let (exit, object) = fake.run_json(&["approve", S1, &A1[..12]]);
    assert_eq!((exit, object["candidates"].as_array().unwrap().len()), (2, 2));
    assert_eq!(fake.run_at_terminal(&["approve", S1], "y\n").exit, 2, "which of them is meant must be said");
    assert_eq!(posts(&fake), 0);
}

#[test]
fn a_whole_digest_that_is_gone_is_told_by_the_daemon() {
    for (status, code, exit) in [
        (404, "approval_not_found", 1),
        (409, "approval_superseded", 6),
        (410, "approval_expired", 6),
        (403, "not_permitted", 5),
    ] {
        let fake = pending(&approval_value())
            .on(&format!("GET /v1/sessions/{S1}/approvals/{A1}?full=true"), [problem(status, code)]);
        let (got, object) = fake.run_json(&["approve", S1, A1]);
        assert_eq!((got, &object["error"]["code"]), (exit, &json!(code)));
        assert_eq!(posts(&fake), 0);
    }
}

#[test]
fn a_reply_about_another_batch_is_not_believed() {
    for (field, value) in [("approval_id", "f".repeat(64)), ("session_id", S2.to_owned())] {
        let mut other = approval_value();
        other[field] = json!(value);
        let fake =
            pending(&approval_value()).on(&format!("GET /v1/sessions/{S1}/approvals/{A1}?full=true"), [ok(other)]);
        assert_eq!(fake.run_at_terminal(&["approve", S1], "y\n").exit, 1);
        assert_eq!(posts(&fake), 0);
    }
    let mut strange = approval_value();
    strange["approval_id"] = json!("../../status");
    let fake = pending(&approval_value()).on(&format!("GET /v1/sessions/{S1}/approvals"), [list(&[strange])]);
    assert_eq!(fake.run_at_terminal(&["approve", S1], "y\n").exit, 1);
    assert_eq!(posts(&fake), 0);
}

#[test]
fn what_cannot_be_accepted_is_shown_and_not_asked_about() {
    for (pointer, value, code) in [
        ("/holds_secret", json!(true), "approval_holds_secret"),
        ("/complete", json!(false), "approval_not_shown_in_full"),
        ("/actions/0/truncated", json!(true), "approval_not_shown_in_full"),
        ("/actions/1/in_doubt", json!(true), "approval_in_doubt"),
        ("/actions", json!([]), "approval_not_shown_in_full"),
    ] {
        let mut approval = approval_value();
        *approval.pointer_mut(pointer).unwrap() = value;
        let fake =
            pending(&approval_value()).on(&format!("GET /v1/sessions/{S1}/approvals/{A1}?full=true"), [ok(approval)]);
        let ran = fake.run_at_terminal(&["approve", S1], "y\n");
        assert_eq!((ran.exit, posts(&fake)), (6, 0), "{pointer}");
        assert!(ran.err.contains(code) && !ran.out.contains("[y/N]"), "{ran:?}");
    }
}

#[test]
fn nothing_pending_is_said() {
    let fake = pending(&approval_value()).on(&format!("GET /v1/sessions/{S1}/approvals"), [list(&[])]);
    let ran = fake.run_at_terminal(&["approve", S1], "y\n");
    assert!(ran.exit == 6 && ran.err.contains("nothing_pending"), "{ran:?}");
    assert_eq!(fake.run(&["approvals", S1]).out, "nothing waits for a decision\n");
}

#[test]
fn a_change_while_a_person_reads_is_a_refusal_and_not_a_second_try() {
    let fake =
        pending(&approval_value()).on(&format!("POST /v1/sessions/{S1}/actions"), [problem(409, "generation_stale")]);
    let ran = fake.run_at_terminal(&["approve", S1], "y\n");
    assert_eq!((ran.exit, posts(&fake)), (6, 1));
    assert!(ran.err.contains("look again"), "{}", ran.err);
}

#[test]
fn rejecting_needs_no_generation_and_no_approver() {
    let fake = pending(&approval_value());
    assert_eq!(fake.run(&["reject", S1, A1, "--reason", "no"]).exit, 0);
    assert_eq!(fake.lines(), [format!("POST /v1/sessions/{S1}/actions")], "nothing stands before a rejection");
    assert_eq!(fake.sent()["input"], json!({"approval_id": A1, "decision": "reject", "reason": "no"}));
    assert!(fake.sent().get("capability_generation").is_none());

    let operator = pending(&approval_value())
        .on(&format!("GET /v1/sessions/{S1}/approvals/{A1}?full=true"), [problem(403, "not_permitted")]);
    let ran = operator.run_at_terminal(&["reject", S1], "y\n");
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert!(
        ran.out.contains("echo one…") && ran.out.contains("! truncated") && ran.out.contains("Reject 2 actions? [y/N]")
    );
    assert_eq!(operator.sent()["input"], json!({"approval_id": A1, "decision": "reject"}));
    let refused = pending(&approval_value());
    assert_eq!((refused.run_at_terminal(&["reject", S1], "n\n").exit, posts(&refused)), (1, 0));
}

#[test]
fn approvals_shows_the_list_or_everything() {
    let fake = pending(&approval_value());
    let listed = fake.run(&["approvals", S1]);
    assert!(
        listed.exit == 0 && listed.out.contains("! not shown whole") && listed.out.contains("echo one…"),
        "{listed:?}"
    );
    let full = fake.run(&["approvals", S1, "--full"]);
    assert!(full.out.contains("echo ␛[2Jtwo") && !full.out.contains("not shown whole"), "{full:?}");
    let (exit, object) = fake.run_json(&["approvals", S1, "--full"]);
    assert_eq!((exit, &object["approvals"][0]["complete"]), (0, &json!(true)));
}

#[test]
fn every_flag_of_an_action_is_shown() {
    let mut approval = approval_value();
    for flag in ["redacted", "truncated", "deceptive_text", "in_doubt"] {
        approval["actions"][0][flag] = json!(true);
    }
    approval["holds_secret"] = json!(true);
    let fake = pending(&approval_value()).on(&format!("GET /v1/sessions/{S1}/approvals"), [list(&[approval])]);
    let ran = fake.run(&["approvals", S1]);
    let around = ["names build.sh (sha256 ab12)", "! build.sh changed", "still running from earlier: sleep (pid 41)"];
    for words in
        ["! redacted", "! truncated", "! deceptive text", "! in doubt", "! a live secret"].into_iter().chain(around)
    {
        assert!(ran.out.contains(words), "{words} in {}", ran.out);
    }
}
