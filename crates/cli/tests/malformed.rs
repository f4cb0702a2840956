//! No mistake on the command line reaches the daemon.

mod support;

use support::{Fake, Kept};

include!("malformed_table.rs");

#[test]
fn every_malformed_command_line_exits_2_and_asks_nothing() {
    let fake = Fake::start();
    assert!(MALFORMED.len() >= 25);
    for (name, words) in MALFORMED {
        let ran = fake.run(words);
        assert_eq!(ran.exit, 2, "{name}: {ran:?}");
        assert!(ran.err.contains("error:"), "{name} says why: {ran:?}");
        assert_eq!(ran.out, "", "{name} prints nothing");
        assert!(!ran.err.contains('\u{1b}'), "{name} quotes what was typed safely");
    }
    assert_eq!(fake.lines(), Vec::<String>::new());
}

#[test]
fn with_json_a_mistake_is_one_object_on_standard_output() {
    let fake = Fake::start();
    for (name, words) in MALFORMED {
        let words: Vec<&str> = std::iter::once("--json").chain(words.iter().copied()).collect();
        let ran = fake.run(&words);
        assert_eq!(ran.exit, 2, "{name}");
        assert_eq!(ran.out.lines().count(), 1, "{name}: {}", ran.out);
        let object: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&object["ok"], &object["exit_code"]), (&false.into(), &2.into()), "{name}");
        assert!(object["error"]["detail"].as_str().is_some_and(|words| !words.is_empty()), "{name}");
    }
    assert!(fake.lines().is_empty());
}

#[test]
fn help_and_version_are_no_mistakes() {
    for words in [&["--help"][..], &["approve", "--help"], &["--version"], &["help", "session", "start"]] {
        let (mut out, mut err) = (Kept::default(), Kept::default());
        let outcome = cli::parse(std::iter::once("gatepost").chain(words.iter().copied()), &mut out, &mut err);
        assert!(matches!(outcome, cli::ParseOutcome::Exit(0)), "{words:?}");
        assert!(out.text().contains("gatepost") && err.text().is_empty(), "{words:?}");
    }
}

#[test]
fn json_after_the_double_dash_is_text() {
    let (mut out, mut err) = (Kept::default(), Kept::default());
    let outcome = cli::parse(["gatepost", "prompt", "xyz", "--", "--json"], &mut out, &mut err);
    assert!(matches!(outcome, cli::ParseOutcome::Exit(2)));
    assert_eq!(out.text(), "");
}
