//! A decision is one on what was read, by a person who meant it.

use api_types::{ExitCode, Receipt, ReceiptState};
use serde_json::json;

use super::desk::*;
use crate::console::input::Input;
use crate::console::keys::Key;
use crate::console::model::{Asked, Effect, Message, Pane, Size, Trouble, Waits};
use crate::console::update::update;

fn outcome(state: ReceiptState, code: Option<&str>) -> Message {
    let receipt: Receipt = serde_json::from_value(json!({"client_action_id": "a", "session_id": S1,
        "operation_id": "session.approval.decide", "state": state, "code": code, "detail": "words\u{1b}", "steps": [],
        "result": {}, "created_at": "", "updated_at": "", "replayed": false}))
    .unwrap();
    Message::Outcome { opening: 1, operation: "session.approval.decide", receipt: Ok(Box::new(receipt)) }
}

#[test]
fn approving_takes_reading_to_the_end_the_key_the_word_and_enter() {
    let mut desk = Desk::pending(USUAL, long_batch());
    desk.go_to_batch();
    desk.press(Key::Char('A'));
    assert!(desk.state.question.is_none(), "asked before it was read");
    assert!(desk.words().contains("read it to the end first"), "{}", desk.words());
    desk.read();
    desk.press(Key::Char('A'));
    assert!(desk.screen().contains("2 actions, digest 001122334455…"), "{}", desk.screen());
    desk.write("approve");
    assert_eq!(desk.decisions(), [] as [serde_json::Value; 0]);
    desk.press(Key::Enter);
    let sent: Vec<&Effect> = desk.effects.iter().filter(|effect| matches!(effect, Effect::Act(_))).collect();
    assert_eq!(
        sent,
        [&Effect::Act(Asked {
            opening: 1,
            session_id: S1.to_owned(),
            operation: "session.approval.decide",
            input: json!({"approval_id": A1, "decision": "accept"}),
            generation: Some(GENERATION),
        })]
    );
    // And once only.
    desk.press(Key::Char('A'));
    assert!(desk.state.question.is_none());
    desk.press(Key::Char('R'));
    assert!(desk.state.question.is_none());
}

#[test]
fn going_to_the_end_passes_over_nothing() {
    let mut desk = Desk::pending(USUAL, long_batch());
    desk.go_to_batch();
    desk.press(Key::End);
    assert!(desk.screen().contains("rows 17-32 of 38, not read to the end"), "{}", desk.screen());
    desk.press(Key::Char('A'));
    assert!(desk.state.question.is_none());
    // Many keys before anything is drawn go no further than one does.
    desk.press(Key::Home);
    let effects = (0..9).map(|_| Message::Typed { input: Input::Key(Key::PageDown), stage: desk.stage });
    effects.for_each(|message| assert_eq!(update(&mut desk.state, message), []));
    desk.draw();
    assert!(desk.screen().contains("rows 23-38 of 38, read"), "{}", desk.screen());
    desk.press(Key::Char('A'));
    assert!(desk.state.question.is_some());
}

#[test]
fn a_key_pressed_before_the_screen_showed_it_decides_nothing() {
    let mut desk = Desk::open(USUAL);
    let before = desk.stage;
    desk.state.pane = Pane::Batch;
    desk.wait_for(short_batch(A1), true);
    for key in [Key::Char('A'), Key::Char('R'), Key::Char('I'), Key::Char('G')] {
        desk.press_at(before, key);
        assert!(desk.state.question.is_none(), "{key:?}");
    }
    // Shown, but not known to be read to the end when it was pressed.
    desk.press_at(desk.stage - 1, Key::Char('A'));
    assert!(desk.state.question.is_none());
    let unasked = desk.stage;
    desk.press(Key::Char('A'));
    for c in "approve".chars() {
        desk.press_at(unasked, Key::Char(c));
    }
    desk.press_at(unasked, Key::Enter);
    assert_eq!(desk.state.question.as_ref().unwrap().typed, "");
    desk.write("approve");
    desk.press_at(unasked, Key::Enter);
    assert_eq!(desk.decisions().len(), 0);
    desk.press(Key::Enter);
    assert_eq!(desk.decisions().len(), 1);
}

