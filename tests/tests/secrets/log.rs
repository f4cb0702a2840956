//! One id follows a request through its reply, its receipt and the log.

use std::collections::BTreeSet;

use gatepost_tests::{Faked, Scene, Session};
use serde_json::{Value, json};
use testkit::daemon::Reply;
use testkit::fake_server::Plan;

/// A prompt under this key, with these values of the header.
fn prompt(session: &Session, key: &str, ids: &[&str]) -> Reply {
    let generation = session.snapshot().capability_generation;
    let body = json!({"operation_id": "session.prompt.send", "input": {"text": "say: hello", "on_pending": "refuse"},
        "client_action_id": key, "capability_generation": generation});
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(ids.iter().map(|id| ("X-Request-Id", *id)));
    session.client().request("POST", &session.path("/actions"), &headers, Some(body.to_string().as_bytes())).unwrap()
}

fn logged(scene: &Scene) -> Vec<Value> {
    let log = scene.daemon().log().unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect()
}

#[test]
fn one_id_stands_in_reply_receipt_and_log() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene_with(|setup| {
        setup.tables = "[log]\nformat = \"json\"\nlevel = \"info,api=debug\"\n".to_owned();
    });
    let session = scene.session();
    let reply = prompt(&session, "one", &["ticket-17"]);
    assert!(reply.status < 300, "{}", reply.text);
    assert_eq!(reply.header("x-request-id"), Some("ticket-17"));
    assert_eq!(reply.body["request_id"], "ticket-17");

    // Asked again, and read: the receipt keeps the first call's, each reply has its own.
    let again = prompt(&session, "one", &["ticket-18"]);
    assert_eq!((again.header("x-request-id"), &again.body["request_id"]), (Some("ticket-18"), &json!("ticket-17")));
    let read = scene.client().get("/v1/actions/one").unwrap();
    let own = read.header("x-request-id").unwrap();
    assert!(own.len() == 32 && own.bytes().all(|byte| byte.is_ascii_hexdigit()), "{own}");
    assert_eq!(read.body["request_id"], "ticket-17");

    // What is no id is refused, under one of our own.
    let long = "x".repeat(65);
    for ids in [&["a b"][..], &[""], &["a/b"], &[&long], &["a", "b"]] {
        let refused = prompt(&session, "two", ids);
        assert_eq!((refused.status, &refused.body["code"]), (400, &json!("bad_request")), "{ids:?}");
        assert_eq!(refused.body["request_id"], json!(refused.header("x-request-id").unwrap()));
    }

    let about: Vec<Value> = logged(&scene).into_iter().filter(|line| line["request_id"] == "ticket-17").collect();
    let requests: Vec<&Value> = about.iter().filter(|line| line["message"] == "request").collect();
    assert_eq!(requests.len(), 1, "{about:?}");
    assert_eq!(requests[0]["fields"]["route"], "/v1/sessions/{session_id}/actions");
    // Every request has one, and no two the same.
    let ids: Vec<Value> = logged(&scene)
        .iter()
        .filter(|line| line["message"] == "request")
        .map(|line| line["request_id"].clone())
        .collect();
    let distinct: BTreeSet<&str> = ids.iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(distinct.len(), ids.len());

    scene.stop_daemon();
    scene.home_mut().reconfigure(|setup| setup.tables = String::new()).unwrap();
    scene.serve_again();
    let read = scene.client().get("/v1/actions/one").unwrap();
    assert_eq!(read.body["request_id"], "ticket-17", "it is kept");
    let span = format!("request{{request_id={}}}: api::service: request ", read.header("x-request-id").unwrap());
    assert!(scene.daemon().log().unwrap().contains(&span), "{span}");
    scene.finish();
}
