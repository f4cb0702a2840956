//! Who the server says it is, whom it lets in, and what it listens on.

use super::stage::{Stage, VERSION};
use agent_contract::KeyKind;
use rules::canary::{AuthStatuses, authentication, init_closed};
use std::sync::Arc;

pub(crate) async fn says_title_and_versions_without_a_key(stage: Arc<Stage>) {
    // The client sends no key on this route; a stranger's would not be accepted anywhere else.
    let info = stage.stranger().server_info().await.unwrap();
    assert_eq!(info.title, "OpenHands Agent Server");
    let versions = [&info.version, &info.sdk_version, &info.tools_version, &info.workspace_version];
    assert!(versions.iter().all(|version| version.as_str() == VERSION), "{info:?}");
    assert!(info.usable_tools.iter().any(|tool| tool == "terminal"), "{info:?}");
}

/// The key stood nowhere but in the configuration that an inherited descriptor named.
pub(crate) async fn only_the_configured_key_is_let_in(stage: Arc<Stage>) {
    let mut statuses = [0; 3];
    for (status, key) in statuses.iter_mut().zip([KeyKind::Right, KeyKind::Missing, KeyKind::Wrong]) {
        *status = stage.client.auth_probe(key).await.unwrap();
    }
    let [right, missing, wrong] = statuses;
    let verdict = authentication(AuthStatuses { right, missing, wrong });
    assert!(verdict.passed, "{verdict:?}");
    let refused = stage.stranger().conversation(&stage.new_conversation(&stage.new_directory()).id).await;
    assert_eq!(refused.unwrap_err().refused_status(), Some(401));
}

pub(crate) async fn initialisation_is_closed(stage: Arc<Stage>) {
    let verdict = init_closed(stage.client.init_probe().await.unwrap());
    assert!(verdict.passed, "{verdict:?}");
}

pub(crate) async fn listens_on_the_inherited_socket_alone(stage: Arc<Stage>) {
    let inspection = stage.control().inspect().await.unwrap();
    assert!(inspection.listens_only_on(stage.port()), "{inspection:?}");
}

pub(crate) async fn the_measures_of_the_startup_module_hold(stage: Arc<Stage>) {
    let inspection = stage.control().inspect().await.unwrap();
    assert!(inspection.nonce_matches && inspection.latch && inspection.ambient_plugins_dropped, "{inspection:?}");
    assert!(!inspection.dumpable, "{inspection:?}");
    assert_eq!(inspection.pid, stage.pid());
}

/// The right key opens nothing that the contract does not review: no shell, no files, no settings, no list.
pub(crate) async fn a_route_outside_the_contract_is_not_there(stage: Arc<Stage>) {
    for (method, path) in [
        ("GET", "/alive"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/api/conversations/search"),
        ("GET", "/api/settings"),
        ("POST", "/api/bash/execute_bash_command"),
        ("POST", "/api/bash/start_bash_command"),
        ("GET", "/api/file/download?path=/etc/passwd"),
        ("POST", "/api/hooks"),
        ("PUT", "/api/conversations"),
    ] {
        let answer = stage.upstream.send(method, path, Some(&serde_json::json!({"command": "true"}))).await;
        assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
    }
}
