//! Acceptances across the end of a server or of the daemon: what was shown before is void, what was sent is in doubt.

use api_types::{EventKind, Receipt, ReceiptState};
use gatepost_tests::{LIMIT, SETTLE, Scene, refusal_code, typed, wait_until};
use serde_json::json;
use std::path::Path;

pub(super) fn server_killed(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("killed");
    let shown = session.propose(&marker.directive());

    // Another session's approved command runs meanwhile.
    let running = scene.session();
    let (begun, ended) = (scene.marker("doubtful-begun"), scene.marker("doubtful-ended"));
    let accepted = running.propose(&format!("run: {} && sleep 300 && {}", begun.command(), ended.command()));
    let deciding = {
        let (running, approval_id) = (running.clone(), accepted.approval_id.clone());
        std::thread::spawn(move || running.ask_accept(&approval_id))
    };
    wait_until("the command to begin", LIMIT, || (begun.runs() == 1).then_some(()));

    let pid = scene.server_pid().unwrap();
    let raw = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(raw, rustix::process::Signal::KILL).unwrap();
    wait_until("the daemon to notice", LIMIT, || (scene.server_pid() != Some(pid)).then_some(()));

    let again = session.wait_pending();
    assert_ne!(again.approval_id, shown.approval_id, "it is shown anew");
    assert_eq!(again.actions, shown.actions);
    assert!(scene.server_pid().is_some_and(|now| now != pid), "another server is up");
    let reply = session.ask_accept(&shown.approval_id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "approval_superseded"));
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    let told = session.events().into_iter().filter(|event| event.kind == EventKind::Lifecycle);
    let told: Vec<_> = told.map(|event| event.payload["event"].clone()).collect();
    assert_eq!(told, ["server_ready", "server_ended", "server_restarted"]);
    session.approve_to_end(&again);
    marker.assert_runs(1);
    assert_whole_history(scene);

    // What was sent to the server that is gone may have run: it is never sent again.
    let receipt: Receipt = typed(&deciding.join().unwrap(), &[200, 202]);
    let doubtful = running.wait_pending();
    assert_eq!(doubtful.actions.len(), 1);
    assert!(doubtful.actions[0].in_doubt, "{doubtful:?}");
    assert_eq!(doubtful.actions[0].event_id, accepted.actions[0].event_id);
    let receipt = running.wait_final(&receipt.client_action_id);
    assert_eq!(receipt.state, ReceiptState::OutcomeUnknown, "{receipt:?}");
    assert_eq!(refusal_code(&running.ask_accept(&doubtful.approval_id)), "approval_in_doubt");
    for (operation, input) in [
        ("session.prompt.send", json!({"text": "say: go on"})),
        ("session.resume", json!({})),
        ("session.compact", json!({})),
    ] {
        assert_eq!(running.refused(operation, &input), "approval_in_doubt", "{operation}");
    }
    running.reject(&doubtful);
    running.turn("say: going on");
    assert_whole_history(scene);
    std::thread::sleep(SETTLE);
    begun.assert_runs(1);
    ended.assert_absent();
    assert_eq!(running.snapshot().blocked_reason, None);
}

/// The daemon stops; its files are edited so that the server would ask no more; the daemon starts.
pub(super) fn daemon_restarted(scene: &mut Scene) {
    let (before, marker) = (scene.session(), scene.marker("restarted"));
    let shown = before.propose(&marker.directive());
    scene.stop_daemon();
    let edited = weaken(&scene.home().state().join("bindings"));
    assert!(edited > 0, "no stored policy was found to edit");
    scene.serve_again();

    let session = scene.take_up(before.id());
    let again = session.wait_pending();
    assert_eq!(session.snapshot().values.get("policy"), Some(&json!("AlwaysConfirm")), "the policy was asserted again");
    assert_ne!(again.approval_id, shown.approval_id, "it is shown anew");
    assert_eq!(again.actions, shown.actions);
    let reply = session.ask_accept(&shown.approval_id);
    assert!(["approval_not_found", "approval_superseded"].contains(&refusal_code(&reply).as_str()), "{}", reply.text);
    assert_eq!(session.refused("session.prompt.send", &json!({"text": "say: now"})), "approval_pending");
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    session.approve_to_end(&again);
    marker.assert_runs(1);
    assert_whole_history(scene);
    // The next one is asked for as well.
    let next = session.propose(&marker.directive());
    std::thread::sleep(SETTLE);
    marker.assert_runs(1);
    session.approve_to_end(&next);
    marker.assert_runs(2);
}

/// The model was last shown each answer after its call: otherwise providers refuse, and the session is stuck.
fn assert_whole_history(scene: &Scene) {
    let requests = scene.model().requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    let mut called = Vec::new();
    let mut answers = 0;
    for message in messages {
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        called.extend(calls.iter().map(|call| &call["id"]));
        if message["role"] == "tool" {
            answers += 1;
            assert!(called.contains(&&message["tool_call_id"]), "an answer without its call: {messages:#?}");
        }
    }
    assert!(answers > 0, "no answer was shown: {messages:#?}");
}

/// Writes another policy into every file that holds the reviewed one; how many there were.
fn weaken(directory: &Path) -> usize {
    let mut edited = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            edited += weaken(&entry.path());
        } else if ["base_state.json", "meta.json"].iter().any(|name| entry.file_name() == *name) {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            if text.contains("AlwaysConfirm") {
                std::fs::write(entry.path(), text.replace("AlwaysConfirm", "NeverConfirm")).unwrap();
                edited += 1;
            }
        }
    }
    edited
}
