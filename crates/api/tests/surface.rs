//! The surface as a client meets it, on a real socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/mod.rs"]
#[allow(dead_code, reason = "shared by several test programs")]
mod support;

use api::Limits;
use api::routes::Endpoint;
use serde_json::{Value, json};
use support::{APPROVAL, GENERATION, Request, Running, SESSION};

fn session(rest: &str) -> String {
    format!("/v1/sessions/{SESSION}{rest}")
}

fn prompt(text: &str) -> String {
    action("session.prompt.send", json!({ "text": text }))
}

fn action(operation: &str, input: Value) -> String {
    json!({"operation_id": operation, "input": input, "capability_generation": GENERATION, "client_action_id": "a1"})
        .to_string()
}

/// Method, path, body and expected status of a request that each endpoint grants.
fn granted(endpoint: Endpoint) -> (String, Option<String>, u16) {
    let get = |path: &str| (path.to_owned(), None, 200);
    match endpoint {
        Endpoint::Readyz => ("/v1/readyz".into(), None, 503),
        Endpoint::SessionCreate => ("/v1/sessions".into(), Some(json!({"workspace": "/w"}).to_string()), 201),
        Endpoint::SessionAttach => {
            let body = json!({"workspace": "/w", "conversation_id": SESSION});
            ("/v1/sessions/attach".into(), Some(body.to_string()), 200)
        }
        Endpoint::SessionAct => (session("/actions"), Some(prompt("queued")), 202),
        Endpoint::ProviderAct => {
            let body = json!({"operation_id": "provider.usage.read", "input": {}, "client_action_id": "a1"});
            ("/v1/actions".into(), Some(body.to_string()), 200)
        }
        Endpoint::ReceiptShow => ("/v1/actions/a1".into(), None, 404),
        Endpoint::SessionShow | Endpoint::SessionClose => get(&session("")),
        Endpoint::ApprovalList => get(&session("/approvals")),
        Endpoint::ApprovalShow => get(&session(&format!("/approvals/{APPROVAL}?full=true"))),
        Endpoint::Events => get(&session("/events")),
        Endpoint::Attestation => get(&session("/attestation")),
        Endpoint::TokenCreate => {
            ("/v1/tokens".into(), Some(json!({"name": "a", "roles": ["operator"]}).to_string()), 201)
        }
        Endpoint::TokenRevoke => ("/v1/tokens/a".into(), None, 404),
        Endpoint::Healthz
        | Endpoint::OpenApi
        | Endpoint::Status
        | Endpoint::Probe
        | Endpoint::Catalog
        | Endpoint::SessionList
        | Endpoint::Audit
        | Endpoint::AuditVerification
        | Endpoint::TokenList => get(endpoint.template()),
    }
}

#[tokio::test]
async fn every_route_answers_as_it_is_described() {
    let running = Running::start(Limits::default());
    running.fake.publish(json!({"text": "hello"}));
    let description = running.send(&Request::get("/v1/openapi.json").token(None)).await.json();
    for endpoint in Endpoint::ALL {
        let (target, body, status) = granted(endpoint);
        let method = endpoint.method();
        let mut request = Request::get(&target).method(method.as_str());
        request.body = body.as_deref();
        let reply = running.send(&request).await;
        assert_eq!(reply.status, status, "{endpoint:?} {reply:?}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{endpoint:?}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{endpoint:?}");
        assert_eq!(reply.header("retry-after").is_some(), status == 503, "{endpoint:?}");
        let operation = &description["paths"][endpoint.template()][method.as_str().to_lowercase()];
        let described = &operation["responses"];
        let described = described.get(status.to_string()).unwrap_or(&described["default"]);
        let schema = &described["content"][reply.header("content-type").unwrap()]["schema"];
        assert!(schema.is_object(), "{endpoint:?}");
        matches(&description, schema, &reply.json(), &format!("{endpoint:?}"));
    }
}

/// A small reading of JSON Schema: references, types, properties, items, alternatives.
fn matches(description: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return matches(description, description.pointer(pointer).unwrap(), value, place);
    }
    if let Some(alternatives) = schema["oneOf"].as_array() {
        let fits = alternatives.iter().find(|one| (one["type"] == "null") == value.is_null());
        return matches(description, fits.unwrap_or_else(|| panic!("{place}: {value}")), value, place);
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().map(|one| one.as_str().unwrap()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return,
    };
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(types.contains(&actual), "{place}: {value} is not {types:?}");
    if let Some(values) = schema["enum"].as_array() {
        assert!(values.contains(value), "{place}: {value}");
    }
    if let (Some(properties), Some(object)) = (schema["properties"].as_object(), value.as_object()) {
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(object.contains_key(name.as_str().unwrap()), "{place}: no {name}");
        }
        for (name, inner) in object {
            let schema = properties.get(name).unwrap_or_else(|| panic!("{place}: {name} is not described"));
            matches(description, schema, inner, &format!("{place}.{name}"));
        }
    }
    for item in value.as_array().into_iter().flatten() {
        matches(description, &schema["items"], item, &format!("{place}[]"));
    }
}

