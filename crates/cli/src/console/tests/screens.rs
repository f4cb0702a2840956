//! The screens as text, reviewed like code.

use api_types::{EventKind, ExitCode};
use serde_json::json;

use super::desk::*;
use crate::console::keys::Key;
use crate::console::model::{Message, Pane, Size, Trouble};

const WIDE: Size = Size { columns: 200, rows: 50 };

fn assert_screen(name: &str, desk: &Desk) {
    insta::with_settings!({snapshot_path => "screens", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, desk.screen());
    });
}

fn talk(desk: &mut Desk) {
    desk.hear(page(vec![
        event(3, EventKind::AgentMessage, json!({"text": "I run the tests first.\nThen I look at \u{1b}[31mwhat fails."})),
        event(4, EventKind::ToolCall, json!({"tool": "terminal", "arguments": {"command": "cargo test"},
            "agent_risk": "LOW", "agent_summary": "runs the tests"})),
        event(5, EventKind::ToolResult, json!({"tool": "terminal", "outcome": "observed", "exit_code": 101,
            "text": "error: could not compile `app` (lib) due to 1 previous error; a line that is longer than the pane"})),
        event(6, EventKind::Usage, json!({"usage": {"usage_to_metrics": {
            "agent": {"accumulated_cost": 0.25, "accumulated_token_usage": {"prompt_tokens": 1200, "completion_tokens": 34}},
            "condenser": {"accumulated_cost": 0.0, "accumulated_token_usage": {"prompt_tokens": 0, "completion_tokens": 0}}}}})),
        event(7, EventKind::Status, json!({"status": "waiting_for_confirmation"})),
    ]));
}

#[test]
fn nothing_open() {
    let mut desk = Desk::new(USUAL);
    desk.draw();
    assert_screen("nothing_open", &desk);
}

#[test]
fn a_session_with_a_batch_that_waits() {
    for (name, size) in [("waiting", USUAL), ("waiting_wide", WIDE)] {
        let mut desk = Desk::open(size);
        talk(&mut desk);
        desk.wait_for(long_batch(), true);
        desk.state.pane = Pane::Prompt;
        desk.write("and then?");
        assert_screen(name, &desk);
    }
}

#[test]
fn a_batch_read_and_asked_about() {
    for (suffix, size) in [("", USUAL), ("_wide", WIDE)] {
        let mut desk = Desk::open(size);
        talk(&mut desk);
        desk.wait_for(long_batch(), true);
        desk.go_to_batch();
        assert_screen(&format!("batch_beginning{suffix}"), &desk);
        desk.read();
        assert_screen(&format!("batch_end{suffix}"), &desk);
        desk.press(Key::Char('A'));
        desk.write("appro");
        assert_screen(&format!("approve{suffix}"), &desk);
    }
}

#[test]
fn a_rejection_with_a_reason() {
    let mut desk = Desk::pending(USUAL, short_batch(A1));
    desk.read();
    desk.press(Key::Char('R'));
    desk.write("reject use the other target directory");
    assert_screen("reject", &desk);
}

#[test]
fn a_lost_daemon() {
    let mut desk = Desk::open(USUAL);
    let trouble = || Trouble {
        exit: ExitCode::DaemonNotRunning,
        words: "daemon_not_running: nothing answers on /run/user/1000/gatepost/gatepost.sock".to_owned(),
        passes: true,
    };
    desk.hear(Message::Listed(Err(trouble())));
    desk.hear(Message::Page { opening: 1, page: Err(trouble()) });
    assert_screen("lost", &desk);
}

#[test]
fn the_keys() {
    let mut desk = Desk::open(USUAL);
    desk.press(Key::Char('?'));
    assert_screen("keys", &desk);
}

#[test]
fn too_small_a_terminal() {
    let mut desk = Desk::pending(Size { columns: 60, rows: 20 }, short_batch(A1));
    desk.draw();
    assert_screen("too_small", &desk);
}
