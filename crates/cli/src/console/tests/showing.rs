//! What is heard is shown whole, harmless, and within bounds.

use api_types::{EventKind, EventPage, ExitCode, Resync};
use proptest::prelude::*;
use serde_json::json;

use super::desk::*;
use crate::args::MAX_PROMPT_BYTES;
use crate::console::keys::Key;
use crate::console::model::{Effect, Message, Pane, Size, Trouble, Waits};
use crate::console::update::open;
use crate::sanitize;

/// Every row of the batch as it stood on the screen, page by page, without the border.
fn pages(desk: &mut Desk) -> String {
    desk.go_to_batch();
    let mut seen = String::new();
    for _ in 0..200 {
        let screen = desk.screen();
        for row in screen.lines().filter(|row| row.starts_with('┃')) {
            seen.push_str(row.trim_matches(['┃', ' ']).trim_start_matches(['│', '┆', ' ']));
        }
        if desk.state.batch().unwrap().is_read {
            break;
        }
        desk.press(Key::PageDown);
    }
    seen
}

#[test]
fn flags_notes_and_the_agents_words_are_shown_as_what_they_are() {
    let mut desk = Desk::pending(USUAL, long_batch());
    let seen = pages(&mut desk);
    for words in [
        "confinement: full",
        "note: A shell keeps its state",
        "still running from earlier: sleep (pid 4711)",
        "names build.sh (sha256 abab",
        "action 1 of 2: terminal",
        "echo line 12",
        "the agent's own words, not checked:",
        "LOW",
        "only prints\\u{200b} something",
        "! deceptive text",
        "rm -rf target \\u{202e}# ␛[2J",
        "action 2 of 2: file_editor",
        "! redacted",
        "end of the batch",
    ] {
        assert!(seen.contains(words), "{words:?} in\n{seen}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_of_a_command_is_hidden(command in "[\\PC\u{0}-\u{1f}\u{7f}-\u{9f}\u{200b}-\u{202e}\u{300}-\u{36f}\u{1160}-\u{1170} ]{0,300}") {
        let mut batch = short_batch(A1);
        batch.actions[0].arguments = json!({"command": command});
        let mut desk = Desk::pending(USUAL, batch);
        let seen = pages(&mut desk);
        prop_assert!(!seen.chars().any(char::is_control));
        // All that is not a blank stands there, in order.
        let mut rest = seen.chars();
        let plain = sanitize::lines(&command).into_owned();
        for c in plain.chars().filter(|c| !c.is_whitespace()) {
            let escaped: String = format!("\\u{{{:x}}}", u32::from(c));
            let found = rest.clone().any(|other| other == c);
            if found {
                rest.any(|other| other == c);
            } else {
                let left: String = rest.clone().collect();
                prop_assert!(left.contains(&escaped), "{c:?} is not in {seen:?}");
            }
        }
    }
}

#[test]
fn the_events_are_bounded_and_a_reader_stays_where_he_reads() {
    let mut desk = Desk::open(USUAL);
    desk.hear(page(
        (3..1_003).map(|seq| event(seq, EventKind::AgentMessage, json!({"text": format!("word {seq}")}))).collect(),
    ));
    assert_eq!(desk.state.open.as_ref().unwrap().events.len(), 500);
    desk.state.pane = Pane::Events;
    desk.press(Key::PageUp);
    let read = desk.screen();
    assert!(!read.contains("word 1002"), "{read}");
    let line = read.lines().find(|row| row.contains("word 99")).unwrap().to_owned();
    desk.hear(page(vec![event(1_003, EventKind::AgentMessage, json!({"text": "another\nof three\nrows"}))]));
    assert!(desk.screen().contains(&line), "{line} in\n{}", desk.screen());
    desk.press(Key::Home);
    assert!(desk.screen().contains("503 earlier events"), "{}", desk.screen());
    desk.press(Key::End);
    assert!(desk.screen().contains("of three"), "{}", desk.screen());
    let huge = json!({"text": "x".repeat(5_000_000), "list": vec!["y"; 100_000]});
    desk.hear(page(vec![event(1_004, EventKind::Other, huge)]));
    let kept = format!("{:?}", desk.state.open.as_ref().unwrap().events);
    assert!(kept.len() < 400_000, "{} bytes are kept", kept.len());
}

#[test]
fn a_resync_starts_over_and_says_so() {
    let mut desk = Desk::open(USUAL);
    let resync = Resync { reason: "epoch_changed".to_owned(), first_cursor: "2-0".to_owned() };
    let events = vec![event(1, EventKind::UserMessage, json!({"text": "again"}))];
    let page = EventPage { events, next_cursor: "2-1".to_owned(), resync: Some(resync) };
    desk.hear(Message::Page { opening: 1, page: Ok(page) });
    let screen = desk.screen();
    assert!(screen.contains("resync (epoch_changed)") && screen.contains("again"), "{screen}");
    assert!(!screen.contains("run the tests"), "{screen}");
}

#[test]
fn what_is_heard_for_another_opening_is_dropped() {
    let mut desk = Desk::open(USUAL);
    let events = vec![event(3, EventKind::AgentMessage, json!({"text": "of another"}))];
    desk.hear(Message::Page { opening: 9, page: Ok(EventPage { events, next_cursor: "c".to_owned(), resync: None }) });
    assert!(!desk.screen().contains("of another"));
}

fn not_running() -> Trouble {
    let words = "daemon_not_running: nothing answers".to_owned();
    Trouble { exit: ExitCode::DaemonNotRunning, words, passes: true }
}

#[test]
fn a_failed_first_look_is_tried_again_with_growing_pauses_until_it_succeeds() {
    let mut desk = Desk::new(USUAL);
    desk.effects = open(&mut desk.state, S1.to_owned());
    let due = || Message::LookDue { opening: 1 };
    let looks = |desk: &Desk| desk.effects.iter().filter(|effect| matches!(effect, Effect::Look { .. })).count();
    assert_eq!(looks(&desk), 1);
    for failed_looks in 1..=3 {
        desk.hear(Message::Looked { opening: 1, look: Err(not_running()) });
        assert_eq!(desk.effects.last(), Some(&Effect::LookLater { opening: 1, failed_looks }));
        assert!(desk.screen().contains("CANNOT BE READ"), "{}", desk.screen());
        assert!(desk.words().contains("trying again") && desk.words().contains("nothing answers"), "{}", desk.words());
        desk.hear(Message::LookDue { opening: 9 });
        assert_eq!(looks(&desk), usize::try_from(failed_looks).unwrap(), "that of another opening");
        desk.hear(due());
        desk.hear(due());
        assert_eq!(looks(&desk), usize::try_from(failed_looks).unwrap() + 1, "one at a time");
    }
    // The second due asked for one more after the one under way: it is dropped with the failure, and kept with success.
    desk.hear(look(0, Waits::Nothing));
    assert!(!desk.screen().contains("CANNOT BE READ"), "{}", desk.screen());
    let settled = looks(&desk);
    desk.hear(look(0, Waits::Nothing));
    desk.hear(due());
    assert_eq!(looks(&desk), settled, "nothing is to be tried again");

    desk.hear(Message::Looked { opening: 1, look: Err(not_running()) });
    assert_eq!(desk.effects.last(), Some(&Effect::LookLater { opening: 1, failed_looks: 1 }), "a new row of failures");
    assert!(desk.screen().contains("not read since"), "{}", desk.screen());
}

#[test]
fn a_look_that_can_never_succeed_is_not_tried_again() {
    let mut desk = Desk::open(USUAL);
    let words = "session_not_found: there is none".to_owned();
    let effects = desk.effects.len();
    let gone = Trouble { exit: ExitCode::Failed, words, passes: false };
    desk.hear(Message::Looked { opening: 1, look: Err(gone) });
    assert_eq!(desk.effects.len(), effects);
    assert!(!desk.words().contains("trying again"), "{}", desk.words());
}

#[test]
fn a_lost_daemon_is_said_and_found_again() {
    let mut desk = Desk::open(USUAL);
    desk.hear(look(0, Waits::Nothing));
    desk.hear(look(0, Waits::Nothing));
    desk.hear(Message::Listed(Err(not_running())));
    assert!(desk.screen().contains("daemon LOST, trying again"), "{}", desk.screen());
    assert!(desk.screen().contains("! daemon: daemon_not_running"), "{}", desk.screen());
    let looks = desk.effects.len();
    desk.hear(Message::Listed(Ok(vec![summary(S1, "Mend the build")])));
    assert!(desk.screen().contains("daemon live"), "{}", desk.screen());
    assert_eq!(desk.effects.len(), looks + 1, "it is looked at again");
}

#[test]
fn a_paste_of_many_lines_is_one_prompt_and_bounded() {
    let mut desk = Desk::open(USUAL);
    desk.state.pane = Pane::Prompt;
    desk.write("see: ");
    desk.paste("one\ntwo\u{1b}[2J");
    assert!(desk.screen().contains("see: one␊two␛[2J"), "{}", desk.screen());
    assert!(desk.screen().contains("Prompt: 2 lines"), "{}", desk.screen());
    desk.paste(&"x".repeat(MAX_PROMPT_BYTES));
    assert!(desk.words().contains("nothing was added"), "{}", desk.words());
    desk.press(Key::Enter);
    assert_eq!(desk.sent("session.prompt.send"), [json!({"text": "see: one\ntwo\u{1b}[2J", "on_pending": "refuse"})]);
    assert_eq!(desk.state.prompt.text(), "");
    desk.paste(&"x".repeat(MAX_PROMPT_BYTES));
    assert!(desk.screen().contains("Prompt: 200000 bytes"), "{}", desk.screen());
}

#[test]
fn the_prompt_is_mended_in_place() {
    let mut desk = Desk::open(USUAL);
    desk.state.pane = Pane::Prompt;
    desk.write("añb");
    for key in [Key::Left, Key::Backspace, Key::Char('m'), Key::End, Key::Char('!'), Key::Home, Key::Delete] {
        desk.press(key);
    }
    assert_eq!(desk.state.prompt.text(), "mb!");
    desk.press(Key::Ctrl('j'));
    assert_eq!(desk.state.prompt.text(), "\nmb!");
    desk.press(Key::Ctrl('u'));
    assert_eq!(desk.state.prompt.text(), "");
}

#[test]
fn every_size_is_drawn() {
    for columns in [1, 20, 79, 80, 149, 150] {
        for rows in [1, 23, 24, 50] {
            let size = Size { columns, rows };
            let mut desk = Desk::pending(size, long_batch());
            desk.go_to_batch();
            let enough = size.is_enough();
            if enough {
                desk.read();
            }
            desk.press(Key::Char('A'));
            assert_eq!(desk.state.question.is_some(), enough, "{size:?}");
        }
    }
}
