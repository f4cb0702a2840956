//! Each call names a route of the contract, each route is used by a call, and each sends exactly what was reviewed.

use std::collections::BTreeSet;

use rules::gate::StepCause;
use serde_json::{Value, json};

use super::*;
use crate::setup::{LlmProfile, SetupClient};
use crate::testing::{Act, KEY, Received, SESSION, Server, changed, grant, json_answer, key, session, success};
use crate::{ProfileName, StreamItem};

const FORK: &str = "0a1b2c3d-2222-4222-8222-00000000000f";

fn conversation(id: &str) -> Value {
    json!({"id": id, "leaf_event_id": "e-1", "execution_status": "idle", "hook_config": null,
        "confirmation_policy": {"kind": "AlwaysConfirm"},
        "workspace": {"working_dir": "/w", "kind": "LocalWorkspace"}, "client_tools": [],
        "agent": {"kind": "Agent", "tools": [], "include_default_tools": [], "mcp_config": {}, "llm": {"model": "m"}}})
}

fn good_answer(request: &Received) -> Act {
    let profile = json!({"name": "gatepost", "api_key_set": true, "config": {"model": "m"}, "profile": {"id": "i",
        "revision": 3, "agent_kind": "openhands", "enable_sub_agents": false, "enable_switch_llm_tool": false},
        "valid": true, "errors": [], "llm_profile_resolved": true, "llm_api_key_set": true,
        "resolved_mcp_config_keys": []});
    let (method, target) = request.line().split_once(' ').unwrap();
    let conversation_path = format!("/api/conversations/{SESSION}");
    Act::Send(match target.split('?').next().unwrap().replace(&conversation_path, "C").as_str() {
        "/server_info" => json_answer(
            200,
            &json!({"title": "t", "version": "1", "sdk_version": "1", "tools_version": "1", "workspace_version": "1",
                "capabilities": [], "usable_tools": []}),
        ),
        "/api/conversations/count" => json_answer(200, &json!(0)),
        "/api/init" => json_answer(401, &json!({"detail": "no"})),
        "/api/conversations" => json_answer(201, &conversation(SESSION)),
        "C/fork" => json_answer(201, &conversation(FORK)),
        "C/navigate" => json_answer(200, &conversation(SESSION)),
        "C/events/search" => json_answer(200, &json!({"items": [], "next_page_id": null})),
        "C" if method == "GET" => json_answer(200, &conversation(SESSION)),
        path if path.starts_with("/api/profiles") || path.starts_with("/api/agent-profiles") => {
            let created = method == "POST" && !path.ends_with("/materialize");
            json_answer(if created { 201 } else { 200 }, &profile)
        }
        _ => success(),
    })
}

/// Makes every call there is, once.
async fn call_everything(client: &Client, setup: &SetupClient) {
    let (id, fork) = (session(), SessionId::parse(FORK).unwrap());
    let event = EventId::parse("e-1").unwrap();
    let name = ProfileName::parse("gatepost").unwrap();
    let profile_id = "0a1b2c3d-3333-4333-8333-00000000000f".to_owned();
    let new = NewConversation { id: id.clone(), workspace_dir: "/w".to_owned(), profile_id };
    let model_key = Secret::new("model-key".to_owned());
    let model = LlmProfile { model: "p/m", base_url: Some("http://127.0.0.1:9/v1"), api_key: Some(&model_key) };

    client.server_info().await.unwrap();
    assert_eq!(client.auth_probe(KeyKind::Right).await, Ok(200));
    assert_eq!(client.init_probe().await, Ok(401));
    client.conversation(&id).await.unwrap();
    client.events_page(&id, None).await.unwrap();
    assert!(client.create_conversation(&new).await.unwrap().is_new);
    client.set_policy(&id).await.unwrap();
    client.reject(&id, Some("no")).await.unwrap();
    client.interrupt(&id).await.unwrap();
    client.navigate(&id, &event).await.unwrap();
    client.fork(&id, &fork, &event, Some("f")).await.unwrap();
    client.set_title(&id, "t").await.unwrap();
    client.switch_profile(&id, &name).await.unwrap();
    client.delete(&id).await.unwrap();
    client.send_message(grant(SESSION, StepCause::Message), &id, "hi").await.unwrap();
    client.run(grant(SESSION, StepCause::Run), &id).await.unwrap();
    client.accept(grant(SESSION, StepCause::Accept), &id).await.unwrap();
    client.condense(grant(SESSION, StepCause::Condense), &id).await.unwrap();
    // The scripted server speaks no WebSocket; what matters here is that it was asked.
    assert!(client.open_stream(&id).await.is_err());
    setup.put_llm_profile(&name, &model).await.unwrap();
    setup.llm_profile_status(&name).await.unwrap().unwrap();
    setup.put_agent_profile(&name, &name, &["terminal".to_owned()]).await.unwrap();
    assert_eq!(setup.find_agent_profile(&name).await.unwrap().unwrap().revision, 3);
    assert!(setup.materialize(&name).await.unwrap().valid);
}

