//! Where an agent may work, and what must not lie there.

use gatepost_tests::{Faked, Marker, refusal_code};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use testkit::fake_server::Plan;

#[test]
fn a_workspace_outside_the_roots_gets_no_server() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let root = scene.home().workspace_root();
    let outside = scene.home().path().join("home");
    symlink(&outside, root.join("link")).unwrap();
    fs::create_dir(outside.join("below")).unwrap();
    symlink("/", root.join("everything")).unwrap();
    for path in [
        outside.clone(),
        root.join("link"),
        root.join("link/below"),
        root.join("work/../../home"),
        root.join("everything/etc"),
        root.parent().unwrap().to_owned(),
    ] {
        let reply = scene.client().post("/v1/sessions", &json!({"workspace": path})).unwrap();
        assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "workspace_outside_roots"), "{path:?}");
    }
    assert_eq!(faked.asked(), Vec::<String>::new());
    assert!(scene.status().servers.is_empty());
    scene.finish();
}

/// A link within the roots is taken for what it points at.
#[test]
fn a_link_within_the_roots_is_its_target() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let link = scene.home().workspace_root().join("link");
    symlink(scene.workspace(), &link).unwrap();
    let session = scene.session_in(&link);
    assert_eq!(session.snapshot().workspace, scene.workspace().to_string_lossy());
    session.turn("say: hello");
    scene.finish();
}

/// The directory is looked at before each step: one that became a link to elsewhere is not where the session is bound.
#[test]
fn a_workspace_that_turns_into_a_link_elsewhere_blocks() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let workspace = scene.workspace();
    let elsewhere = scene.home().path().join("home");
    let session = scene.session();
    let marker = Marker::new(&elsewhere, "moved");
    let approval = session.propose(&marker.directive());
    let aside = workspace.with_extension("aside");
    fs::rename(&workspace, &aside).unwrap();
    symlink(&elsewhere, &workspace).unwrap();
    let before = faked.steps();
    let reply = session.ask_accept(&approval.approval_id);
    assert_eq!(refusal_code(&reply), "workspace_mismatch", "{}", reply.text);
    assert_eq!(session.refused("session.prompt.send", &json!({"text": "say: no"})), "workspace_mismatch");
    session.interrupt();
    session.reject(&approval);
    assert_eq!(faked.steps(), before);
    marker.assert_absent();
    fs::remove_file(&workspace).unwrap();
    fs::rename(&aside, &workspace).unwrap();
    session.turn("say: it goes on");
    scene.finish();
}

#[test]
fn a_workspace_with_a_plugin_gets_no_server_and_a_session_whose_workspace_gets_one_is_blocked() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let plugin = scene.home().new_workspace("plugin").unwrap();
    let hooks = ".openhands/plugins/p/hooks/hooks.json";
    fs::create_dir_all(plugin.join(hooks).parent().unwrap()).unwrap();
    fs::write(plugin.join(hooks), "{}").unwrap();
    let reply = scene.client().post("/v1/sessions", &json!({"workspace": plugin})).unwrap();
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "workspace_content"));
    assert!(reply.text.contains(hooks), "{}", reply.text);
    assert_eq!(faked.asked(), Vec::<String>::new(), "a server was started there");
    let server = scene.status().servers.into_iter().find(|server| server.workspace.ends_with("plugin")).unwrap();
    let failed: Vec<_> = server.canaries.iter().filter(|result| result.code.is_some()).collect();
    assert_eq!(failed.len(), 1, "{server:?}");
    assert_eq!(
        (failed[0].canary.as_str(), failed[0].code.as_deref()),
        ("workspace_content", Some("workspace_content"))
    );

    let session = scene.session();
    let marker = scene.marker("content");
    let approval = session.propose(&marker.directive());
    let own = scene.workspace().join(hooks);
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "{}").unwrap();
    let before = faked.steps();
    assert_eq!(refusal_code(&session.ask_accept(&approval.approval_id)), "workspace_content");
    session.interrupt();
    session.reject(&approval);
    assert_eq!(faked.steps(), before);
    marker.assert_absent();
    scene.finish();
}
