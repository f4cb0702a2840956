//! Requests of a proper form that do not fit what is so.

use super::stage::{SESSION, Stage};
use gatepost_tests::refusal_code;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

/// A name for each row, the path, the body (`None` is a GET), the status and the code.
type Row = (&'static str, String, Option<Value>, u16, &'static str);

const STRANGER: &str = "00000000-0000-4000-8000-00000000dead";
const NO_APPROVAL: &str = "00000000000000000000000000000000000000000000000000000000000000aa";

fn action(operation: &str, input: &Value, generation: Option<u64>, id: &str) -> Value {
    let mut body = json!({"operation_id": operation, "input": input, "client_action_id": id});
    if let Some(generation) = generation {
        body["capability_generation"] = json!(generation);
    }
    body
}

fn rows(stage: &Stage) -> Vec<Row> {
    let now = stage.session.snapshot().capability_generation;
    let mine = format!("/v1/sessions/{SESSION}/actions");
    let act = |operation: &str, input: Value| Some(action(operation, &input, Some(now), "never"));
    let decide = |approval_id: &str, decision: &str| json!({"approval_id": approval_id, "decision": decision});
    let home = stage.scene.home();
    let path = |below: &str| home.path().join(below).to_string_lossy().into_owned();
    symlink(home.path().join("home"), home.workspace_root().join("out")).unwrap();
    std::fs::write(home.workspace_root().join("file"), "no directory").unwrap();
    let start = |workspace: String| Some(json!({"workspace": workspace}));
    let session = |below: &str| format!("/v1/sessions/{STRANGER}{below}");
    let title = json!({"title": "t"});
    vec![
        (
            "no generation",
            mine.clone(),
            Some(action("session.title.set", &title, None, "never")),
            422,
            "generation_missing",
        ),
        (
            "an old generation",
            mine.clone(),
            Some(action("session.title.set", &title, Some(0), "never")),
            409,
            "generation_stale",
        ),
        (
            "a later generation",
            mine.clone(),
            Some(action("session.title.set", &title, Some(now + 1), "never")),
            409,
            "generation_stale",
        ),
        (
            "a prompt over a waiting batch",
            mine.clone(),
            act("session.prompt.send", json!({"text": "say: no"})),
            409,
            "approval_pending",
        ),
        ("a resume over a waiting batch", mine.clone(), act("session.resume", json!({})), 409, "approval_pending"),
        ("a compaction over a waiting batch", mine.clone(), act("session.compact", json!({})), 409, "approval_pending"),
        (
            "an accept of nothing offered",
            mine.clone(),
            act("session.approval.decide", decide(NO_APPROVAL, "accept")),
            404,
            "approval_not_found",
        ),
        (
            "a reject of nothing offered",
            mine.clone(),
            act("session.approval.decide", decide(NO_APPROVAL, "reject")),
            404,
            "approval_not_found",
        ),
        (
            "a rewind to an action",
            mine.clone(),
            act("session.rewind", json!({"event_id": pending_event(stage)})),
            422,
            "not_a_safe_point",
        ),
        (
            "a rewind to an event of nowhere",
            mine.clone(),
            act("session.rewind", json!({"event_id": STRANGER})),
            422,
            "not_a_safe_point",
        ),
        (
            "a fork onto a session that stands",
            mine.clone(),
            act("session.fork", json!({"session_id": SESSION})),
            409,
            "session_exists",
        ),
        (
            "a model that nobody reviewed",
            mine.clone(),
            act("session.model.set", json!({"model": "openai/other"})),
            422,
            "model_not_reviewed",
        ),
        (
            "an action on a stranger",
            session("/actions"),
            act("session.title.set", title.clone()),
            404,
            "session_not_found",
        ),
        (
            "an interrupt of a stranger",
            session("/actions"),
            Some(action("session.turn.interrupt", &json!({}), None, "never")),
            404,
            "session_not_found",
        ),
        (
            "a provider read of an unknown place",
            "/v1/actions".into(),
            Some(action("provider.auth.read", &json!({"workspace": path("nowhere")}), None, "never")),
            422,
            "workspace_not_found",
        ),
        ("a stranger", session(""), None, 404, "session_not_found"),
        ("events of a stranger", session("/events"), None, 404, "session_not_found"),
        ("approvals of a stranger", session("/approvals"), None, 404, "session_not_found"),
        ("the attestation of a stranger", session("/attestation"), None, 404, "session_not_found"),
        (
            "an approval that was never offered",
            format!("/v1/sessions/{SESSION}/approvals/{NO_APPROVAL}"),
            None,
            404,
            "approval_not_found",
        ),
        ("a receipt that was never written", "/v1/actions/never".into(), None, 404, "action_not_found"),
        ("a workspace outside the roots", "/v1/sessions".into(), start(path("home")), 422, "workspace_outside_roots"),
        ("a link out of the roots", "/v1/sessions".into(), start(path("src/out")), 422, "workspace_outside_roots"),
        (
            "a way up out of the roots",
            "/v1/sessions".into(),
            start(path("src/work/../../home")),
            422,
            "workspace_outside_roots",
        ),
        ("the root of everything", "/v1/sessions".into(), start("/".into()), 422, "workspace_outside_roots"),
        (
            "a workspace that is not there",
            "/v1/sessions".into(),
            start(path("src/nowhere")),
            422,
            "workspace_not_found",
        ),
        ("a workspace that is a file", "/v1/sessions".into(), start(path("src/file")), 422, "workspace_not_found"),
        (
            "the same id in another workspace",
            "/v1/sessions".into(),
            Some(json!({"workspace": path("src"), "session_id": SESSION})),
            409,
            "session_exists",
        ),
        (
            "attaching outside the roots",
            "/v1/sessions/attach".into(),
            Some(json!({"workspace": path("home"), "conversation_id": STRANGER})),
            422,
            "workspace_outside_roots",
        ),
        (
            "attaching to nothing",
            "/v1/sessions/attach".into(),
            Some(json!({"workspace": path("src/work"), "conversation_id": STRANGER})),
            404,
            "conversation_not_found",
        ),
    ]
}

