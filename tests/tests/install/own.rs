//! An executable of one's own: its version is read from what is installed around it, never by running it.

use gatepost_tests::{Scene, refusal_code};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use testkit::daemon::SERVER_VERSION;
use testkit::fake_server::install_distributions;

/// Lays out an environment whose interpreter leaves a mark when anything runs it.
fn environment(directory: &Path, sdk_version: &str) -> std::path::PathBuf {
    let versions = ["openhands_agent_server", "openhands_sdk", "openhands_tools", "openhands_workspace"]
        .map(|name| (name, if name == "openhands_sdk" { sdk_version } else { SERVER_VERSION }));
    let executable = install_distributions(directory, &versions).unwrap();
    for name in ["python", "python3", "fake-agent-server"] {
        let path = directory.join("bin").join(name);
        fs::remove_file(&path).unwrap();
        fs::write(&path, format!("#!/bin/sh\necho ran >> {}\nexit 9\n", directory.join("ran").display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    executable
}

#[test]
fn the_version_of_an_own_executable_is_read_without_running_it() {
    let directory = tempfile::Builder::new().prefix("gp-").tempdir().unwrap();
    let root = directory.path().join("other");
    let executable = environment(&root, "1.39.0");
    let scene = Scene::with(|setup| *setup = setup.clone().with_executable(&executable));
    let request = json!({"workspace": scene.workspace()});
    let reply = scene.client().post("/v1/sessions", &request).unwrap();
    assert_eq!(refusal_code(&reply), "version_mismatch");
    let detail = reply.body["detail"].as_str().unwrap();
    assert!(
        detail.contains("openhands-sdk") && detail.contains("1.39.0") && detail.contains(SERVER_VERSION),
        "{detail}"
    );
    assert!(scene.status().installed.is_some());
    scene.client().get("/v1/probe").unwrap().expect_status(200).unwrap();
    for command in [&["server", "list"][..], &["server", "verify"], &["status"]] {
        assert_ne!(scene.home().run(command).unwrap().code, None, "{command:?}");
    }
    assert!(!root.join("ran").exists(), "something ran the executable to learn its version");
    scene.finish();

    // The mark works: with the reviewed versions it is run, as a server.
    let root = directory.path().join("same");
    let executable = environment(&root, SERVER_VERSION);
    let scene = Scene::with(|setup| *setup = setup.clone().with_executable(&executable));
    let reply = scene.client().post("/v1/sessions", &json!({"workspace": scene.workspace()})).unwrap();
    assert_eq!(refusal_code(&reply), "server_start_failed");
    assert_eq!(fs::read_to_string(root.join("ran")).unwrap(), "ran\n");
    scene.finish();
}
