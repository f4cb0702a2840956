//! Who may not speak at all.

use super::stage::Stage;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use testkit::daemon::UNPRIVILEGED_USER;

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
