//! The stored policy, weakened while no server runs: on the real server, which believes its files.

use gatepost_tests::{SETTLE, Scene};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The stored files of a conversation.
fn stored(state: &Path, session_id: &str) -> [PathBuf; 2] {
    let bindings = fs::read_dir(state.join("bindings")).unwrap().map(|entry| entry.unwrap().path());
    let name = session_id.replace('-', "");
    let directories = bindings.map(|binding| binding.join("conversations").join(&name));
    let directory = directories.into_iter().find(|directory| directory.is_dir()).unwrap();
    ["base_state.json", "meta.json"].map(|name| directory.join(name))
}

/// Makes every stored policy one that asks for nothing; says how many there were.
fn weaken(value: &mut Value) -> usize {
    match value {
        Value::Object(fields) if fields.get("kind").is_some_and(|kind| kind == "AlwaysConfirm") => {
            fields.insert("kind".to_owned(), json!("NeverConfirm"));
            1
        }
        Value::Object(fields) => fields.values_mut().map(weaken).sum(),
        Value::Array(items) => items.iter_mut().map(weaken).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[test]
fn a_policy_weakened_on_disk_is_set_again_before_anything_runs() {
    let mut scene = Scene::start();
    let session = scene.session();
    let marker = scene.marker("weakened");
    let shown = session.propose(&marker.directive());
    let id = session.id().to_owned();
    scene.stop_daemon();
    for path in stored(&scene.home().state(), &id) {
        let mut value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert!(weaken(&mut value) > 0, "{} holds no policy", path.display());
        fs::write(&path, value.to_string()).unwrap();
    }
    scene.serve_again();
    let session = scene.take_up(&id);
    let snapshot = session.snapshot();
    assert_eq!(snapshot.blocked_reason, None);
    assert_eq!(snapshot.values["policy"], "AlwaysConfirm");
    assert_eq!(session.refused("session.prompt.send", &json!({"text": "say: go on"})), "approval_pending");
    let again = session.wait_pending();
    assert_ne!(again.approval_id, shown.approval_id, "a restart voids what was shown");
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    session.approve_to_end(&again);
    marker.assert_runs(1);
    scene.finish();
}
