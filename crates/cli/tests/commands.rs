//! Each command: what is asked of the daemon, what is printed, and the exit code.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::*;

fn with_snapshot() -> Fake {
    Fake::start().on("GET /v1/sessions", [sessions()]).on(&format!("GET /v1/sessions/{S1}"), [ok(snapshot_value())])
}

fn acting(state: &str, code: Option<&str>) -> Fake {
    with_snapshot().on(&format!("POST /v1/sessions/{S1}/actions"), [ok(receipt(state, code))])
}

fn status_value(state: &str) -> Value {
    json!({"state": state, "gatepost_version": "0.1.0", "pid": 12, "contract_version": "1.40.0", "installed": "/x",
        "remedy": null, "servers": [{"workspace": "/w", "state": "failed", "remedy": "read why", "version": "1.40.0", "server_start_id": null, "launch_config_digest": null,
            "pid": 77, "canaries": [{"canary": "versions", "scope": "server", "state": "ready", "passed": true, "detail": "1.40.0"},
                {"canary": "init_closed", "scope": "server", "state": "degraded", "remedy": "wait", "passed": true, "detail": "answered 404; then nothing"},
                {"canary": "tools", "scope": "session", "state": "stopped", "remedy": "nothing", "passed": false, "detail": "not read yet"},
                {"canary": "profile", "scope": "session", "state": "stopped", "remedy": "nothing", "passed": false, "detail": "not read yet"},
                {"canary": "no_mcp", "scope": "session", "state": "starting", "remedy": "wait", "passed": false, "detail": "not read yet"},
                {"canary": "no_hooks", "scope": "session", "state": "crash_looping", "remedy": "mend it", "passed": false, "code": "hooks_present", "detail": "hooks"},
                {"canary": "policy", "scope": "session", "state": "blocked", "remedy": "attach again", "passed": false, "code": "policy_weak", "detail": "it was \u{1b}[32mfine"}],
            "reason": {"code": "canary_failed", "detail": "policy", "remedy": "read why"}, "failures_in_a_row": 2, "next_try_at": null}],
        "sessions": [summary(S1, "first")], "confinement_level": "weak", "confinement_missing": ["landlock"],
        "confinement_notes": ["Commands may also write /cache."],
        "refused_peers": {"count": 2, "last_code": "descendant", "last_at": "2026-11-30T00:00:00Z"},
        "findings": [{"code": "policy_weak", "detail": "weak", "remedy": "mend it"}], "notes": ["the journal was set aside"]})
}

#[test]
fn the_owner_token_goes_with_every_request() {
    let fake = Fake::start().on("GET /v1/sessions", [sessions()]);
    assert_eq!(fake.run(&["session", "list"]).exit, 0);
    assert_eq!(fake.asked()[0].bearer, format!("Bearer {TOKEN}"));
}

#[test]
fn status_says_it_all_by_its_exit_code() {
    for (state, exit) in [("ready", 0), ("degraded", 4), ("blocked", 4), ("starting", 4), ("stopping", 4)] {
        let fake = Fake::start().on("GET /v1/status", [ok(status_value(state))]);
        let (code, object) = fake.run_json(&["status"]);
        assert_eq!((code, &object["state"]), (exit, &json!(state)));
        assert_eq!(object["confinement_level"], "weak");
        let ran = fake.run(&["status"]);
        assert_eq!(ran.exit, exit);
        for words in [
            state,
            "confinement: weak",
            "lacks: landlock",
            "note: Commands may also write /cache.",
            "remedy: mend it",
            "    remedy: read why",
            "      remedy: attach again",
            "    blocked  policy",
            "    ready  versions  1.40.0\n    degraded  init_closed  answered 404; then nothing\n      remedy: wait\n    crash-looping  no_hooks",
            "    starting  no_mcp\n    stopped  tools, profile\n",
            "it was ␛[32mfine",
            S1,
        ] {
            assert!(ran.out.contains(words), "{words} in {}", ran.out);
        }
        assert_eq!(fake.lines(), ["GET /v1/status", "GET /v1/status"]);
    }
}

