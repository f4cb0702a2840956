//! Several actions at once, and the ones that ask nothing.

use api_types::ReceiptState;
use gatepost_tests::{SETTLE, Scene};
use serde_json::json;
use testkit::model::{Reply, ToolCall};

/// Three commands that append their own letter to one file.
fn three(scene: &Scene, name: &str) -> (std::path::PathBuf, String) {
    let path = scene.workspace().join(name);
    let commands = ["a", "b", "c"].map(|letter| format!("echo {letter} >> {}", path.display()));
    (path, format!("run all: {}", commands.join(" ;; ")))
}

pub(super) fn three_at_once(scene: &Scene) {
    let session = scene.session();
    let (path, text) = three(scene, "three");
    let shown = session.propose(&text);
    let commands: Vec<&str> =
        shown.actions.iter().map(|action| action.arguments["command"].as_str().unwrap()).collect();
    assert_eq!(commands.len(), 3, "{shown:?}");
    for (command, letter) in commands.iter().zip(["a", "b", "c"]) {
        assert!(command.starts_with(&format!("echo {letter} ")), "in order: {commands:?}");
    }
    std::thread::sleep(SETTLE);
    assert!(!path.exists(), "a part of the batch ran unapproved");

    let receipt = session.approve_to_end(&shown);
    let ids: Vec<&str> = shown.actions.iter().map(|action| action.event_id.as_str()).collect();
    let observed = |id: &&str| json!({"event_id": id, "answer": "observed"});
    assert_eq!(receipt.result["actions"], json!(ids.iter().map(observed).collect::<Vec<_>>()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\nc\n");
    for id in ids {
        assert_eq!(session.results_of(id).len(), 1);
    }
}

pub(super) fn three_rejected(scene: &Scene) {
    let session = scene.session();
    let (path, text) = three(scene, "three-not");
    let shown = session.propose(&text);
    session.reject(&shown);
    for action in &shown.actions {
        let results = session.results_of(&action.event_id);
        assert_eq!(results.len(), 1, "{results:?}");
        assert_eq!(results[0]["outcome"], "rejected");
    }
    session.turn("say: none of them");
    std::thread::sleep(SETTLE);
    assert!(!path.exists());
}

pub(super) fn prompt_instead(scene: &Scene) {
    let session = scene.session();
    let (unwanted, wanted) = (scene.marker("unwanted"), scene.marker("wanted"));
    let first = session.propose(&unwanted.directive());
    let input = json!({"text": wanted.directive(), "on_pending": "reject"});
    let receipt = session.applied("session.prompt.send", &input);
    let steps: Vec<(&str, &str)> = receipt.steps.iter().map(|step| (step.name.as_str(), step.state.as_str())).collect();
    assert_eq!(steps, [("reject", "done"), ("send_message", "done")]);
    assert_eq!(session.results_of(&first.actions[0].event_id)[0]["outcome"], "rejected");

    let second = session.wait_pending();
    assert_eq!(second.actions.len(), 1, "the rejected action is gone: {second:?}");
    assert_ne!(second.approval_id, first.approval_id);
    session.approve_to_end(&second);
    wanted.assert_runs(1);
    unwanted.assert_absent();
}

pub(super) fn exempt_alone_only(scene: &Scene) {
    let session = scene.session();
    session.turn("think: what shall I do\nthen finish: nothing");
    let snapshot = session.snapshot();
    assert_eq!((snapshot.status.as_str(), snapshot.pending_actions, snapshot.blocked_reason), ("finished", 0, None));

    let marker = scene.marker("beside-finish");
    let mut reply = Reply::run(&marker.command());
    reply.calls.push(ToolCall {
        id: None,
        tool: "finish".to_owned(),
        arguments: json!({"message": "all done"}).to_string(),
    });
    assert!(scene.model().push(reply));
    let shown = session.propose("both at once");
    let tools: Vec<&str> = shown.actions.iter().map(|action| action.tool.as_str()).collect();
    assert_eq!(tools, ["terminal", "finish"]);
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    let receipt = session.approve_to_end(&shown);
    assert_eq!(receipt.state, ReceiptState::Applied);
    marker.assert_runs(1);
}