#[tokio::test]
async fn each_call_is_a_route_and_each_route_a_call() {
    let server = Server::start(good_answer).await;
    let (client, setup) = (server.client(), server.setup_client());
    call_everything(&client, &setup).await;
    let sessions = client.requests_sent();
    let set_up = setup.requests_sent();
    let called: BTreeSet<&str> = sessions.keys().chain(set_up.keys()).copied().collect();
    let all: BTreeSet<&str> = RouteName::ALL.iter().map(|name| name.as_str()).collect();
    assert_eq!(called, all);
    assert!(sessions.values().chain(set_up.values()).all(|count| *count == 1));
    assert!(set_up.keys().all(|name| !sessions.contains_key(name)));
    assert_eq!(server.received().len(), all.len());
}

#[tokio::test]
async fn each_request_is_exactly_the_reviewed_one() {
    let server = Server::start(good_answer).await;
    call_everything(&server.client(), &server.setup_client()).await;
    let c = format!("/api/conversations/{SESSION}");
    let policy = json!({"kind": "AlwaysConfirm"});
    let wanted: Vec<(String, Option<Value>)> = vec![
        ("GET /server_info".to_owned(), None),
        ("GET /api/conversations/count".to_owned(), None),
        ("POST /api/init".to_owned(), Some(json!([]))),
        (format!("GET {c}"), None),
        (format!("GET {c}/events/search?limit=100&sort_order=TIMESTAMP"), None),
        (
            "POST /api/conversations".to_owned(),
            Some(json!({"conversation_id": SESSION, "workspace": {"working_dir": "/w"},
                "agent_profile_id": "0a1b2c3d-3333-4333-8333-00000000000f", "confirmation_policy": policy,
                "autotitle": false})),
        ),
        (format!("POST {c}/confirmation_policy"), Some(json!({"policy": policy}))),
        (format!("POST {c}/events/respond_to_confirmation"), Some(json!({"accept": false, "reason": "no"}))),
        (format!("POST {c}/interrupt"), None),
        (format!("POST {c}/navigate"), Some(json!({"event_id": "e-1"}))),
        (format!("POST {c}/fork"), Some(json!({"id": FORK, "from_event_id": "e-1", "title": "f"}))),
        (format!("PATCH {c}"), Some(json!({"title": "t"}))),
        (format!("POST {c}/switch_profile"), Some(json!({"profile_name": "gatepost"}))),
        (format!("DELETE {c}"), None),
        (
            format!("POST {c}/events"),
            Some(json!({"role": "user", "content": [{"type": "text", "text": "hi"}], "run": true})),
        ),
        (format!("POST {c}/run"), None),
        (format!("POST {c}/events/respond_to_confirmation"), Some(json!({"accept": true}))),
        (format!("POST {c}/condense"), None),
        (format!("GET /sockets/events/{SESSION}"), None),
        (
            "POST /api/profiles/gatepost".to_owned(),
            Some(json!({"include_secrets": true, "llm": {"model": "p/m", "usage_id": "agent",
                "base_url": "http://127.0.0.1:9/v1", "api_key": "model-key"}})),
        ),
        ("GET /api/profiles/gatepost".to_owned(), None),
        (
            "POST /api/agent-profiles/gatepost".to_owned(),
            Some(json!({"agent_kind": "openhands", "llm_profile_ref": "gatepost", "tools": [{"name": "terminal"}],
                "mcp_server_refs": [], "enable_sub_agents": false, "enable_switch_llm_tool": false})),
        ),
        ("GET /api/agent-profiles/gatepost".to_owned(), None),
        ("POST /api/agent-profiles/gatepost/materialize".to_owned(), None),
    ];
    let received = server.received();
    assert_eq!(received.len(), wanted.len());
    for (request, (line, body)) in received.iter().zip(&wanted) {
        assert_eq!(request.line(), line);
        assert_eq!(request.json().as_ref(), body.as_ref(), "{line}");
    }
}

