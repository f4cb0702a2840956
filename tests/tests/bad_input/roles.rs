//! What each token may do, over every endpoint and every operation there is, and the life of a token.

use super::stage::Stage;
use api::routes::Endpoint;
use rules::operation::OperationId;
use rules::role::Role;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use testkit::daemon::{Client, Home, Setup};

/// A session that does not exist: who may act on it is told so, and nothing comes of it.
const NOWHERE: &str = "/v1/sessions/00000000-0000-4000-8000-00000000dead";

/// Who may. Said here a second time on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Who {
    Anyone,
    AnyToken,
    OneOf(&'static [Role]),
    Owner,
}

/// What a token is.
#[derive(Clone, PartialEq, Debug)]
enum Holder {
    None,
    Owner,
    Roles(Vec<Role>),
}

impl Who {
    fn includes(self, holder: &Holder) -> bool {
        match (self, holder) {
            (Self::Anyone, _) | (_, Holder::Owner) => true,
            (_, Holder::None) | (Self::Owner, Holder::Roles(_)) => false,
            (Self::AnyToken, Holder::Roles(_)) => true,
            (Self::OneOf(roles), Holder::Roles(held)) => held.iter().any(|role| roles.contains(role)),
        }
    }
}

struct Asked {
    what: String,
    method: &'static str,
    path: String,
    body: Option<Value>,
    who: Who,
}

const OPERATOR: Who = Who::OneOf(&[Role::Operator]);
const APPROVER: Who = Who::OneOf(&[Role::Approver]);
const EITHER: Who = Who::OneOf(&[Role::Operator, Role::Approver]);

/// Each operation with an input that is valid.
fn inputs(operation: OperationId) -> Vec<(Value, Who)> {
    let digest = "ab".repeat(32);
    match operation {
        OperationId::PromptSend => vec![(json!({"text": "x"}), OPERATOR)],
        OperationId::TurnInterrupt => vec![(json!({}), EITHER)],
        OperationId::ApprovalDecide => vec![
            (json!({"approval_id": digest, "decision": "accept"}), APPROVER),
            (json!({"approval_id": digest, "decision": "reject"}), EITHER),
        ],
        OperationId::Fork | OperationId::Resume | OperationId::Compact => vec![(json!({}), OPERATOR)],
        OperationId::Rewind => vec![(json!({"event_id": "0b23a082-3c53-4ae3-98a6-3fb16b88db40"}), OPERATOR)],
        OperationId::ModelSet => vec![(json!({"model": "m"}), OPERATOR)],
        OperationId::TitleSet => vec![(json!({"title": "t"}), OPERATOR)],
        OperationId::BlockAcknowledge => vec![(json!({"block_id": digest}), Who::Owner)],
        OperationId::ProviderAuthRead
        | OperationId::ProviderConfigRead
        | OperationId::ProviderUsageRead
        | OperationId::ProviderDiagnosticsRead => vec![(json!({}), Who::AnyToken)],
    }
}

fn operations() -> Vec<Asked> {
    let mut asked = Vec::new();
    for entry in rules::catalog::describe() {
        let id = entry.operation_id.as_str();
        for (input, who) in inputs(entry.operation_id) {
            let mut body = json!({"operation_id": id, "input": input});
            let of_provider = id.starts_with("provider.");
            if !of_provider {
                body["capability_generation"] = json!(1);
            }
            let path = if of_provider { "/v1/actions".to_owned() } else { format!("{NOWHERE}/actions") };
            asked.push(Asked { what: format!("{id} {input}"), method: "POST", path, body: Some(body), who });
        }
    }
    asked
}

