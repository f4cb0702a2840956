//! Answers that no reviewed server gives: each is refused, within its bounds, and says no secret.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::setup::LlmProfile;
use crate::testing::{Act, KEY, Server, answer, json_answer, key, session, success};
use crate::{MAX_REPLY_BYTES, ProfileName};

/// The outcome of a mutation that is answered like this.
async fn mutation(act: Act) -> ContractError {
    let server = Server::always(act).await;
    let error = server.impatient_client().set_policy(&session()).await.unwrap_err();
    assert_eq!(server.received().len(), 1, "{error}");
    assert!(error.may_have_been_sent(), "{error}");
    error
}

fn with_headers(headers: &str, body: &str) -> Act {
    Act::SendAndClose(format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}").into_bytes())
}

#[tokio::test]
async fn a_redirect_is_refused_and_not_followed() {
    let elsewhere = Server::always(Act::Send(success())).await;
    for status in [300, 301, 302, 303, 304, 307, 308] {
        let reply = format!(
            "HTTP/1.1 {status} Moved\r\nlocation: http://127.0.0.1:{}/\r\ncontent-length: 0\r\n\r\n",
            elsewhere.port
        );
        let error = mutation(Act::Send(reply.clone().into_bytes())).await;
        assert_eq!(error, ContractError::Redirect { route: RouteName::SetPolicy, status });
        let server = Server::always(Act::Send(reply.into_bytes())).await;
        assert!(matches!(server.client().conversation(&session()).await, Err(ContractError::Redirect { .. })));
        assert!(matches!(server.client().auth_probe(KeyKind::Right).await, Err(ContractError::Redirect { .. })));
        assert!(matches!(server.client().open_stream(&session()).await, Err(ContractError::Redirect { .. })));
    }
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn an_answer_over_its_bound_is_refused_while_it_is_read() {
    let text = |bytes: usize| format!("\"{}\"", "a".repeat(bytes - 2));
    let nine = text(9 << 20);
    let chunked = format!("{:x}\r\n{nine}\r\n0\r\n\r\n", nine.len());
    let promised = "content-type: application/json\r\ncontent-length: 9437184\r\n";
    let cases = [
        Act::SendAndClose(answer(200, "application/json", nine.as_bytes())),
        with_headers("content-type: application/json\r\ntransfer-encoding: chunked\r\n", &chunked),
        // Refused by its promise alone: the body never comes, and the refusal does not wait for it.
        Act::Stall(format!("HTTP/1.1 200 OK\r\n{promised}\r\n").into_bytes()),
    ];
    for act in cases {
        let server = Server::always(act).await;
        let error = server.client().conversation(&session()).await.unwrap_err();
        assert_eq!(error, ContractError::TooLarge { route: RouteName::Conversation, max_bytes: MAX_REPLY_BYTES });
    }
    let just = text(MAX_REPLY_BYTES);
    let server = Server::always(Act::Send(answer(200, "application/json", just.as_bytes()))).await;
    assert_eq!(server.client().auth_probe(KeyKind::Right).await, Ok(200));
}

#[tokio::test]
async fn an_endless_head_is_refused() {
    let many = "x-a: b\r\n".repeat(200);
    let long = format!("x-a: {}\r\n", "b".repeat(1 << 20));
    for headers in [many, long] {
        let headers = format!("content-type: application/json\r\ncontent-length: 16\r\n{headers}");
        let error = mutation(with_headers(&headers, "{\"success\":true}")).await;
        assert!(matches!(error, ContractError::ConnectionLost { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_slow_answer_ends_with_its_time_wherever_it_stops() {
    let whole = success();
    let at_head = whole.len() - 20;
    for cut in [0, 5, at_head, whole.len() - 1] {
        let begun = Instant::now();
        let error = mutation(Act::Stall(whole[..cut].to_vec())).await;
        assert_eq!(error, ContractError::Timeout { route: RouteName::SetPolicy, limit_ms: 300, sent: true }, "{cut}");
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test]
async fn a_server_that_never_reads_or_is_not_there() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let client = Client::new(crate::testing::contract(200), port, key());
    let error = client.interrupt(&session()).await.unwrap_err();
    assert!(matches!(error, ContractError::Timeout { sent: true, .. }), "{error}");
    assert!(matches!(client.open_stream(&session()).await, Err(ContractError::Timeout { .. })));
    drop(silent);
    let error = client.interrupt(&session()).await.unwrap_err();
    assert!(matches!(error, ContractError::Unreachable { .. }), "{error}");
    assert!(!error.may_have_been_sent());
    assert!(!client.open_stream(&session()).await.unwrap_err().may_have_been_sent());
    assert_eq!(client.requests_sent(), [("interrupt", 1), ("events_stream", 1)].into());
}

#[tokio::test]
async fn an_answer_that_is_not_json_is_refused() {
    let body = b"{\"success\":true}";
    for content_type in ["text/html", "text/json", "application/json2", "application/problem+json", "", "é"] {
        let error = mutation(Act::Send(answer(200, content_type, body))).await;
        assert!(matches!(error, ContractError::Malformed { .. }), "{content_type}: {error}");
    }
    for content_type in ["application/json", "Application/JSON ; charset=utf-8"] {
        let server = Server::always(Act::Send(answer(200, content_type, body))).await;
        assert_eq!(server.client().set_policy(&session()).await, Ok(()));
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in ["", "{", "{\"success\":true}}", "{\"success\":NaN}", "success", "\u{fffd}", deep.as_str()] {
        let error = mutation(Act::Send(answer(200, "application/json", body.as_bytes()))).await;
        assert!(matches!(error, ContractError::Malformed { .. }), "{error}");
    }
    let error = mutation(Act::Send(answer(200, "application/json", b"{\"a\":\"\xff\"}"))).await;
    assert!(matches!(error, ContractError::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn an_answer_without_a_certain_end_is_refused() {
    let json = "content-type: application/json\r\n";
    let body = "{\"success\":true}";
    let cases = [
        ("no length", with_headers(json, body)),
        ("compressed", with_headers(&format!("{json}content-encoding: gzip\r\ncontent-length: 16\r\n"), body)),
        ("twice the type", with_headers(&format!("{json}{json}content-length: 16\r\n"), body)),
        ("two lengths", with_headers(&format!("{json}content-length: 16\r\ncontent-length: 17\r\n"), body)),
        ("too long a length", with_headers(&format!("{json}content-length: 99\r\n"), body)),
        ("too short a length", with_headers(&format!("{json}content-length: 15\r\n"), body)),
        ("no number", with_headers(&format!("{json}content-length: x\r\n"), body)),
        ("a cut chunk", with_headers(&format!("{json}transfer-encoding: chunked\r\n"), "10\r\n{\"success\"")),
        (
            "no last chunk",
            with_headers(&format!("{json}transfer-encoding: chunked\r\n"), "10\r\n{\"success\":true}\r\n"),
        ),
        ("a bad chunk", with_headers(&format!("{json}transfer-encoding: chunked\r\n"), "zz\r\n{}\r\n0\r\n\r\n")),
    ];
    for (what, act) in cases {
        let error = mutation(act).await;
        let expected = matches!(error, ContractError::Malformed { .. } | ContractError::ConnectionLost { .. });
        assert!(expected, "{what}: {error}");
        assert!(error.refused_status().is_none(), "{what}");
    }
    let old = b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n{\"success\":true}";
    assert!(matches!(mutation(Act::SendAndClose(old.to_vec())).await, ContractError::Malformed { .. }));
    let chunks = "8\r\n{\"succes\r\n8\r\ns\":true}\r\n0\r\n\r\n";
    let act = with_headers(&format!("{json}transfer-encoding: chunked\r\n"), chunks);
    assert_eq!(Server::always(act).await.client().set_policy(&session()).await, Ok(()));
}

#[tokio::test]
async fn a_status_that_is_no_success_is_a_refusal() {
    for status in [201, 202, 206, 400, 401, 404, 409, 422, 499, 500, 503] {
        let error = mutation(Act::Send(json_answer(status, &json!({"detail": "because"})))).await;
        // Only a 4xx says that nothing was done.
        assert_eq!(error.refused_status(), (400..500).contains(&status).then_some(status));
        assert!(error.to_string().ends_with("because"), "{error}");
    }
    let error = mutation(Act::Send(answer(500, "text/plain", b"Internal Server Error"))).await;
    assert_eq!(error, ContractError::Status { route: RouteName::SetPolicy, status: 500, detail: None });
    // The status is the answer, even when its reason is cut or too long to look at.
    let long = json_answer(404, &json!({"detail": "a".repeat(100_000)}));
    assert_eq!(mutation(Act::SendAndClose(long)).await.refused_status(), Some(404));
    let cut = json_answer(409, &json!({"detail": "because"}));
    assert_eq!(mutation(Act::SendAndClose(cut[..cut.len() - 3].to_vec())).await.refused_status(), Some(409));
}

#[tokio::test]
async fn only_a_true_success_is_one() {
    let error = mutation(Act::Send(json_answer(200, &json!({"success": false})))).await;
    assert_eq!(error, ContractError::Declined { route: RouteName::SetPolicy });
    assert_eq!(error.refused_status(), Some(200));
    for reply in [json!({}), json!({"success": 1}), json!({"success": "true"}), json!(true), json!(null), json!([])] {
        let error = mutation(Act::Send(json_answer(200, &reply))).await;
        assert!(matches!(error, ContractError::Malformed { .. }), "{reply}");
    }
}

#[tokio::test]
async fn no_secret_is_in_what_an_error_says() {
    let model_key = "model-key-0123456789";
    let both = format!("{KEY} {model_key}");
    let fields = json!({"detail": [{"loc": ["body", both], "type": both, "input": both, "msg": both}]});
    let acts = [
        Act::Send(json_answer(401, &json!({"detail": both}))),
        Act::Send(json_answer(422, &fields)),
        Act::Send(json_answer(200, &json!({"success": both, "detail": both, "name": both}))),
        Act::Send(answer(200, &both, b"{}")),
        Act::Send(answer(200, "application/json", both.as_bytes())),
        Act::SendAndClose(format!("HTTP/1.1 {both}\r\n\r\n").into_bytes()),
        Act::SendAndClose(format!("HTTP/1.1 400 {both}\r\ncontent-length: 0\r\n\r\n").into_bytes()),
        Act::SendAndClose(format!("HTTP/1.1 302 x\r\nlocation: {both}\r\ncontent-length: 0\r\n\r\n").into_bytes()),
        Act::SendAndClose(format!("HTTP/1.1 200 OK\r\n{both}\r\n\r\n").into_bytes()),
    ];
    let name = ProfileName::parse("gatepost").unwrap();
    let secret = Secret::new(model_key.to_owned());
    for (index, act) in acts.into_iter().enumerate() {
        let server = Server::always(act).await;
        let (client, setup) = (server.impatient_client(), server.setup_client());
        let profile = LlmProfile { model: "m", base_url: None, api_key: Some(&secret) };
        let errors = [
            client.set_policy(&session()).await.unwrap_err(),
            client.conversation(&session()).await.unwrap_err(),
            client.events_page(&session(), None).await.unwrap_err(),
            client.open_stream(&session()).await.map(|_stream| ()).unwrap_err(),
            setup.put_llm_profile(&name, &profile).await.unwrap_err(),
        ];
        let said =
            format!("{errors:?} {client:?} {setup:?} {}", errors.clone().map(|error| error.to_string()).join(" "));
        assert!(!said.contains("0123456789"), "{index}: {said}");
    }
}

#[tokio::test]
async fn what_is_read_must_be_about_what_was_asked() {
    let other = json!({"id": "0a1b2c3d-2222-4222-8222-00000000000f", "leaf_event_id": null});
    let server = Server::always(Act::Send(json_answer(200, &other))).await;
    let error = server.client().conversation(&session()).await.unwrap_err();
    assert!(error.to_string().contains("conversation.id"), "{error}");
    let server = Server::always(Act::Send(json_answer(200, &json!({"name": "other", "profile": Value::Null})))).await;
    let name = ProfileName::parse("gatepost").unwrap();
    assert!(server.setup_client().find_agent_profile(&name).await.is_err());
    assert!(server.setup_client().llm_profile_status(&name).await.is_err());
}