#[tokio::test]
async fn the_key_goes_only_where_it_must_and_nothing_else_is_sent() {
    let server = Server::start(good_answer).await;
    call_everything(&server.client(), &server.setup_client()).await;
    let allowed = ["host", "accept", "accept-encoding", "content-type", "content-length", "x-session-api-key"];
    for request in server.received() {
        let headers = request.headers();
        let keyless = ["GET /server_info", "POST /api/init"].contains(&request.line());
        if !request.line().starts_with("GET /sockets/") {
            assert_eq!(headers.get("x-session-api-key").map(String::as_str), (!keyless).then_some(KEY));
            assert!(headers.keys().all(|name| allowed.contains(&name.as_str())), "{}", request.head);
        } else {
            assert!(!request.head.contains(KEY));
        }
        assert_eq!(headers.get("host").or(headers.get("Host")).unwrap(), &format!("127.0.0.1:{}", server.port));
        assert!(!request.line().contains(KEY));
    }
    let client = server.client();
    client.auth_probe(KeyKind::Missing).await.unwrap();
    client.auth_probe(KeyKind::Wrong).await.unwrap();
    let received = server.received();
    let sent: Vec<Option<String>> = received[received.len() - 2..]
        .iter()
        .map(|request| request.headers().get("x-session-api-key").cloned())
        .collect();
    assert_eq!(sent[0], None);
    assert!(sent[1].as_deref().is_some_and(|key| key != KEY));
}

#[tokio::test]
async fn a_second_version_is_data_only() {
    let contract = changed(|data| {
        data["version"] = json!("9.9.9");
        for route in data["routes"].as_array_mut().unwrap() {
            if route["name"] == "set_policy" {
                route["path"] = json!("/api/v2/conversations/{conversation_id}/policy");
                route["body"] = json!({"fields": {"ask": {"exact": "always"}}});
            }
        }
    })
    .unwrap();
    let server = Server::always(Act::Send(success())).await;
    Client::new(contract, server.port, key()).set_policy(&session()).await.unwrap();
    assert_eq!(server.lines(), [format!("POST /api/v2/conversations/{SESSION}/policy")]);
    assert_eq!(server.received()[0].json(), Some(json!({"ask": "always"})));
}

#[tokio::test]
async fn data_cannot_turn_a_plain_call_into_a_step_nor_a_step_into_a_plain_call() {
    for (name, value) in [("set_policy", true), ("run", false)] {
        let contract = changed(|data| {
            let routes = data["routes"].as_array_mut().unwrap();
            routes.iter_mut().find(|route| route["name"] == name).unwrap()["causes_steps"] = json!(value);
        });
        let server = Server::always(Act::Send(success())).await;
        let client = Client::new(contract.unwrap(), server.port, key());
        let outcome = match name {
            "run" => client.run(grant(SESSION, StepCause::Run), &session()).await,
            _ => client.set_policy(&session()).await,
        };
        assert!(matches!(outcome, Err(ContractError::OutsideContract { .. })), "{name}");
        assert!(server.received().is_empty());
    }
}