#[tokio::test]
async fn health_readiness_and_description_need_no_token() {
    let running = Running::start(Limits::default());
    for (path, status) in [("/v1/healthz", 200), ("/v1/readyz", 503), ("/v1/openapi.json", 200)] {
        assert_eq!(running.send(&Request::get(path).token(None)).await.status, status, "{path}");
    }
    let ready = running.send(&Request::get("/v1/readyz").token(None)).await.json();
    let reason = json!({"code": "server_not_installed", "detail": "install it", "remedy": "`gatepost server install`"});
    assert_eq!(ready, json!({"ready": false, "reasons": [reason]}));
}

#[tokio::test]
async fn too_small_a_role_is_refused_before_any_effect() {
    let running = Running::start(Limits::default());
    let accept = action("session.approval.decide", json!({"approval_id": APPROVAL, "decision": "accept"}));
    let reject = action("session.approval.decide", json!({"approval_id": APPROVAL, "decision": "reject"}));
    let interrupt = action("session.turn.interrupt", json!({}));
    let prompt = prompt("x");
    let create = json!({"workspace": "/w"}).to_string();
    let attach = json!({"workspace": "/w", "conversation_id": SESSION}).to_string();
    let actions = session("/actions");
    let full = session(&format!("/approvals/{APPROVAL}?full=true"));
    let plain = session(&format!("/approvals/{APPROVAL}"));
    let own = session("");
    let token = json!({"name": "a", "roles": ["approver"]}).to_string();
    // Which of observer, operator and approver may.
    let table: Vec<(Request<'_>, [bool; 3])> = vec![
        (Request::post(&actions, &accept), [false, false, true]),
        (Request::post(&actions, &reject), [false, true, true]),
        (Request::post(&actions, &interrupt), [false, true, true]),
        (Request::post(&actions, &prompt), [false, true, false]),
        (Request::post("/v1/sessions", &create), [false, true, false]),
        (Request::post("/v1/sessions/attach", &attach), [false, true, false]),
        (Request::get(&own).method("DELETE"), [false, true, false]),
        (Request::get(&full), [false, false, true]),
        (Request::get(&plain), [true, true, true]),
        (Request::get("/v1/status"), [true, true, true]),
        (Request::get("/v1/sessions"), [true, true, true]),
        (Request::get("/v1/tokens"), [false, false, false]),
        (Request::post("/v1/tokens", &token), [false, false, false]),
        (Request::get("/v1/tokens/a").method("DELETE"), [false, false, false]),
    ];
    for (mut request, may) in table {
        for (token, may) in ["observer-token", "operator-token", "approver-token"].into_iter().zip(may) {
            let before = running.fake.calls().len();
            request.token = Some(token);
            let reply = running.send(&request).await;
            let what = format!("{} {} {:?} as {token}", request.method, request.target, request.body);
            if may {
                assert!(reply.status < 300, "{what}: {reply:?}");
                assert_eq!(running.fake.calls().len(), before + 1, "{what}");
            } else {
                assert_eq!((reply.status, reply.code().as_deref()), (403, Some("not_permitted")), "{what}");
                assert_eq!(running.fake.calls().len(), before, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_token_learns_nothing() {
    let running = Running::start(Limits::default());
    let missing = running.send(&Request::get("/v1/status").token(None)).await;
    let wrong = running.send(&Request::get("/v1/status").token(Some("observer-tokem"))).await;
    let said = |reply: &serde_json::Value| {
        let mut said = reply.as_object().unwrap().clone();
        // Each request has an id of its own.
        assert!(said.remove("request_id").is_some());
        said
    };
    assert_eq!(said(&missing.json()), said(&wrong.json()));
    assert_eq!(missing.json()["detail"], "a valid bearer token is required");
}

#[tokio::test]
async fn receipts_answer_200_when_final_and_202_before() {
    let running = Running::start(Limits::default());
    let actions = session("/actions");
    for (text, status, state) in [("x", 200, "applied"), ("queued", 202, "queued")] {
        let reply = running.send(&Request::post(&actions, &prompt(text))).await;
        assert_eq!((reply.status, &reply.json()["state"]), (status, &json!(state)));
    }
}

#[tokio::test]
async fn a_session_that_stands_already_is_200() {
    let running = Running::start(Limits::default());
    let again = json!({"workspace": "/w", "session_id": SESSION}).to_string();
    assert_eq!(running.send(&Request::post("/v1/sessions", &again)).await.status, 200);
}

#[tokio::test]
async fn a_conflict_names_the_current_generation() {
    let running = Running::start(Limits::default());
    let reply = running.send(&Request::post(&session("/actions"), &prompt("stale"))).await;
    assert_eq!(reply.status, 409);
    let problem = reply.json();
    assert_eq!(problem["code"], "generation_stale");
    assert_eq!(problem["capability_generation"], GENERATION);
    assert_eq!(problem["retryable"], false);
    assert_eq!(problem["title"], "Conflict");
}

#[tokio::test]
async fn the_header_carries_the_action_id_as_well() {
    let running = Running::start(Limits::default());
    let body = json!({"operation_id": "session.turn.interrupt", "input": {}}).to_string();
    let actions = session("/actions");
    let request = Request::post(&actions, &body).headers(&[("Idempotency-Key", "from-header")]);
    let reply = running.send(&request).await;
    assert_eq!((reply.status, &reply.json()["client_action_id"]), (200, &json!("from-header")));
    let same = action("session.turn.interrupt", json!({}));
    let request = Request::post(&actions, &same).headers(&[("Idempotency-Key", "a1")]);
    assert_eq!(running.send(&request).await.status, 200);
}

#[tokio::test]
async fn allow_names_the_methods_that_exist() {
    let running = Running::start(Limits::default());
    let reply = running.send(&Request::get(&session("")).method("PATCH")).await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, DELETE")));
    let head = running.send(&Request::get("/v1/sessions").method("HEAD")).await;
    assert_eq!((head.status, head.header("allow"), head.body.len()), (405, Some("GET, POST"), 0));
}

#[tokio::test]
async fn a_panic_is_a_500_and_the_next_request_is_served() {
    let running = Running::start(Limits::default());
    let mut connection = running.connect().await;
    connection.write(&Request::post(&session("/actions"), &prompt("panic")).bytes()).await;
    let reply = connection.reply(false).await.unwrap();
    assert_eq!((reply.status, reply.code().as_deref()), (500, Some("internal")));
    assert!(!String::from_utf8_lossy(&reply.body).contains("controller"));
    connection.write(&Request::get("/v1/status").bytes()).await;
    assert_eq!(connection.reply(false).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_refused_change_is_entered_with_what_was_found_valid_and_a_refused_read_is_not() {
    let running = Running::start(Limits::default());
    let post = |path: &str, body: String| {
        let path = path.to_owned();
        let running = &running;
        async move {
            let mut request = Request::get(&path).method("POST");
            request.body = Some(&body);
            assert!(running.send(&request).await.status >= 400);
        }
    };
    post(&session("/actions"), prompt("stale")).await;
    let unknown = json!({"operation_id": "session.explode", "input": {}, "client_action_id": "a2"});
    post(&session("/actions"), unknown.to_string()).await;
    post("/v1/sessions/nonsense/actions", prompt("x")).await;
    post("/v1/actions", "{".to_owned()).await;
    let bad_key = json!({"operation_id": "session.resume", "input": {}, "client_action_id": "a b"});
    post(&session("/actions"), bad_key.to_string()).await;
    assert_eq!(running.send(&Request::get("/v1/actions/a9")).await.status, 404);
    let mut stranger = Request::get("/v1/actions").method("POST").token(Some("nobody"));
    stranger.body = Some("{}");
    assert_eq!(running.send(&stranger).await.status, 401);
    let entered: Vec<_> = running
        .fake
        .refused()
        .into_iter()
        .map(|one| (one.request, one.caller, one.session_id, one.operation_id, one.client_action_id, one.code.as_str()))
        .collect();
    let on_session = "POST /v1/sessions/{session_id}/actions".to_owned();
    let (owner, here) = ("owner".to_owned(), Some(SESSION.to_owned()));
    let prompt = Some("session.prompt.send".to_owned());
    let key = |id: &str| Some(id.to_owned());
    assert_eq!(
        entered,
        [
            (on_session.clone(), owner.clone(), here.clone(), prompt, key("a1"), "generation_stale"),
            (on_session.clone(), owner.clone(), here.clone(), None, key("a2"), "unknown_operation"),
            (on_session.clone(), owner.clone(), None, None, None, "invalid_value"),
            ("POST /v1/actions".to_owned(), owner.clone(), None, None, None, "malformed_json"),
            (on_session, owner, here, None, None, "invalid_value"),
        ]
    );
}

#[tokio::test]
async fn the_chain_is_read_within_bounds() {
    let running = Running::start(Limits::default());
    let page = running.send(&Request::get("/v1/audit?after=7&limit=500")).await;
    assert_eq!((page.status, &page.json()["next_after"]), (200, &json!(8)));
    assert_eq!(running.send(&Request::get("/v1/audit")).await.status, 200);
    for bad in ["limit=0", "limit=501", "after=-1", "after=1000000000", "wait_ms=1"] {
        assert_eq!(running.send(&Request::get(&format!("/v1/audit?{bad}"))).await.status, 422, "{bad}");
    }
    assert_eq!(running.fake.calls(), ["audit 7 500", "audit 0 100"]);
    let found = running.send(&Request::get("/v1/audit/verification")).await.json();
    assert_eq!((&found["intact"], &found["broken"]["n"]), (&json!(false), &json!(3)));
}
