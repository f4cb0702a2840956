//! `gatepost console` in a pseudo-terminal: the way a person decides there, and how the terminal is left.

use gatepost_tests::{LIMIT, Left, SETTLE, Scene, Session, Terminal, wait_until};
use rustix::process::Signal;
use std::process::Command;
use testkit::daemon::built_binary;

const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

fn gatepost(scene: &Scene, arguments: &[&str]) -> Command {
    let mut command = scene.home().command();
    command.arg("--state-dir").arg(scene.home().state()).args(arguments).env("TERM", "xterm-256color");
    command
}

/// The console with a session open, drawn.
fn console(scene: &Scene, session: &Session) -> Terminal {
    let terminal = Terminal::start(gatepost(scene, &["console", session.id()]), ROWS, COLUMNS);
    wait_until("the session to be shown", LIMIT, || {
        let screen = terminal.screen();
        (screen.contains("(live)") && !screen.contains("is being read")).then_some(())
    });
    terminal
}

fn ended_well(left: &Left) {
    left.assert_as_found();
    assert_eq!(left.status.code(), Some(0), "{left:?}");
}

pub(super) fn prompt_read_approve(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("console");
    let terminal = console(scene, &session);
    // Pasted, as a whole; of more rows than the screen has.
    let long: String = (1..=40).map(|line| format!("true line-{line} &&\n")).collect();
    terminal.write(&format!("\x1b[200~run: {long}{}\x1b[201~", marker.command()));
    terminal.wait_for("Prompt: 41 lines");
    terminal.write("\r");
    terminal.wait_for("1 action waits for your decision (Tab shows it whole): terminal");

    terminal.write("\x1b");
    terminal.wait_for("┏ Events");
    terminal.write("\t");
    terminal.wait_for("true line-1");
    terminal.write("A");
    terminal.wait_for("read it to the end first");
    wait_until("the batch to be read", LIMIT, || {
        terminal.write(" ");
        terminal.screen().contains("A approve").then_some(())
    });
    // All at once: what follows the key was typed before the question stood there.
    terminal.write("Aapprove\r");
    terminal.wait_for("Approve?");
    terminal.write("\x1b[200~approve\r\x1b[201~");
    terminal.write("\r");
    terminal.wait_for("nothing was sent: the word is `approve`");
    std::thread::sleep(SETTLE);
    marker.assert_absent();

    terminal.write("A");
    terminal.wait_for("Approve?");
    terminal.wait_for(&session.pending().unwrap().approval_id[..12]);
    terminal.write("approve");
    terminal.wait_for("> approve");
    terminal.write("\r");
    terminal.wait_for("session.approval.decide is done");
    terminal.wait_for("marked");
    marker.assert_runs(1);
    session.wait_quiet();
    terminal.write("q");
    ended_well(&terminal.wait_end());
}

pub(super) fn reject(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("console-rejected");
    let shown = session.propose(&marker.directive());
    let terminal = console(scene, &session);
    terminal.write("\x1b");
    terminal.wait_for("┏ Events");
    terminal.write("\t");
    terminal.wait_for("R reject");
    terminal.write("R");
    terminal.wait_for("Reject?");
    terminal.write("reject use another one");
    terminal.wait_for("> reject use another one");
    terminal.write("\r");
    terminal.wait_for("session.approval.decide is done");
    session.wait_event("the rejection", |event| event.payload["text"] == "use another one");
    assert_eq!(session.results_of(&shown.actions[0].event_id).len(), 1);
    terminal.write("\x03");
    ended_well(&terminal.wait_end());
    marker.assert_absent();
}

pub(super) fn left_as_found(scene: &Scene) {
    let session = scene.session();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let terminal = console(scene, &session);
        terminal.signal(signal);
        ended_well(&terminal.wait_end());
    }
    let terminal = console(scene, &session);
    terminal.resize(20, 60);
    terminal.wait_for("needs 80 columns and 24 rows");
    terminal.resize(50, 200);
    terminal.wait_for("nothing waits for a decision");
    terminal.write("\x03");
    ended_well(&terminal.wait_end());

    // A terminal that takes nothing does not hold it up, and one that is gone ends it.
    let terminal = console(scene, &session);
    terminal.hold();
    for size in 0..40 {
        terminal.resize(50 + size, 200);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.wait_end().status.code(), Some(0));
    let terminal = console(scene, &session);
    let status = terminal.take_away();
    assert!(status.code().is_some(), "{status}");
}

pub(super) fn panics(_: &Scene) {
    let program = built_binary("gatepost-tests", "gatepost-panicking").unwrap();
    for how in ["here", "thread"] {
        let mut command = Command::new(&program);
        command.arg(how).env("TERM", "xterm-256color");
        let left = Terminal::start(command, ROWS, COLUMNS).wait_end();
        left.assert_as_found();
        assert!(left.screen.contains("the words of the panic"), "{left:?}");
    }
}

pub(super) fn refused(scene: &Scene) {
    let spoken = |arguments: &[&str], terminal: &str| {
        let mut command = gatepost(scene, arguments);
        command.env("TERM", terminal);
        let left = Terminal::start(command, ROWS, COLUMNS).wait_end();
        assert!(!left.bytes.contains('\x1b'), "the terminal was taken over: {left:?}");
        (left.status.code(), left.screen)
    };
    let (code, words) = spoken(&["console"], "dumb");
    assert_eq!(code, Some(2), "{words}");
    let (code, words) = spoken(&["console", "--json"], "xterm");
    assert_eq!(code, Some(2), "{words}");
    let (code, words) = spoken(&["console", "--socket", "/nonexistent/s"], "xterm");
    assert_eq!(code, Some(3), "{words}");
    let (code, words) = spoken(&["console", "ffffffffffff"], "xterm");
    assert!(code == Some(1) && words.contains("session_not_found"), "{code:?} {words}");
    let output = gatepost(scene, &["console"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("needs a terminal") && said.contains("next: "), "{said}");
}