#[test]
fn a_paste_decides_nothing() {
    let mut desk = Desk::pending(USUAL, short_batch(A1));
    desk.go_to_batch();
    desk.paste("A\napprove\n");
    assert!(desk.state.question.is_none());
    desk.press(Key::Char('A'));
    desk.paste("approve\n");
    desk.press(Key::Enter);
    assert_eq!(desk.decisions().len(), 0);
    assert_eq!(desk.state.prompt.text(), "");
}

#[test]
fn in_the_prompt_the_keys_are_letters() {
    let mut desk = Desk::pending(USUAL, short_batch(A1));
    desk.state.pane = Pane::Prompt;
    desk.write("ARIGq? approve");
    assert!(desk.state.question.is_none());
    assert_eq!(desk.state.prompt.text(), "ARIGq? approve");
    desk.press(Key::Enter);
    assert_eq!(desk.decisions().len(), 0);
    assert_eq!(desk.sent("session.prompt.send"), [json!({"text": "ARIGq? approve", "on_pending": "refuse"})]);
}

#[test]
fn anything_but_the_word_sends_nothing() {
    for answer in ["", "y", "yes", "APPROVE", "approved", "approve it", "reject"] {
        let mut desk = Desk::pending(USUAL, short_batch(A1));
        desk.read();
        desk.press(Key::Char('A'));
        desk.write(answer);
        desk.press(Key::Enter);
        assert_eq!(desk.decisions().len(), 0, "{answer:?}");
        assert!(desk.state.question.is_none());
    }
    let mut desk = Desk::pending(USUAL, short_batch(A1));
    desk.read();
    desk.press(Key::Char('A'));
    desk.write("approve");
    desk.press(Key::Escape);
    desk.press(Key::Enter);
    assert_eq!(desk.decisions().len(), 0);
}

#[test]
fn another_batch_is_read_from_the_beginning() {
    let mut desk = Desk::pending(USUAL, short_batch(A1));
    desk.read();
    desk.press(Key::Char('A'));
    desk.write("approve");
    let stage = desk.stage;
    desk.wait_for(long_batch(), true);
    desk.press_at(stage, Key::Enter);
    desk.press(Key::Enter);
    desk.press(Key::Char('A'));
    assert!(desk.state.question.is_none());
    assert_eq!(desk.decisions().len(), 0);
    assert!(desk.words().contains("read it to the end first"), "{}", desk.words());
    // The same batch with anything about it changed is another one to read, too.
    desk.read();
    let mut changed = long_batch();
    changed.background_processes.clear();
    desk.wait_for(changed, true);
    desk.press(Key::Char('A'));
    assert!(desk.state.question.is_none());
}

#[test]
fn the_same_batch_under_another_generation_takes_the_question_away_and_keeps_what_was_read() {
    let mut desk = Desk::pending(USUAL, short_batch(A1));
    desk.read();
    desk.press(Key::Char('A'));
    desk.wait_for(short_batch(A1), true);
    assert!(desk.state.question.is_none());
    desk.press(Key::Char('A'));
    assert!(desk.state.question.is_some());
}

#[test]
fn a_batch_that_is_gone_or_out_of_sight_is_not_decided_on() {
    let mut desk = Desk::pending(USUAL, short_batch(A1));
    desk.read();
    desk.press(Key::Char('A'));
    desk.write("approve");
    desk.hear(look(0, Waits::Nothing));
    desk.press(Key::Enter);
    assert_eq!(desk.decisions().len(), 0);

    let mut desk = Desk::pending(USUAL, short_batch(A1));
    desk.read();
    desk.press(Key::Char('A'));
    desk.hear(Message::Resized(Size { columns: 60, rows: 20 }));
    desk.write("approve");
    desk.press(Key::Enter);
    desk.press(Key::Char('A'));
    assert!(desk.state.question.is_none());
    assert_eq!(desk.decisions().len(), 0);
}