fn pending_event(stage: &Stage) -> String {
    stage.session.pending().unwrap().actions[0].event_id.clone()
}

#[test]
fn each_request_that_does_not_fit_is_refused_and_nothing_comes_of_it() {
    let stage = Stage::new();
    let rows = rows(&stage);
    let before = stage.standing();
    let mut wrong = Vec::new();
    for (name, path, body, status, code) in &rows {
        let client = stage.scene.client();
        let reply = body.as_ref().map_or_else(|| client.get(path), |body| client.post(path, body)).unwrap();
        if (reply.status, reply.body["code"].as_str()) != (*status, Some(*code)) {
            wrong.push(format!("{name}: {} {}, not {status} {code}", reply.status, reply.text));
        }
        if reply.body["code"] == "generation_stale" && !reply.body["capability_generation"].is_u64() {
            wrong.push(format!("{name}: does not name the current generation: {}", reply.text));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    stage.nothing_came_of_it(&before);
    stage.finish();
}

/// A refusal before the intent does not use the key; a receipt does, for ever and for exactly its content.
#[test]
fn a_key_is_used_by_a_receipt_and_not_by_a_refusal() {
    let stage = Stage::new();
    let session = &stage.session;
    let ask = |title: &str, generation: u64| {
        session.request("session.title.set", &json!({"title": title}), Some(generation), "one-key")
    };
    let now = session.snapshot().capability_generation;
    assert_eq!(refusal_code(&ask("first", now + 9)), "generation_stale");
    assert_eq!(ask("first", now).status, 200);
    let again = ask("first", 0);
    assert_eq!((again.status, &again.body["replayed"]), (200, &json!(true)), "{}", again.text);
    let other = ask("second", now);
    assert_eq!((other.status, refusal_code(&other).as_str()), (422, "client_action_id_reused"));
    let elsewhere = session.request("session.turn.interrupt", &json!({}), None, "one-key");
    assert_eq!(refusal_code(&elsewhere), "client_action_id_reused");
    assert_eq!(session.snapshot().title.as_deref(), Some("first"));
    stage.marker.assert_absent();
    stage.finish();
}

/// A cursor of another session, and one of nobody, start over and say so.
#[test]
fn a_foreign_cursor_starts_over_and_says_so() {
    let stage = Stage::new();
    let other = stage.scene.session();
    let foreign = other.snapshot().cursor;
    let page = stage.session.page(Some(&foreign), 10, std::time::Duration::ZERO);
    assert_eq!(page.resync.unwrap().reason, "foreign_cursor");
    assert_eq!(page.events.first().unwrap().seq, 1);
    stage.finish();
}