fn endpoint(endpoint: Endpoint) -> Option<Asked> {
    let path = endpoint.template().replace("/v1/sessions/{session_id}", NOWHERE);
    let path = path.replace("{approval_id}", &"ab".repeat(32)).replace("{client_action_id}", "a");
    let asked = |path: String, body: Option<Value>, who: Who| {
        let method = match endpoint.method().as_str() {
            "GET" => "GET",
            "POST" => "POST",
            "DELETE" => "DELETE",
            other => panic!("{other} is used nowhere"),
        };
        Some(Asked { what: format!("{endpoint:?} {path}"), method, path, body, who })
    };
    match endpoint {
        Endpoint::Healthz | Endpoint::Readyz | Endpoint::OpenApi => asked(path, None, Who::Anyone),
        Endpoint::Status
        | Endpoint::Probe
        | Endpoint::Catalog
        | Endpoint::SessionList
        | Endpoint::SessionShow
        | Endpoint::ApprovalList
        | Endpoint::ReceiptShow
        | Endpoint::Events
        | Endpoint::Attestation
        | Endpoint::Audit
        | Endpoint::AuditVerification => asked(path, None, Who::AnyToken),
        Endpoint::ApprovalShow => asked(format!("{path}?full=true"), None, APPROVER),
        Endpoint::SessionCreate => asked(path, Some(json!({"workspace": "/nowhere"})), OPERATOR),
        Endpoint::SessionAttach => {
            let conversation = "00000000-0000-4000-8000-00000000dead";
            asked(path, Some(json!({"workspace": "/nowhere", "conversation_id": conversation})), OPERATOR)
        }
        Endpoint::SessionClose => asked(path, None, OPERATOR),
        Endpoint::TokenList => asked(path, None, Who::Owner),
        Endpoint::TokenCreate => asked(path, Some(json!({"name": "-", "roles": ["approver"]})), Who::Owner),
        Endpoint::TokenRevoke => asked(path.replace("{token_name}", "nobody"), None, Who::Owner),
        // Operation by operation, above.
        Endpoint::SessionAct | Endpoint::ProviderAct => None,
    }
}

/// Makes a token with the command line, as its user's file.
fn make_token(home: &Home, name: &str, roles: &str) -> String {
    let made = home.run(&["token", "create", "--name", name, "--role", roles]).unwrap();
    assert_eq!(made.code, Some(0), "{made:?}");
    made.stdout.trim_end().to_owned()
}

#[test]
fn each_set_of_roles_does_what_is_its_own_and_nothing_else() {
    let home = Home::new(Setup::without_server()).unwrap();
    let daemon = home.serve().unwrap();
    let mut holders: Vec<(Holder, Client)> = vec![
        (Holder::None, daemon.client().clone().without_token()),
        (Holder::None, daemon.client().clone().with_token("gatepost_unknown")),
        (Holder::Owner, daemon.client().clone()),
    ];
    for bits in 1..8_u8 {
        let roles: Vec<Role> =
            Role::ALL.into_iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, role)| role).collect();
        let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        let token = make_token(&home, &format!("of-{bits}"), &names.join(","));
        holders.push((Holder::Roles(roles), daemon.client().clone().with_token(&token)));
    }
    let all: Vec<Asked> = Endpoint::ALL.into_iter().filter_map(endpoint).chain(operations()).collect();
    let mut number = 0;
    for asked in &all {
        for (holder, client) in &holders {
            number += 1;
            let mut body = asked.body.clone();
            if let Some(body) = body.as_mut().filter(|body| body["operation_id"].is_string()) {
                body["client_action_id"] = json!(format!("a{number}"));
            }
            let reply = match (asked.method, &body) {
                ("POST", Some(body)) => client.post(&asked.path, body),
                ("DELETE", _) => client.delete(&asked.path),
                _ => client.get(&asked.path),
            };
            let reply = reply.unwrap();
            let what = format!("{} as {holder:?}: {} {}", asked.what, reply.status, reply.text);
            let (status, code) = (reply.status, reply.body["code"].as_str());
            if asked.who.includes(holder) {
                assert!(![401, 403].contains(&status), "{what}");
            } else if *holder == Holder::None {
                assert_eq!((status, code), (401, Some("unauthenticated")), "{what}");
            } else {
                assert_eq!((status, code), (403, Some("not_permitted")), "{what}");
            }
        }
    }
    daemon.stop().unwrap();
}

