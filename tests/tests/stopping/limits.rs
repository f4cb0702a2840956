//! At most so many servers: an idle one makes room. With a server that is fast to start.

use crate::left::runs;
use crate::server_of;
use gatepost_tests::{Scene, refusal_code};
use serde_json::json;
use std::path::Path;
use testkit::daemon::SERVER_VERSION;
use testkit::fake_server;

#[test]
fn at_the_limit_an_idle_server_makes_room_and_a_busy_one_does_not() {
    let directory = tempfile::Builder::new().prefix("gp-").tempdir().unwrap();
    let executable = fake_server::install(&directory.path().join("env"), SERVER_VERSION).unwrap();
    let scene = Scene::with(|setup| {
        *setup = setup.clone().with_executable(&executable);
        setup.agent_server = "max_servers = 2\n".to_owned();
    });
    let further = |name: &str| scene.home().new_workspace(name).unwrap().canonicalize().unwrap();
    let (first, second, third) = (scene.workspace(), further("second"), further("third"));
    let pid = |workspace: &Path| server_of(&scene, workspace).pid;
    let (in_first, in_second) = (scene.session_in(&first), scene.session_in(&second));
    let (idle, busy) = (pid(&first).unwrap(), pid(&second).unwrap());
    let waits_in_second = in_second.propose("run: echo waits");

    // The idle one is stopped for a third; the other stays as it is.
    let in_third = scene.session_in(&third);
    assert!(!runs(idle), "three servers run");
    assert_eq!((pid(&first), pid(&second)), (None, Some(busy)));
    assert_eq!(in_second.pending().unwrap().approval_id, waits_in_second.approval_id);

    // Both are busy, each with a batch that waits: the first workspace gets no server, and its session says why.
    let _waits_in_third = in_third.propose("run: echo waits");
    let other = pid(&third);
    assert_eq!(in_first.snapshot().blocked_reason.unwrap().code, "server_limit");
    let reply = scene.client().post("/v1/sessions", &json!({"workspace": first})).unwrap();
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (503, "server_limit"));
    assert!(reply.header("retry-after").is_some());
    assert_eq!((pid(&second), pid(&third)), (Some(busy), other));

    // Decided: that one is idle, and makes room.
    in_second.reject(&waits_in_second);
    in_second.wait_quiet();
    assert_eq!(in_first.snapshot().blocked_reason, None);
    assert!(!runs(busy));
    assert_eq!((pid(&second), pid(&third)), (None, other));
    assert!(pid(&first).is_some());
    scene.finish();
}
