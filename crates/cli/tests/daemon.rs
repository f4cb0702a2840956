//! Finding the daemon and the token.

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use cli::ClientContext;
use serde_json::json;
use support::*;

#[test]
fn without_a_daemon_every_command_exits_3_and_says_what_to_do() {
    let (directory, socket) = nowhere();
    let context = |json| ClientContext {
        socket: socket.clone(),
        token_file: token_file(directory.path().join("token")),
        json,
        color: false,
        stdin_is_terminal: false,
        stdout_is_terminal: false,
        live_progress: false,
    };
    let commands: [&[&str]; 19] = [
        &["status"],
        &["session", "start", "--workspace", "/w"],
        &["session", "attach", "--workspace", "/w", S1],
        &["session", "list"],
        &["session", "show", S1],
        &["session", "close", S1],
        &["prompt", S1, "x"],
        &["approvals", S1],
        &["approve", S1, A1],
        &["reject", S1, A1],
        &["events", S1],
        &["interrupt", S1],
        &["resume", S1],
        &["compact", S1],
        &["fork", S1],
        &["rewind", S1, "1"],
        &["model", S1, "m"],
        &["title", S1, "t"],
        &["receipt", "act-1"],
    ];
    for words in commands {
        let ran = run(words, context(false), "");
        assert_eq!((ran.exit, ran.out.as_str()), (3, ""), "{words:?}");
        assert!(ran.err.contains("gatepost serve"), "{words:?}: {}", ran.err);
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let ran = run(&words, context(true), "");
        let object: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(
            (ran.exit, &object["error"]["code"], &object["ok"]),
            (3, &json!("daemon_not_running"), &json!(false))
        );
    }
}

#[test]
fn a_dead_socket_is_no_daemon() {
    let (directory, socket) = nowhere();
    drop(UnixListener::bind(&socket).unwrap());
    let fake = Fake::start();
    let context = ClientContext { socket, ..fake.context() };
    assert_eq!(run(&["status"], context, "").exit, 3);
    drop(directory);
}

#[test]
fn a_path_that_can_be_no_socket_is_a_mistake() {
    let fake = Fake::start();
    let context = ClientContext { socket: format!("/{}", "x".repeat(200)).into(), ..fake.context() };
    assert_eq!(run(&["status"], context, "").exit, 2);
}

#[test]
fn a_token_file_that_is_not_private_is_not_used() {
    let fake = Fake::start();
    let path = fake.directory.path().join("other");
    let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    let mut seen = 0;
    for (content, permissions, exit) in [
        (TOKEN.to_owned(), 0o600, 1),
        (format!("{TOKEN}\r\n"), 0o400, 1),
        (TOKEN.to_owned(), 0o640, 5),
        (TOKEN.to_owned(), 0o604, 5),
        (String::new(), 0o600, 5),
        (format!("{TOKEN}\nmore"), 0o600, 5),
        ("a b".to_owned(), 0o600, 5),
        ("x".repeat(5000), 0o600, 5),
    ] {
        if path.exists() {
            mode(0o600);
        }
        std::fs::write(&path, &content).unwrap();
        mode(permissions);
        let ran =
            run(&["receipt", "act-1"], ClientContext { token_file: token_file(path.clone()), ..fake.context() }, "");
        assert_eq!(ran.exit, exit, "{permissions:o} {ran:?}");
        assert!(content.is_empty() || !ran.err.contains(content.as_str()), "the token is not printed");
        seen += usize::from(exit == 1);
    }
    assert_eq!(fake.lines().len(), seen, "only a good token was sent");
    assert_eq!(fake.asked()[1].bearer, format!("Bearer {TOKEN}"));
}

#[test]
fn a_token_file_that_is_no_file_is_refused_at_once() {
    let fake = Fake::start();
    let with =
        |name: &str| ClientContext { token_file: token_file(fake.directory.path().join(name)), ..fake.context() };
    symlink("/dev/zero", fake.directory.path().join("zero")).unwrap();
    for name in ["missing", "zero", "."] {
        let ran = run(&["status"], with(name), "");
        assert_eq!(ran.exit, 5, "{name}");
        assert!(ran.err.contains("token_unreadable"), "{}", ran.err);
    }
    assert!(fake.lines().is_empty());
}

#[test]
fn colour_is_for_terminals_and_can_be_forbidden() {
    let fake = Fake::start().on(&format!("GET /v1/sessions/{S1}"), [ok(snapshot_value())]);
    let colourful = || ClientContext { color: true, ..fake.context() };
    assert!(run(&["session", "show", S1], colourful(), "").out.contains("\u{1b}[1m"));
    assert!(!run(&["session", "show", S1, "--no-color"], colourful(), "").out.contains('\u{1b}'));
    assert!(!run(&["session", "show", S1, "--json"], colourful(), "").out.contains('\u{1b}'));

    let parsed = |words: &[&str]| match cli::parse(words, &mut Kept::default(), &mut Kept::default()) {
        cli::ParseOutcome::Run(parsed) => parsed,
        cli::ParseOutcome::Exit(exit) => panic!("exit {exit}"),
    };
    let plain = parsed(&["gatepost", "status"]);
    assert!(plain.color(true, None, None) && plain.color(true, Some("xterm".as_ref()), Some("".as_ref())));
    assert!(!plain.color(true, Some("dumb".as_ref()), None));
    assert!(!plain.color(false, None, None) && !plain.color(true, None, Some("1".as_ref())));
    assert!(!parsed(&["gatepost", "status", "--no-color"]).color(true, None, None));
    assert!(!parsed(&["gatepost", "status", "--json"]).color(true, None, None));
}

#[test]
fn global_flags_may_stand_anywhere() {
    let parsed = cli::parse(
        ["gatepost", "--config", "/c", "session", "--state-dir", "/d", "list", "--socket", "/s", "--token-file", "/t"],
        &mut Kept::default(),
        &mut Kept::default(),
    );
    let cli::ParseOutcome::Run(parsed) = parsed else { panic!("refused") };
    let paths = [&parsed.config, &parsed.state_dir, &parsed.socket, &parsed.token_file];
    assert_eq!(paths.map(|path| path.as_ref().unwrap().to_str().unwrap()), ["/c", "/d", "/s", "/t"]);
}

#[test]
fn the_binary_s_own_commands_parse() {
    for words in [
        &["demo", "--keep", "--json"][..],
        &["serve", "--config", "/c"],
        &["server", "install", "--version", "1.40.0"],
        &["server", "list"],
        &["server", "verify"],
        &["doctor", "--bundle", "/b", "--json"],
    ] {
        let arguments = std::iter::once("gatepost").chain(words.iter().copied());
        let cli::ParseOutcome::Run(parsed) = cli::parse(arguments, &mut Kept::default(), &mut Kept::default()) else {
            panic!("{words:?} refused")
        };
        assert!(!matches!(parsed.command, cli::Command::Client(_)), "{words:?}");
    }
}
