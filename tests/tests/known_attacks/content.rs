//! Content of a workspace that would act by being there: hooks of a plugin run without anybody being asked.

use gatepost_tests::{Marker, SETTLE, Scene, refusal_code};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const MANIFEST: &str = ".openhands/plugins/helper/.plugin/plugin.json";
const HOOKS: &str = ".openhands/plugins/helper/hooks/hooks.json";
const MANIFEST_TEXT: &str = "{\"name\": \"helper\", \"version\": \"1.0.0\", \"description\": \"helps\"}\n";
/// Its commands leave a file in the directory they run in.
const REVIEWED_MARKER: &str = "hook-of-reviewed-content";

/// Hooks that run this command at each occasion the server knows.
fn hooks(command: &str) -> String {
    let hook = json!([{"matcher": "*", "hooks": [{"type": "command", "command": command}]}]);
    let occasions = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];
    let hooks: serde_json::Map<String, Value> =
        occasions.iter().map(|name| ((*name).to_owned(), hook.clone())).collect();
    json!({"hooks": hooks}).to_string()
}

fn reviewed_hooks() -> String {
    hooks(&format!("touch {REVIEWED_MARKER}"))
}

/// The digests that lift the block for one plugin's content, as the configuration takes them.
pub(super) fn reviewed() -> String {
    let digests = [
        rules::workspace::content_digest(MANIFEST, MANIFEST_TEXT),
        rules::workspace::content_digest(HOOKS, &reviewed_hooks()),
    ];
    json!(digests).to_string()
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn place_plugin(root: &Path, hooks: &str) {
    write(root, MANIFEST, MANIFEST_TEXT);
    write(root, HOOKS, hooks);
}

pub(super) fn refused_at_the_start(scene: &Scene) {
    let before = scene.status().servers.iter().filter(|server| server.pid.is_some()).count();
    let cases = [
        ("openhands-plugin", ".openhands/plugins/p/hooks/hooks.json"),
        ("agents-plugin", ".agents/plugins/p/hooks/hooks.json"),
        ("plugin-itself", ".plugin/plugin.json"),
        ("hooks", ".openhands/hooks.json"),
        ("agent-definition", ".openhands/agents/bold.md"),
        ("mcp", ".mcp.json"),
    ];
    for (name, path) in cases {
        let root = scene.home().new_workspace(name).unwrap();
        let marker = Marker::new(&root, "hooked");
        write(&root, path, &hooks(&marker.command()));
        let in_workspace = scene.client().post("/v1/sessions", &json!({"workspace": root})).unwrap();
        // The same content in the git root above counts as well.
        fs::create_dir_all(root.join(".git")).unwrap();
        let below = root.join("below");
        fs::create_dir(&below).unwrap();
        let in_git_root = scene.client().post("/v1/sessions", &json!({"workspace": below})).unwrap();
        for reply in [in_workspace, in_git_root] {
            assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "workspace_content"), "{path}");
            assert!(reply.text.contains(path), "the file is named: {}", reply.text);
        }
        marker.assert_absent();
    }
    let after = scene.status().servers.iter().filter(|server| server.pid.is_some()).count();
    assert_eq!(after, before, "no server was started for any of them");
}

pub(super) fn appears_later(scene: &Scene) {
    let workspace = scene.workspace();
    let (session, hooked) = (scene.session(), scene.marker("hooked-later"));
    let marker = scene.marker("beside-a-plugin");
    let shown = session.propose(&marker.directive());
    place_plugin(&workspace, &hooks(&hooked.command()));

    let reply = session.ask_accept(&shown.approval_id);
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "workspace_content"));
    assert!(reply.text.contains(HOOKS), "the file is named: {}", reply.text);
    let snapshot = session.snapshot();
    assert_eq!(snapshot.blocked_reason.unwrap().code, "workspace_content");
    for operation in ["session.prompt.send", "session.resume", "session.compact", "session.fork"] {
        assert!(!session.offers(operation), "{operation} is offered");
    }
    // What can only prevent stays available.
    session.interrupt();
    session.reject(&shown);
    for (operation, input) in [
        ("session.prompt.send", json!({"text": "say: anything"})),
        ("session.resume", json!({})),
        ("session.compact", json!({})),
    ] {
        assert_eq!(session.refused(operation, &input), "workspace_content", "{operation}");
    }
    let another = scene.client().post("/v1/sessions", &json!({"workspace": workspace})).unwrap();
    assert_eq!((another.status, refusal_code(&another).as_str()), (409, "workspace_content"));
    std::thread::sleep(SETTLE);
    hooked.assert_absent();
    marker.assert_absent();

    fs::remove_dir_all(workspace.join(".openhands")).unwrap();
    session.approve_to_end(&session.propose(&marker.directive()));
    marker.assert_runs(1);
    hooked.assert_absent();
}

/// A digest in the configuration lifts the block; the hooks do not run all the same.
pub(super) fn reviewed_is_not_loaded(scene: &Scene) {
    let workspace = scene.workspace();
    let marker = scene.marker("with-reviewed-content");
    place_plugin(&workspace, &reviewed_hooks());
    let session = scene.session();
    assert_eq!(session.snapshot().blocked_reason, None);
    session.turn("say: a whole turn");
    session.approve_to_end(&session.propose(&marker.directive()));
    marker.assert_runs(1);
    std::thread::sleep(SETTLE);
    assert!(!workspace.join(REVIEWED_MARKER).exists(), "a hook ran");
    // One letter more and it is other content.
    place_plugin(&workspace, &format!("{} ", reviewed_hooks()));
    assert_eq!(session.refused("session.prompt.send", &json!({"text": "say: no"})), "workspace_content");
    fs::remove_dir_all(workspace.join(".openhands")).unwrap();
    session.turn("say: yes");
}
