//! Requests whose form is wrong.

use super::exchange::send;
use super::stage::Stage;
use crate::table;
use std::time::Duration;

#[test]
fn each_malformed_request_is_refused_and_nothing_comes_of_it() {
    let stage = Stage::new();
    let owner = stage.scene.home().owner_token().unwrap();
    let client = stage.scene.client().clone().with_timeout(Duration::from_secs(20));
    let before = stage.standing();
    let mut wrong = Vec::new();
    let mut count = 0;
    for request in table::all() {
        count += 1;
        let Some(refused) = send(&client, &request.bytes(&owner)) else {
            wrong.push(format!("{}: no reply", request.name));
            continue;
        };
        if refused.status != request.status || refused.code() != request.code {
            wrong.push(format!("{}: {refused:?}, not {} {:?}", request.name, request.status, request.code));
        } else if request.code.is_some() && !refused.head.contains("content-type: application/problem+json") {
            wrong.push(format!("{}: no problem: {refused:?}", request.name));
        }
    }
    assert!(count >= 60, "only {count} rows");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    stage.nothing_came_of_it(&before);
    // No row used its key up.
    for action_id in ["a1", "a2", "x"] {
        let reply = stage.scene.client().get(&format!("/v1/actions/{action_id}")).unwrap();
        assert_eq!((reply.status, reply.body["code"].as_str()), (404, Some("action_not_found")), "{action_id}");
    }
    let log = stage.scene.daemon().log().unwrap();
    assert!(!log.contains("panicked"), "{log}");
    stage.finish();
}
