//! Command lines that are wrong.

use super::stage::Stage;
use std::process::Stdio;
use testkit::daemon::{Home, Setup, Spoken};

include!("../../../crates/cli/tests/malformed_table.rs");

/// Runs the words against the daemon, unless they name another place themselves.
fn run(home: &Home, words: &[&str], json: bool) -> Spoken {
    let mut command = home.command();
    if !words.iter().any(|word| word.starts_with("--state-dir") || *word == "--socket") {
        command.arg("--state-dir").arg(home.state());
    }
    if json {
        command.arg("--json");
    }
    let output = command.args(words).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Spoken { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

#[test]
fn each_malformed_command_line_exits_2_and_nothing_comes_of_it() {
    let stage = Stage::new();
    let before = stage.standing();
    let mut wrong = Vec::new();
    for (name, words) in MALFORMED {
        let told = run(stage.scene.home(), words, false);
        if told.code != Some(2) || !told.stdout.is_empty() || !told.stderr.contains("error:") {
            wrong.push(format!("{name}: {told:?}"));
        }
        let told = run(stage.scene.home(), words, true);
        let object = told.json();
        if told.code != Some(2) || told.stdout.lines().count() != 1 || object["exit_code"] != 2 {
            wrong.push(format!("{name} with --json: {told:?}"));
        }
    }
    assert!(MALFORMED.len() >= 60, "only {} rows", MALFORMED.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), MALFORMED.len(), wrong.join("\n"));
    stage.nothing_came_of_it(&before);
    stage.finish();
}

/// Of the commands that need no daemon; those that do are the client's.
#[test]
fn what_cannot_be_printed_is_a_failure_and_a_reader_who_left_is_none() {
    let home = Home::new(Setup::without_server()).unwrap();
    let ended = |words: &[&str], json: bool, stdout: Stdio| {
        let mut command = home.command();
        command.arg("--state-dir").arg(home.state()).args(json.then_some("--json")).args(words);
        let output = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    // Nobody is at its other end.
    let left = || Stdio::from(std::io::pipe().unwrap().1);
    for words in [
        &["man"][..],
        &["completions", "bash"],
        &["service", "print", "--systemd"],
        &["server", "list"],
        &["--version"],
        &["prompt", "--help"],
    ] {
        for json in [false, true] {
            let (code, told) = ended(words, json, full());
            assert_eq!((code, told.matches("output_failed").count()), (Some(1), 1), "{words:?} {json}: {told}");
            assert_eq!(ended(words, json, left()), (Some(0), String::new()), "{words:?} {json}");
        }
    }
    // A failure stays the one it is.
    let (code, told) = ended(&["server", "verify"], true, full());
    assert!(code == Some(1) && told.contains("output_failed"), "{told}");
    let (code, told) = ended(&["ledger", "set-aside"], true, full());
    assert!(code == Some(3) && told.contains("output_failed"), "{code:?} {told}");
}

/// The words are well-formed, and the daemon refuses what they ask for.
#[test]
fn what_the_daemon_refuses_ends_with_the_exit_code_of_the_refusal() {
    let stage = Stage::new();
    let before = stage.standing();
    let id = stage.session.id();
    let unknown = "0123456789ab";
    let mut wrong = Vec::new();
    let outside = stage.scene.home().path().to_string_lossy().into_owned();
    for (words, exit, code) in [
        (&["session", "show", "ffff"][..], 1, "session_not_found"),
        (&["prompt", id, "say: hello"], 6, "approval_pending"),
        (&["resume", id], 6, "approval_pending"),
        (&["compact", id], 6, "approval_pending"),
        (&["approve", id, unknown], 1, "approval_not_found"),
        (&["reject", id, unknown], 1, "approval_not_found"),
        (&["rewind", id, "7"], 2, "no_such_turn"),
        (&["model", id, "openai/never-reviewed"], 1, "model_not_reviewed"),
        (&["receipt", "never-used"], 1, "action_not_found"),
        (&["session", "start", "--workspace", &outside], 4, "workspace_outside_roots"),
        (&["server", "install", "--version", "9.9.9"], 2, "version_not_reviewed"),
    ] {
        let told = run(stage.scene.home(), words, true);
        let object = told.json();
        let said = (told.code, object["error"]["code"].as_str(), object["exit_code"].as_i64(), &object["ok"]);
        if said != (Some(exit), Some(code), Some(i64::from(exit)), &false.into()) {
            wrong.push(format!("{words:?}: {told:?}, not {exit} {code}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    stage.nothing_came_of_it(&before);
    stage.finish();
}