#[tokio::test]
async fn a_grant_for_something_else_sends_nothing() {
    let server = Server::start(good_answer).await;
    let (client, id) = (server.client(), session());
    let causes = [StepCause::Message, StepCause::Run, StepCause::Accept, StepCause::Condense];
    for (granted, cause) in causes.iter().enumerate() {
        for called in 0..causes.len() {
            for whose in [SESSION, FORK] {
                if called == granted && whose == SESSION {
                    continue;
                }
                let grant = grant(whose, *cause);
                let outcome = match called {
                    0 => client.send_message(grant, &id, "hi").await,
                    1 => client.run(grant, &id).await,
                    2 => client.accept(grant, &id).await,
                    _ => client.condense(grant, &id).await,
                };
                let error = outcome.unwrap_err();
                assert!(matches!(error, ContractError::GrantMismatch { .. }), "{error}");
                assert!(!error.may_have_been_sent());
            }
        }
    }
    assert!(server.received().is_empty());
    assert!(client.requests_sent().is_empty());
}

#[tokio::test]
async fn the_clients_cannot_reach_each_others_routes() {
    let server = Server::start(good_answer).await;
    let client = server.client();
    for name in RouteName::ALL {
        let granted = client.contract().route(*name).unwrap().causes_steps();
        let is_set_up = client.contract().route(*name).unwrap().is_set_up();
        assert_eq!(client.transport.route(*name, granted).is_ok(), !is_set_up, "{name}");
        assert!(client.transport.route(*name, !granted).is_err(), "{name}");
    }
}

#[tokio::test]
async fn text_of_the_caller_stays_in_the_body() {
    let server = Server::start(good_answer).await;
    let (client, id) = (server.client(), session());
    let text = "x\r\nX-Session-API-Key: evil\r\n\r\nPOST /api/init HTTP/1.1\r\n\r\n\u{202e}\0\"}]";
    client.set_title(&id, text).await.unwrap();
    client.reject(&id, Some(text)).await.unwrap();
    client.send_message(grant(SESSION, StepCause::Message), &id, text).await.unwrap();
    let received = server.received();
    assert_eq!(received.len(), 3);
    assert_eq!(received[0].json(), Some(json!({"title": text})));
    assert_eq!(received[1].json(), Some(json!({"accept": false, "reason": text})));
    assert_eq!(received[2].json().unwrap()["content"], json!([{"type": "text", "text": text}]));
    assert!(received.iter().all(|request| !request.head.contains("evil")));
}

#[tokio::test]
async fn a_key_that_could_break_a_header_sends_nothing() {
    let server = Server::start(good_answer).await;
    let evil = Secret::new("a\r\nX-Evil: 1".to_owned());
    let client = Client::new(crate::testing::contract(2_000), server.port, Arc::new(evil));
    let error = client.conversation(&session()).await.unwrap_err();
    assert!(matches!(error, ContractError::OutsideContract { .. }));
    assert!(!error.may_have_been_sent() && !error.to_string().contains("Evil"));
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_profile_id_that_is_no_uuid_is_refused_before_it_is_sent() {
    let server = Server::start(good_answer).await;
    let new = NewConversation { id: session(), workspace_dir: "/w".to_owned(), profile_id: "../x".to_owned() };
    let error = server.client().create_conversation(&new).await.unwrap_err();
    assert!(matches!(error, ContractError::OutsideContract { .. }));
    assert!(server.client().events_page(&session(), Some("a/../b")).await.is_err());
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_stream_that_was_refused_is_an_error_of_the_opening() {
    let server = Server::always(Act::Send(json_answer(404, &json!({})))).await;
    let outcome = server.client().open_stream(&session()).await.map(|_stream| StreamItem::Event(Value::Null));
    assert_eq!(outcome, Err(ContractError::Status { route: RouteName::EventsStream, status: 404, detail: None }));
}
