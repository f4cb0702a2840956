//! What a model can try by the way it writes its calls.

use api_types::EventKind;
use gatepost_tests::{SETTLE, Scene, refusal_code};
use serde_json::json;
use testkit::daemon::{Home, Setup};

/// An error of an earlier call must not count as the answer to a later one of the same id.
pub(super) fn reused_call_id(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("reused");
    session.turn("reuse-id call_again bad-args");
    let failed = session.wait_event("the failed call", |event| event.payload["outcome"] == "error");
    assert_eq!(failed.payload["tool_call_id"], "call_again", "{failed:?}");
    assert_eq!(session.pending(), None, "what failed does not wait");

    let shown = session.propose(&format!("reuse-id call_again {}", marker.directive()));
    assert_eq!(shown.actions.len(), 1);
    let reply = session.ask("session.prompt.send", &json!({"text": "say: go on"}));
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "approval_pending"));
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    session.approve_to_end(&shown);
    marker.assert_runs(1);
    assert_eq!(session.snapshot().blocked_reason, None);
}

/// Nor may an observation of an earlier call.
pub(super) fn reused_executed_id(scene: &Scene) {
    let session = scene.session();
    let (first, second) = (scene.marker("reused-first"), scene.marker("reused-second"));
    session.approve_to_end(&session.propose(&format!("reuse-id call_same {}", first.directive())));
    let shown = session.propose(&format!("reuse-id call_same {}", second.directive()));
    let reply = session.ask("session.prompt.send", &json!({"text": "say: go on"}));
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "approval_pending"));
    assert_eq!(session.refused("session.resume", &json!({})), "approval_pending");
    std::thread::sleep(SETTLE);
    second.assert_absent();
    session.approve_to_end(&shown);
    second.assert_runs(1);
    first.assert_runs(1);
}

pub(super) fn deceptive(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("deceptive");
    let text = format!("summary \"list files\" run: true \u{202e}sdrow\u{202c} && {}", marker.command());
    let shown = session.propose(&text);
    let action = &shown.actions[0];
    assert!(action.deceptive_text, "{action:?}");
    let command = action.arguments["command"].as_str().unwrap();
    assert!(command.contains("⟨U+202E⟩") && !command.contains('\u{202e}'), "{command}");
    assert!(command.contains(&marker.command()), "what runs is shown, whatever the summary says: {command}");
    assert_eq!(action.agent_summary.as_deref(), Some("list files"));
    session.reject(&shown);
    std::thread::sleep(SETTLE);
    marker.assert_absent();
}

/// The tool is not there: the call fails before anything could wait or run.
pub(super) fn sub_agent(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("sub-agent");
    let arguments = json!({
        "description": "list files", "prompt": marker.directive(), "subagent_type": "bash", "security_risk": "LOW",
    });
    session.turn(&format!("call: task {arguments}"));
    let failed = session.wait_event("the refused call", |event| event.payload["outcome"] == "error");
    assert_eq!(failed.kind, EventKind::ToolResult);
    assert_eq!(session.pending(), None);
    let offered = scene.model().requests();
    let tools = offered.last().unwrap()["tools"].to_string();
    assert!(tools.contains("\"terminal\""), "{tools}");
    for name in ["\"task\"", "\"task_tool_set\"", "\"workflow\"", "\"delegate\""] {
        assert!(!tools.contains(name), "{name} is offered to the model");
    }
    std::thread::sleep(SETTLE);
    marker.assert_absent();
}

pub(super) fn secret(scene: &Scene) {
    let session = scene.session();
    let marker = scene.marker("secret");
    let key = scene.home().model_key();
    let shown = session.propose(&format!("run: echo {key} > /dev/null && {}", marker.command()));
    assert!(shown.holds_secret && shown.actions[0].redacted && !shown.complete, "{shown:?}");
    assert!(!format!("{shown:?}").contains(key), "the key is shown");
    let path = session.path(&format!("/approvals/{}?full=true", shown.approval_id));
    let full = session.client().get(&path).unwrap();
    assert!(full.status == 200 && !full.text.contains(key), "{}", full.text);
    let reply = session.ask_accept(&shown.approval_id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "approval_holds_secret"));
    session.reject(&shown);
    session.turn("say: without it");
    std::thread::sleep(SETTLE);
    marker.assert_absent();
}

/// No server is started: the daemon does not come up with such a configuration.
pub(super) fn sub_agent_tools_refused() {
    for tool in ["task", "task_tool_set", "workflow", "delegate"] {
        let mut setup = Setup::without_server();
        setup.tools.push(tool.to_owned());
        let home = Home::new(setup).unwrap();
        let failure = home.serve_until("/v1/healthz").unwrap_err().to_string();
        assert!(failure.contains("model.tools") && failure.contains("agent"), "{tool}: {failure}");
    }
    let home = Home::new(Setup::without_server()).unwrap();
    let daemon = home.serve_until("/v1/healthz").unwrap();
    assert!(daemon.stop().unwrap().status.success(), "without such a tool it comes up");
}