#[test]
fn session_start_sends_an_absolute_workspace_and_an_id_of_its_own() {
    let fake = Fake::start().on("POST /v1/sessions", [ok(snapshot_value()).status(201)]);
    let ran = fake.run(&["session", "start", "--workspace", "src", "--title", "first", "--prompt", "go"]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    let sent = fake.sent();
    assert!(
        sent["workspace"].as_str().unwrap().starts_with('/') && sent["workspace"].as_str().unwrap().ends_with("/src")
    );
    assert_eq!((&sent["title"], &sent["prompt"]), (&json!("first"), &json!("go")));
    assert!(uuid::Uuid::try_parse(sent["session_id"].as_str().unwrap()).is_ok());
    assert!(ran.out.contains(S1) && ran.out.contains("m/two") && ran.out.contains("ma\\u{202e}ke"), "{}", ran.out);

    let (exit, object) = fake.run_json(&["session", "start", "--workspace", "/w", "--session-id", &S1.to_uppercase()]);
    assert_eq!((exit, &object["session_id"]), (0, &json!(S1)));
    assert_eq!(fake.sent(), json!({"workspace": "/w", "session_id": S1}));
}

#[test]
fn a_start_whose_reply_was_lost_names_the_session() {
    let fake = Fake::start().on("POST /v1/sessions", [hang_up()]);
    let (exit, object) = fake.run_json(&["session", "start", "--workspace", "/w"]);
    assert_eq!((exit, &object["error"]["code"]), (7, &json!("no_reply")));
    assert_eq!(object["session_id"], fake.sent()["session_id"]);
    assert!(object["error"]["hint"].as_str().unwrap().contains("--session-id"));
}

#[test]
fn session_attach_list_show_and_close() {
    let fake = with_snapshot()
        .on("POST /v1/sessions/attach", [ok(snapshot_value())])
        .on(&format!("DELETE /v1/sessions/{S1}"), [ok(json!({"session_id": S1, "deleted": false}))])
        .on(&format!("DELETE /v1/sessions/{S1}?delete=true"), [ok(json!({"session_id": S1, "deleted": true}))]);
    assert_eq!(fake.run(&["session", "attach", "--workspace", "/w", S1]).exit, 0);
    assert_eq!(fake.sent(), json!({"workspace": "/w", "conversation_id": S1}));

    let list = fake.run(&["session", "list"]);
    assert!(list.out.lines().next().unwrap().starts_with("SESSION") && list.out.contains(S2), "{}", list.out);
    assert_eq!(fake.run_json(&["session", "list"]).1["sessions"][1]["session_id"], S2);

    assert_eq!(fake.run_json(&["session", "show", S1]).1["capability_generation"], 7);
    let close = fake.run(&["session", "close", S1]);
    assert_eq!((close.exit, close.out), (0, format!("closed {S1}\n")));
    assert_eq!(fake.run(&["session", "close", "0b23a", "--delete"]).out, format!("closed and deleted {S1}\n"));
}

#[test]
fn an_empty_list_says_how_to_start() {
    let fake = Fake::start().on("GET /v1/sessions", [ok(json!({"sessions": []}))]);
    assert!(fake.run(&["session", "list"]).out.contains("gatepost session start"));
}

#[test]
fn ids_are_found_by_a_unique_prefix_only() {
    let fake = with_snapshot();
    assert_eq!(fake.run(&["session", "show", "0B23A082-3c"]).exit, 0);
    assert_eq!(fake.lines(), ["GET /v1/sessions", &format!("GET /v1/sessions/{S1}")]);

    let (exit, object) = fake.run_json(&["session", "show", "0b23"]);
    assert_eq!((exit, &object["candidates"]), (2, &json!([S1, S2])));
    let ran = fake.run(&["session", "show", "0b23"]);
    assert!(ran.err.contains(S1) && ran.err.contains("second"), "{}", ran.err);

    let (exit, object) = fake.run_json(&["session", "show", "ffff"]);
    assert_eq!((exit, &object["error"]["code"]), (1, &json!("session_not_found")));

    let whole = with_snapshot();
    assert_eq!(whole.run(&["session", "show", &S1.replace('-', "")]).exit, 0);
    assert_eq!(whole.lines(), [format!("GET /v1/sessions/{S1}")], "a whole id costs no list");
}

#[test]
fn a_session_id_of_the_list_that_is_none_goes_into_no_path() {
    let fake = Fake::start().on("GET /v1/sessions", [ok(json!({"sessions": [summary("abc/../../actions", "x")]}))]);
    assert_eq!(fake.run(&["session", "show", "abc"]).exit, 1);
    assert_eq!(fake.lines(), ["GET /v1/sessions"]);
}

#[test]
fn every_operation_sends_its_input_on_the_generation_it_saw() {
    let cases: [(&[&str], &str, Value, bool); 9] = [
        (&["prompt", S1, "hello"], "session.prompt.send", json!({"text": "hello", "on_pending": "refuse"}), true),
        (
            &["prompt", S1, "hello", "--on-pending", "reject"],
            "session.prompt.send",
            json!({"text": "hello", "on_pending": "reject"}),
            true,
        ),
        (&["interrupt", S1], "session.turn.interrupt", json!({}), false),
        (&["resume", S1], "session.resume", json!({}), true),
        (&["compact", S1], "session.compact", json!({}), true),
        (
            &["fork", S1, "--title", "f", "--session-id", S2],
            "session.fork",
            json!({"title": "f", "session_id": S2}),
            true,
        ),
        (&["rewind", S1, "2"], "session.rewind", json!({"event_id": "e-two"}), true),
        (&["model", S1, "m/two"], "session.model.set", json!({"model": "m/two"}), true),
        (&["title", S1, "T é"], "session.title.set", json!({"title": "T é"}), true),
    ];
    for (words, operation, input, on_generation) in cases {
        let fake = acting("applied", None);
        let ran = fake.run(words);
        assert_eq!(ran.exit, 0, "{words:?}: {ran:?}");
        let sent = fake.sent();
        assert_eq!((&sent["operation_id"], &sent["input"]), (&json!(operation), &input));
        assert_eq!(sent.get("capability_generation"), on_generation.then_some(&json!(7)), "{operation}");
        assert!(uuid::Uuid::try_parse(sent["client_action_id"].as_str().unwrap()).is_ok());
        let post = format!("POST /v1/sessions/{S1}/actions");
        let read = format!("GET /v1/sessions/{S1}");
        let expected = if on_generation { vec![read, post] } else { vec![post] };
        assert_eq!(fake.lines(), expected, "{operation}");
        assert!(ran.out.starts_with("applied ") && ran.out.contains("action act-1"), "{}", ran.out);

        let words: Vec<&str> = words.iter().copied().chain(["--action-id", "mine:1"]).collect();
        let (exit, object) = fake.run_json(&words);
        assert_eq!(
            (exit, &object["state"], &fake.sent()["client_action_id"]),
            (0, &json!("applied"), &json!("mine:1"))
        );
    }
}

#[test]
fn a_prompt_comes_from_standard_input_whole_and_bounded() {
    let fake = acting("applied", None);
    let ran = run(&["prompt", S1, "-"], fake.context(), "two\nlines — é\n");
    assert_eq!((ran.exit, &fake.sent()["input"]["text"]), (0, &json!("two\nlines — é\n")));

    let most = "x".repeat(200_000);
    assert_eq!(run(&["prompt", S1, "-"], fake.context(), &most).exit, 0);
    let before = fake.lines().len();
    for wrong in [format!("{most}x"), String::new(), " \n".to_owned(), "a\0b".to_owned()] {
        assert_eq!(run(&["prompt", S1, "-"], fake.context(), &wrong).exit, 2);
    }
    assert_eq!(fake.lines().len(), before, "nothing was sent");
}

#[test]
fn rewinding_to_a_turn_that_is_not_offered_lists_those_that_are() {
    let fake = acting("applied", None);
    let (exit, object) = fake.run_json(&["rewind", S1, "9"]);
    assert_eq!((exit, &object["turns"]), (2, &json!([1, 2])));
    let ran = fake.run(&["rewind", S1, "9"]);
    assert!(ran.err.contains("make it") && ran.err.contains("ma\\u{202e}ke"), "{}", ran.err);
    assert!(!fake.lines().iter().any(|line| line.starts_with("POST")));
}

#[test]
fn a_receipt_leads_to_its_exit_code() {
    for (state, code, exit) in [
        ("applied", None, 0),
        ("rejected", Some("interrupted"), 1),
        ("rejected", Some("canary_failed"), 4),
        ("rejected", None, 1),
        ("outcome_unknown", Some("outcome_unknown"), 7),
        ("outcome_unknown", None, 7),
    ] {
        let (got, object) = acting(state, code).run_json(&["resume", S1]);
        assert_eq!(
            (got, &object["state"], &object["client_action_id"]),
            (exit, &json!(state), &json!("act-1")),
            "{state} {code:?}"
        );
        if exit != 0 {
            assert_eq!(object["error"]["code"], code.unwrap_or(state));
            let ran = acting(state, code).run(&["resume", S1]);
            assert!(
                ran.err.starts_with(&format!("error: {}: ", code.unwrap_or(state))) && ran.err.contains("next: "),
                "{}",
                ran.err
            );
            assert_eq!(ran.out, "");
        }
        let looked = Fake::start().on("GET /v1/actions/act-1", [ok(receipt(state, code))]);
        assert_eq!(looked.run_json(&["receipt", "act-1"]).0, exit);
        let ran = looked.run(&["receipt", "act-1"]);
        assert!(ran.exit == exit && ran.out.contains("step run: done") && ran.out.contains(state), "{ran:?}");
    }
}

#[test]
fn a_problem_leads_to_its_exit_code_and_is_not_tried_again() {
    for (status, code, exit) in [
        (409, "generation_stale", 6),
        (422, "client_action_id_reused", 6),
        (403, "not_permitted", 5),
        (401, "unauthenticated", 5),
        (404, "session_not_found", 1),
        (409, "session_blocked", 4),
        (422, "too_long", 2),
        (503, "server_limit", 1),
        (504, "upstream_timeout", 7),
    ] {
        let fake = with_snapshot().on(&format!("POST /v1/sessions/{S1}/actions"), [problem(status, code)]);
        let (got, object) = fake.run_json(&["resume", S1]);
        assert_eq!((got, &object["error"]["code"], &object["exit_code"]), (exit, &json!(code), &json!(exit)), "{code}");
        assert_eq!(object["client_action_id"], fake.sent()["client_action_id"]);
        let ran = fake.run(&["resume", S1]);
        assert!(ran.err.starts_with(&format!("error: {code}: words about {code}\n")), "{}", ran.err);
        let posts = fake.lines().iter().filter(|line| line.starts_with("POST")).count();
        assert_eq!(posts, 2, "one for each run");
    }
}

#[test]
fn an_action_under_way_is_followed_to_its_end() {
    let fake = acting("queued", None);
    let fake = fake.on(
        "GET /v1/actions/mine",
        [ok(receipt("queued", None)), ok(receipt("in_flight", None)), ok(receipt("applied", None))],
    );
    let ran = fake.run(&["compact", S1, "--action-id", "mine"]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(fake.lines().iter().filter(|line| *line == "GET /v1/actions/mine").count(), 3);
}

#[test]
fn an_action_that_takes_too_long_is_left_alone_and_can_be_looked_up() {
    let fake = acting("in_flight", None).on("GET /v1/actions/mine", [ok(receipt("in_flight", None))]);
    let (exit, object) = fake.run_json(&["compact", S1, "--action-id", "mine", "--timeout-s", "1"]);
    assert_eq!((exit, &object["error"]["code"], &object["state"]), (7, &json!("timed_out"), &json!("in_flight")));
    assert!(object["error"]["hint"].as_str().unwrap().contains("gatepost receipt mine"));
}

#[test]
fn progress_goes_to_standard_error_after_a_second() {
    let fake = with_snapshot().on(
        &format!("POST /v1/sessions/{S1}/actions"),
        [ok(receipt("applied", None)).after(Duration::from_millis(1300))],
    );
    let words = ["compact", S1, "--json"];
    let ran = fake.run(&words);
    assert_eq!((ran.exit, ran.out.lines().count()), (0, 1));
    assert!(ran.err.contains("waiting for the daemon … 1 s"), "{}", ran.err);
}

#[test]
fn at_a_terminal_a_bar_is_written_over_and_taken_away() {
    let fake = Fake::start().on("POST /v1/sessions", [ok(snapshot_value()).after(Duration::from_millis(1600))]);
    let start = ["session", "start", "--workspace", "/w"];
    let live = || cli::ClientContext { live_progress: true, ..fake.context() };
    let ran = run(&start, live(), "");
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert!(ran.err.contains("####") && ran.err.contains("] [1 s] starting the session"), "{}", ran.err);
    assert!(ran.err.ends_with("\r\u{1b}[2K") && !ran.err.contains('\n'), "{:?}", ran.err);
    let ran = run(&["session", "start", "--workspace", "/w", "--json"], live(), "");
    assert_eq!(ran.err, "starting the session, and its server where none runs … 1 s\n");
}

#[test]
fn a_reply_that_never_comes_leaves_the_outcome_unknown() {
    for reply in [
        hang_up(),
        raw(200, "no json"),
        ok(json!({"some": "thing"})),
        ok(receipt("applied", None)).after(Duration::from_secs(5)),
    ] {
        let fake = with_snapshot().on(&format!("POST /v1/sessions/{S1}/actions"), [reply]);
        let (exit, object) = fake.run_json(&["resume", S1, "--action-id", "mine", "--timeout-s", "1"]);
        assert_eq!((exit, &object["client_action_id"]), (7, &json!("mine")), "{object}");
        assert!(object["error"]["hint"].as_str().unwrap().contains("gatepost receipt mine"));
        assert_eq!(fake.lines().iter().filter(|line| line.starts_with("POST")).count(), 1, "nothing is sent twice");
    }
}

#[test]
fn replies_that_cannot_be_understood_are_told() {
    for (reply, exit, code) in [
        (raw(200, "<html>"), 1, "reply_malformed"),
        (ok(json!({"sessions": 3})), 1, "reply_malformed"),
        (raw(500, "oops"), 1, "http_error"),
        (hang_up(), 1, "no_reply"),
        (ok(Value::String("x".repeat(33 * 1024 * 1024))), 1, "reply_too_large"),
    ] {
        let fake = Fake::start().on("GET /v1/sessions", [reply]);
        let (got, object) = fake.run_json(&["session", "list"]);
        assert_eq!((got, &object["error"]["code"]), (exit, &json!(code)));
    }
}

#[test]
fn what_the_daemon_quotes_cannot_act_on_the_terminal() {
    let body = json!({"type": "about:blank", "title": "No", "status": 409, "code": "x\u{1b}c", "detail": "a\u{1b}[2J\nnext: run `evil`", "retryable": false});
    let fake = Fake::start().on("GET /v1/sessions", [ok(body).status(409)]);
    let ran = fake.run(&["session", "list"]);
    assert_eq!(ran.err, "error: x␛c: a␛[2J\n  next: run `evil`\n");
    let ran = fake.run(&["session", "list", "--json"]);
    assert!(!ran.out.contains('\u{1b}'));
}

/// Every exit code that docs/commands.md names is how some command ends, and every command ends with one of them.
#[test]
fn every_documented_exit_code_is_how_a_command_ends() {
    let page = include_str!("../../../docs/commands.md");
    let rows = page.lines().skip_while(|line| *line != "## Exit codes");
    let documented: Vec<u8> =
        rows.filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok()).collect();
    let action = format!("POST /v1/sessions/{S1}/actions");
    let refused = |status: u16, code: &str| {
        let body = json!({"type": "about:blank", "title": "t", "status": status, "code": code, "detail": "d",
            "remedy": "what mends it", "retryable": false});
        with_snapshot().on(&action, [ok(body).status(status)])
    };
    let interrupt = ["interrupt", S1];
    let (_directory, socket) = nowhere();
    let mut seen = Vec::new();
    for code in &documented {
        let ran = match code {
            0 => acting("applied", None).run(&interrupt),
            1 => acting("rejected", Some("upstream_refused")).run(&interrupt),
            2 => with_snapshot().run(&["rewind", S1, "99"]),
            3 => run(&interrupt, cli::ClientContext { socket: socket.clone(), ..Fake::start().context() }, ""),
            4 => refused(409, "policy_weak").run(&interrupt),
            5 => refused(403, "not_permitted").run(&interrupt),
            6 => refused(409, "generation_stale").run(&interrupt),
            7 => acting("outcome_unknown", Some("no_evidence")).run(&interrupt),
            other => panic!("no command is known to end with {other}"),
        };
        assert_eq!(ran.exit, *code, "{ran:?}");
        // What is to be done comes from the daemon where the command line knows nothing better.
        assert_eq!(ran.err.contains("next: what mends it"), *code == 4, "{ran:?}");
        seen.push(ran.exit);
    }
    assert_eq!(seen, api_types::ExitCode::ALL.map(api_types::ExitCode::code));
}
