//! At most so many servers: an idle one makes room. With a server that is fast to start.

use crate::left::runs;
use crate::server_of;
use gatepost_tests::{Scene, refusal_code};
use serde_json::json;
use testkit::daemon::SERVER_VERSION;
use testkit::fake_server;

#[test]
fn at_the_limit_an_idle_server_makes_room_and_a_busy_one_does_not() {
    let directory = tempfile::Builder::new().prefix("gp-").tempdir().unwrap();
    let executable = fake_server::install(&directory.path().join("env"), SERVER_VERSION).unwrap();
    let scene = Scene::with(|setup| {
        *setup = setup.clone().with_executable(&executable);
        setup.agent_server = "max_servers = 1\n".to_owned();
    });
    let (first, second) = (scene.workspace(), scene.home().new_workspace("second").unwrap().canonicalize().unwrap());
    let in_first = scene.session_in(&first);
    let pid = server_of(&scene, &first).pid.unwrap();

    // Idle: it is stopped for the other.
    let in_second = scene.session_in(&second);
    assert!(!runs(pid), "two servers run");
    assert_eq!(server_of(&scene, &first).pid, None);
    let pid = server_of(&scene, &second).pid.unwrap();

    // Busy, with a batch that waits: the first workspace gets none, and its session says why.
    let batch = in_second.propose("run: echo waits");
    let snapshot = in_first.snapshot();
    assert_eq!(snapshot.blocked_reason.unwrap().code, "server_limit");
    let reply = scene.client().post("/v1/sessions", &json!({"workspace": first})).unwrap();
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (503, "server_limit"));
    assert!(reply.header("retry-after").is_some());
    assert_eq!(server_of(&scene, &second).pid, Some(pid));

    // Decided: it is idle again.
    in_second.reject(&batch);
    in_second.wait_quiet();
    assert_eq!(in_first.snapshot().blocked_reason, None);
    assert!(!runs(pid));
    assert!(server_of(&scene, &first).pid.is_some());
    scene.finish();
}
