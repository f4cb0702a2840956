//! The description of the API is held to what the daemon does, and the daemon to the description, by a tool that is not ours.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

mod forwarder;
mod tool;

use gatepost_tests::Faked;
use serde_json::json;
use std::fs;
use testkit::daemon::workspace_root;
use testkit::fake_server::Plan;

/// The requests that are made depend on nothing else.
const SEED: &str = "20251130";
/// Requests that are made up for each operation, beside those that the description's bounds suggest.
const EXAMPLES: &str = "25";

/// The session that everything is tried on, the one that is closed, and the key of a receipt that stands.
const SESSION: &str = "0b23a082-3c53-4ae3-98a6-3fb16b880001";
const CLOSING: &str = "0b23a082-3c53-4ae3-98a6-3fb16b880002";
const ACTION: &str = "described-once";

/// Others can be tried.
fn seed() -> String {
    std::env::var("GATEPOST_SEED").unwrap_or_else(|_| SEED.to_owned())
}

#[test]
fn the_daemon_is_as_it_is_described() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    for id in [SESSION, CLOSING] {
        let session = scene.create(&json!({"workspace": scene.workspace(), "session_id": id}));
        assert_eq!(session.id(), id);
    }
    let titled = scene.take_up(SESSION).ask_as("session.title.set", &json!({"title": "Described"}), ACTION);
    assert_eq!(titled.status, 200, "{}", titled.text);

    let port = forwarder::start(&scene.home().socket());
    let directory = tempfile::tempdir().unwrap();
    let config = fs::read_to_string(workspace_root().join("tests/tests/openapi/schemathesis.toml")).unwrap();
    let config = config.replace("SESSION", SESSION).replace("CLOSING", CLOSING).replace("ACTION", ACTION);
    fs::write(directory.path().join("schemathesis.toml"), config).unwrap();
    let output = tool::command()
        .arg("run")
        .arg(workspace_root().join("docs/openapi.json"))
        .args(["--url", &format!("http://127.0.0.1:{port}")])
        // Not the phase that goes on from replies: what is sent there depends on how fast the daemon is.
        .args([
            "--phases",
            "coverage,fuzzing",
            "--seed",
            &seed(),
            "--max-examples",
            EXAMPLES,
            "--workers",
            "1",
            "--checks",
            "all",
        ])
        .args(["--header", &format!("Authorization: Bearer {}", scene.home().owner_token().unwrap())])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(said.contains("Tested: 23"), "not every operation was tried:\n{said}");
    scene.finish();
}