/// A back end that may only prompt cannot approve, one that may only approve cannot prompt; what was revoked is out at once
/// and stays out; and no token stands anywhere.
#[test]
fn a_token_does_its_part_until_it_is_revoked_and_is_kept_nowhere() {
    let mut stage = Stage::new();
    let home = stage.scene.home();
    let token_of = |name: &str, roles: &str| make_token(home, name, roles);
    let tokens = [token_of("desktop", "operator"), token_of("phone", "approver"), token_of("monitor", "observer")];
    let [desktop, phone, monitor] =
        tokens.each_ref().map(|token| stage.session.with_client(stage.scene.client().clone().with_token(token)));
    let before = stage.standing();
    for session in [&desktop, &monitor] {
        assert_eq!(gatepost_tests::refusal_code(&session.ask_accept(&stage.approval_id)), "not_permitted");
    }
    for session in [&phone, &monitor] {
        assert_eq!(session.refused("session.prompt.send", &json!({"text": "say: no"})), "not_permitted");
    }
    stage.nothing_came_of_it(&before);
    let file = home.path().join("desktop.token");
    write_token(&file, &tokens[0]);
    let named = file.to_str().unwrap();
    let refused = home.run(&["approve", stage.session.id(), &stage.approval_id, "--token-file", named]).unwrap();
    assert_eq!(refused.code, Some(5), "{refused:?}");
    let refused = home.run(&["token", "list", "--token-file", named]).unwrap();
    assert_eq!(refused.code, Some(5), "{refused:?}");
    stage.nothing_came_of_it(&before);
    let taken = home.run(&["token", "create", "--name", "phone", "--role", "operator"]).unwrap();
    assert_eq!(taken.code, Some(6), "{taken:?}");

    let mut stream = listen(&desktop, "Accept: text/event-stream\r\n", "");
    let cursor = desktop.page(None, 500, Duration::ZERO).next_cursor;
    let mut poll = listen(&desktop, "", &format!("?wait_ms=60000&after={cursor}"));
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    let revoked = home.run(&["token", "revoke", "--name", "desktop", "--json"]).unwrap();
    assert_eq!((revoked.code, &revoked.json()["name"]), (Some(0), &json!("desktop")), "{revoked:?}");
    for ended in [&mut stream, &mut poll] {
        let mut said = String::new();
        ended.read_to_string(&mut said).unwrap();
        assert!(said.contains("unauthenticated"), "{said}");
    }
    assert_eq!(desktop.client().get("/v1/status").unwrap().status, 401);
    let refused = home.run(&["status", "--token-file", named, "--json"]).unwrap();
    assert_eq!((refused.code, &refused.json()["error"]["code"]), (Some(5), &json!("unauthenticated")), "{refused:?}");
    let listed = home.run(&["token", "list", "--json"]).unwrap();
    let listed_json = listed.json();
    let names: Vec<(&str, bool)> = listed_json["tokens"].as_array().unwrap().iter().map(seen).collect();
    assert_eq!(names, [("desktop", false), ("phone", true), ("monitor", true)]);
    assert!(tokens.iter().all(|token| !listed.stdout.contains(&token[9..])));

    fs::remove_file(&file).unwrap();
    stage.scene.restart();
    assert_eq!(desktop.client().get("/v1/status").unwrap().status, 401);
    let receipt = phone.ask_accept(&phone.wait_pending().approval_id);
    assert!(receipt.status < 300, "{}", receipt.text);
    phone.wait_quiet();
    stage.marker.assert_runs(1);
    let audit = stage.scene.client().get("/v1/audit?limit=500").unwrap();
    for (kind, count) in [("\"kind\":\"token\"", 4), ("\"caller\":\"phone\"", 1)] {
        assert!(audit.text.matches(kind).count() >= count, "{kind}: {}", audit.text);
    }
    let (path, log) = (stage.scene.home().path().to_owned(), stage.scene.daemon().log().unwrap());
    for token in &tokens {
        assert!(!log.contains(&token[9..]), "a token is in the log");
        assert_eq!(holding(&path, &token.as_bytes()[9..]), [] as [std::path::PathBuf; 0]);
    }
    stage.finish();
}

fn seen(token: &Value) -> (&str, bool) {
    (token["name"].as_str().unwrap(), token["revoked_at"].is_null())
}

fn write_token(file: &Path, token: &str) {
    fs::write(file, token).unwrap();
    fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
}

/// An open request for events.
fn listen(session: &gatepost_tests::Session, header: &str, query: &str) -> std::os::unix::net::UnixStream {
    let client = session.client().clone().with_timeout(gatepost_tests::LIMIT);
    let mut stream = client.connect().unwrap();
    let (name, value) = header.trim_end().split_once(": ").unwrap_or(("X", "y"));
    let request = client.written("GET", &session.path(&format!("/events{query}")), &[(name, value)], None);
    stream.write_all(&request).unwrap();
    stream
}

/// The files below a directory that hold these bytes.
fn holding(path: &Path, wanted: &[u8]) -> Vec<std::path::PathBuf> {
    let about = fs::symlink_metadata(path).unwrap();
    if about.is_dir() {
        return fs::read_dir(path).unwrap().flat_map(|entry| holding(&entry.unwrap().path(), wanted)).collect();
    }
    let holds = about.is_file() && fs::read(path).unwrap().windows(wanted.len()).any(|piece| piece == wanted);
    if holds { vec![path.to_owned()] } else { Vec::new() }
}
