//! Who may not speak at all.

use super::stage::Stage;
use api_types::ReceiptState;
use gatepost_tests::Faked;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use testkit::daemon::UNPRIVILEGED_USER;
use testkit::fake_server::Plan;

/// Another user gets not a byte, not even with the owner's token, and not even when every file mode lets it in.
#[test]
fn another_user_is_refused_before_a_byte_is_read() {
    let stage = Stage::new();
    let before = stage.standing();
    let socket = stage.scene.home().socket();
    let own = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((own(&socket), own(socket.parent().unwrap())), (0o600, 0o700));
    if rustix::process::getuid().is_root() {
        for path in socket.ancestors().take_while(|path| path.starts_with(stage.scene.home().path())) {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        let stranger = stage.scene.client().clone().as_user(UNPRIVILEGED_USER).with_timeout(Duration::from_secs(10));
        let mut stream = stranger.connect().unwrap();
        let mut received = Vec::new();
        let ended = stream.read_to_end(&mut received);
        assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
        assert_eq!(received, b"", "the connection was answered");
        // What it sends goes nowhere.
        drop(stream.write_all(b"GET /v1/healthz HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(stranger.get("/v1/status").is_err());
        let log = stage.scene.daemon().log().unwrap();
        assert!(log.contains(&format!("belongs to user {UNPRIVILEGED_USER}")), "{log}");
    }
    stage.nothing_came_of_it(&before);
    stage.finish();
}

#[test]
fn a_wrong_token_reads_and_does_nothing() {
    let stage = Stage::new();
    let before = stage.standing();
    let owner = stage.scene.home().owner_token().unwrap();
    let mut wrong =
        [owner.to_uppercase(), owner[..owner.len() - 1].to_owned(), format!("{owner}0"), "owner".to_owned()];
    wrong[0].make_ascii_uppercase();
    for token in &wrong {
        let client = stage.scene.client().clone().with_token(token);
        for path in ["/v1/status", "/v1/sessions", "/v1/catalog", "/v1/probe", &stage.session.path("")] {
            let reply = client.get(path).unwrap();
            assert_eq!((reply.status, reply.body["code"].as_str()), (401, Some("unauthenticated")), "{path}");
        }
        let session = stage.session.with_client(client);
        let accept = serde_json::json!({"approval_id": stage.approval_id, "decision": "accept"});
        let reply = session.request("session.approval.decide", &accept, Some(1), "stolen");
        assert_eq!((reply.status, reply.body["code"].as_str()), (401, Some("unauthenticated")));
        assert_eq!(session.close(true).status, 401);
    }
    stage.nothing_came_of_it(&before);
    stage.finish();
}

/// Connections from each side.
const ROUNDS: usize = 400;

/// Below an approved command: processes in every way (directly, below a parent that is gone, in a session of their own), half
/// of which do not wait for an answer. Says how many asked, and how many were answered a byte.
const SWARM: &str = r#"
import os, socket, sys
path, rounds = sys.argv[1], int(sys.argv[2])
read, write = os.pipe()
def ask(waits):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        os.write(write, b"a")
        try:
            connection.sendall(b"GET /v1/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            if waits and connection.recv(1):
                os.write(write, b"!")
        except ConnectionError:
            pass
for round in range(rounds):
    if not os.fork():
        if round // 2 % 2:
            if os.fork():
                os._exit(0)
            os.setsid()
        ask(round % 2)
        os._exit(0)
    if round % 8 == 7:
        for _ in range(8):
            os.wait()
os.close(write)
said = b"".join(iter(lambda: os.read(read, 4096), b""))
print("asked", said.count(b"a"), "answered", said.count(b"!"))
"#;

/// Processes of an approved command and others knock at once: none of the former is answered, each of the latter is. Nor does
/// the command line help a command.
#[test]
fn of_many_that_knock_at_once_descendants_alone_are_refused() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let (session, socket) = (scene.session(), scene.home().socket());
    let program = scene.workspace().join("swarm.py");
    fs::write(&program, SWARM).unwrap();
    let command = format!("run: python3 {} {} {ROUNDS}", program.display(), socket.display());
    let approval = session.propose(&command);
    let before = scene.status().refused_peers.count;
    let reply = session.accept_as(&approval.approval_id, "swarm");
    assert!(reply.status < 300, "{}", reply.text);
    for _ in 0..ROUNDS {
        assert_eq!(scene.client().get("/v1/healthz").unwrap().status, 200);
    }
    assert_eq!(session.wait_final("swarm").state, ReceiptState::Applied);
    session.wait_quiet();
    let results = serde_json::Value::from(session.results_of(&approval.actions[0].event_id)).to_string();
    assert!(results.contains(&format!("asked {ROUNDS} answered 0")), "{results}");
    let refused = scene.status().refused_peers;
    assert_eq!(refused.count - before, ROUNDS as u64);
    assert!(refused.last_code.is_some());

    let (binary, state) = (testkit::daemon::gatepost_binary().unwrap(), scene.home().state());
    let command = format!("run: {} status --json --state-dir {}; echo exit $?", binary.display(), state.display());
    let approval = session.propose(&command);
    session.approve_to_end(&approval);
    let results = serde_json::Value::from(session.results_of(&approval.actions[0].event_id)).to_string();
    assert!(results.contains("no_reply") && results.contains("exit 1"), "{results}");
    scene.finish();
}