#[test]
fn what_cannot_be_accepted_can_only_be_rejected() {
    type Change = fn(&mut api_types::Approval);
    let changes: [(&str, Change); 6] = [
        ("secret", |batch| batch.holds_secret = true),
        ("approved before", |batch| batch.actions[0].in_doubt = true),
        ("did not send the batch whole", |batch| batch.complete = false),
        ("did not send the batch whole", |batch| batch.actions[0].truncated = true),
        ("did not send the batch whole", |batch| batch.actions.clear()),
        ("has changed since", |batch| {
            batch.named_files =
                serde_json::from_value(json!([{"path": "a.sh", "sha256": null, "changed": true}])).unwrap();
        }),
    ];
    for (words, change) in changes {
        let mut batch = short_batch(A1);
        change(&mut batch);
        let mut desk = Desk::open(USUAL);
        desk.wait_for(batch, true);
        desk.read();
        desk.press(Key::Char('A'));
        assert!(desk.words().contains(words), "{words}: {}", desk.words());
        assert!(desk.state.question.is_none());
        desk.press(Key::Char('R'));
        desk.write("reject not  this one ");
        desk.press(Key::Enter);
        assert_eq!(desk.decisions(), [json!({"approval_id": A1, "decision": "reject", "reason": "not  this one"})]);
    }
    let mut desk = Desk::open(USUAL);
    desk.wait_for(short_batch(A1), false);
    desk.read();
    desk.press(Key::Char('A'));
    assert!(desk.words().contains("this token may not approve"), "{}", desk.words());
}

#[test]
fn what_became_of_it_is_said_and_a_refusal_leaves_it_to_be_decided_on() {
    let decided = || {
        let mut desk = Desk::pending(USUAL, short_batch(A1));
        desk.read();
        desk.press(Key::Char('A'));
        desk.write("approve");
        desk.press(Key::Enter);
        assert_eq!(desk.decisions().len(), 1);
        desk
    };
    for (message, words, again) in [
        (outcome(ReceiptState::Applied, None), "is done", false),
        (outcome(ReceiptState::InFlight, None), "is being carried out", false),
        (outcome(ReceiptState::OutcomeUnknown, Some("no_answer")), "may or may not have been done", false),
        (outcome(ReceiptState::Rejected, Some("overtaken")), "was not done (overtaken): words␛", true),
        (refused(ExitCode::Conflict), "generation_stale: look again", true),
        (refused(ExitCode::Unknown), "generation_stale: look again", false),
    ] {
        let mut desk = decided();
        desk.hear(message);
        assert!(desk.screen().contains(words), "{words} in\n{}", desk.screen());
        if words == "is done" {
            desk.hear(look(0, Waits::Nothing));
            assert!(desk.screen().contains(words), "{words} in\n{}", desk.screen());
        }
        desk.press(Key::Char('A'));
        assert_eq!(desk.state.question.is_some(), again, "{words}");
    }
}

/// Another session may be open by then, and another batch be decided on.
#[test]
fn what_became_of_one_of_an_earlier_opening_is_said_and_changes_nothing() {
    let mut desk = Desk::pending(USUAL, short_batch(A1));
    desk.read();
    desk.press(Key::Char('A'));
    desk.write("approve");
    desk.press(Key::Enter);
    for mut message in [outcome(ReceiptState::Rejected, Some("overtaken")), refused(ExitCode::Conflict)] {
        if let Message::Outcome { opening, .. } = &mut message {
            *opening = 0;
        }
        desk.hear(message);
        assert!(desk.state.batch().unwrap().decided);
    }
    assert!(desk.words().contains("session.approval.decide"), "{}", desk.words());
}

fn refused(exit: ExitCode) -> Message {
    let trouble = Trouble { exit, words: "generation_stale: look again".to_owned(), passes: false };
    Message::Outcome { opening: 1, operation: "session.approval.decide", receipt: Err(trouble) }
}

#[test]
fn interrupting_and_going_on_are_asked_about() {
    let mut desk = Desk::open(USUAL);
    desk.state.pane = Pane::Events;
    for (key, word, operation) in [('I', "interrupt", "session.turn.interrupt"), ('G', "resume", "session.resume")] {
        desk.press(Key::Char(key));
        desk.press(Key::Enter);
        assert_eq!(desk.sent(operation).len(), 0);
        desk.press(Key::Char(key));
        desk.write(word);
        desk.press(Key::Enter);
        assert_eq!(desk.sent(operation), [json!({})]);
    }
}
