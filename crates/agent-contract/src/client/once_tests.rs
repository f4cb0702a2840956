//! INVARIANT I5: a mutation leaves at most once, whatever becomes of its connection; a read at most twice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rules::gate::StepCause;
use serde_json::json;

use super::*;
use crate::ProfileName;
use crate::testing::{Act, SESSION, Server, changed, grant, json_answer, key, session, success};

/// Calls that change something and answer with `success`.
const MUTATIONS: [&str; 9] =
    ["set_policy", "reject", "interrupt", "set_title", "switch_profile", "delete", "send_message", "run", "accept"];

async fn mutate(client: &Client, name: &str) -> Result<(), ContractError> {
    let id = session();
    match name {
        "set_policy" => client.set_policy(&id).await,
        "reject" => client.reject(&id, None).await,
        "interrupt" => client.interrupt(&id).await,
        "set_title" => client.set_title(&id, "t").await,
        "switch_profile" => client.switch_profile(&id, &ProfileName::parse("p").unwrap()).await,
        "delete" => client.delete(&id).await,
        "send_message" => client.send_message(grant(SESSION, StepCause::Message), &id, "hi").await,
        "run" => client.run(grant(SESSION, StepCause::Run), &id).await,
        "accept" => client.accept(grant(SESSION, StepCause::Accept), &id).await,
        other => panic!("no mutation {other}"),
    }
}

#[tokio::test]
async fn a_reply_cut_anywhere_is_an_error_and_the_mutation_was_sent_once() {
    let whole = success();
    for cut in 0..whole.len() {
        let server = Server::always(Act::SendAndClose(whole[..cut].to_vec())).await;
        let client = server.client();
        let error = client.run(grant(SESSION, StepCause::Run), &session()).await.unwrap_err();
        assert!(matches!(error, ContractError::ConnectionLost { .. }), "{cut}: {error}");
        assert!(error.may_have_been_sent());
        assert_eq!(server.received().len(), 1, "{cut}");
        assert_eq!(client.requests_sent(), [("run", 1)].into());
    }
    let server = Server::always(Act::SendAndClose(whole)).await;
    assert_eq!(server.client().run(grant(SESSION, StepCause::Run), &session()).await, Ok(()));
}

/// Those that pass whatever else is stuck.
const URGENT: [&str; 2] = ["reject", "interrupt"];
const READ: &str = "GET /api/conversations/count";

fn connections(server: &Server) -> Vec<usize> {
    server.received().iter().map(|request| request.connection).collect()
}

/// Answers a read, and does this with anything else.
async fn reads_and(act: Act) -> Server {
    Server::start(move |request| match request.line() {
        READ => Act::Send(json_answer(200, &json!(0))),
        _ => act.clone(),
    })
    .await
}

#[tokio::test]
async fn a_mutation_on_the_connection_of_the_read_before_is_sent_once() {
    let whole = success();
    for name in MUTATIONS {
        let server = reads_and(Act::Send(whole.clone())).await;
        let client = server.client();
        client.auth_probe(KeyKind::Right).await.unwrap();
        mutate(&client, name).await.unwrap();
        client.auth_probe(KeyKind::Right).await.unwrap();
        let expected = if URGENT.contains(&name) { [0, 1, 0] } else { [0, 0, 0] };
        assert_eq!(connections(&server), expected, "{name}");
        for cut in [0, 1, whole.len() - 1] {
            let server = reads_and(Act::SendAndClose(whole[..cut].to_vec())).await;
            let client = server.client();
            client.auth_probe(KeyKind::Right).await.unwrap();
            let error = mutate(&client, name).await.unwrap_err();
            assert!(matches!(error, ContractError::ConnectionLost { .. }), "{name} {cut}: {error}");
            assert!(error.may_have_been_sent());
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(connections(&server), expected[..2], "{name} {cut}");
            assert_eq!(client.requests_sent().values().sum::<u64>(), 2, "{name} {cut}");
        }
    }
}

#[tokio::test]
async fn a_mutation_takes_no_connection_that_was_idle_for_long_or_is_in_use() {
    let server = reads_and(Act::Send(success())).await;
    let client = server.client();
    client.auth_probe(KeyKind::Right).await.unwrap();
    client.transport.age_idle(Duration::from_secs(1));
    mutate(&client, "run").await.unwrap();
    assert_eq!(connections(&server), [0, 1]);

    let server = Server::start(|request| match request.line() {
        READ => Act::Send(json_answer(200, &json!(0))),
        "GET /server_info" => Act::Stall(Vec::new()),
        _ => Act::Send(success()),
    })
    .await;
    let client = server.client();
    client.auth_probe(KeyKind::Right).await.unwrap();
    let (reader, mut stuck) = (client.clone(), tokio::task::JoinSet::new());
    stuck.spawn(async move { reader.server_info().await.map(drop) });
    while server.received().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    mutate(&client, "run").await.unwrap();
    assert_eq!(connections(&server), [0, 0, 1]);
}

#[tokio::test]
async fn a_mutation_on_a_connection_that_is_being_closed_is_sent_once_or_not_at_all() {
    for _ in 0..100 {
        let server = Server::start(|request| match request.line() {
            READ => Act::SendAndClose(json_answer(200, &json!(0))),
            _ => Act::Send(success()),
        })
        .await;
        let client = server.client();
        client.auth_probe(KeyKind::Right).await.unwrap();
        let outcome = mutate(&client, "run").await;
        let arrived = server.lines().iter().filter(|line| line.ends_with("/run")).count();
        match outcome {
            Ok(()) => assert_eq!((arrived, client.requests_sent()["run"]), (1, 1)),
            Err(error) => {
                assert!(matches!(error, ContractError::ConnectionLost { .. }), "{error}");
                assert_eq!((arrived, client.requests_sent()["run"]), (0, 1));
            }
        }
    }
}

#[tokio::test]
async fn reads_share_a_connection_and_ask_again_once_when_it_is_dead() {
    let seen = AtomicUsize::new(0);
    let server = Server::start(move |_request| match seen.fetch_add(1, Ordering::SeqCst) {
        0 | 1 | 3 => Act::Send(json_answer(200, &json!(0))),
        _ => Act::SendAndClose(Vec::new()),
    })
    .await;
    let client = server.client();
    for _ in 0..3 {
        assert_eq!(client.auth_probe(KeyKind::Right).await, Ok(200));
    }
    let connections: Vec<usize> = server.received().iter().map(|request| request.connection).collect();
    // The third read met a closed connection and was asked once more on a new one.
    assert_eq!(connections, [0, 0, 0, 1]);
    assert_eq!(client.requests_sent(), [("auth_probe", 4)].into());
    // Dead again, and dead on the new connection too: that is the end.
    let error = client.auth_probe(KeyKind::Right).await.unwrap_err();
    assert!(matches!(error, ContractError::ConnectionLost { .. }));
    assert_eq!(client.requests_sent(), [("auth_probe", 6)].into());
}

#[tokio::test]
async fn a_read_on_a_new_connection_is_not_asked_again() {
    let server = Server::always(Act::SendAndClose(Vec::new())).await;
    assert!(server.client().server_info().await.is_err());
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_read_that_timed_out_or_was_refused_is_not_asked_again() {
    for act in [Act::Stall(Vec::new()), Act::Send(json_answer(500, &json!({})))] {
        let server = Server::start(move |request| match request.line() {
            "GET /api/conversations/count" => Act::Send(json_answer(200, &json!(0))),
            _ => act.clone(),
        })
        .await;
        let client = server.impatient_client();
        client.auth_probe(KeyKind::Right).await.unwrap();
        assert!(client.server_info().await.is_err());
        assert_eq!(server.received().len(), 2);
    }
}

#[tokio::test]
async fn a_connection_whose_answer_was_not_finished_serves_no_other_request() {
    let server = Server::start(|request| match request.line() {
        "GET /server_info" => Act::Stall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n".to_vec()),
        _ => Act::Send(json_answer(200, &json!(0))),
    })
    .await;
    let client = server.impatient_client();
    assert!(matches!(client.server_info().await, Err(ContractError::Timeout { .. })));
    assert_eq!(client.auth_probe(KeyKind::Right).await, Ok(200));
    let connections: Vec<usize> = server.received().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1]);
}

#[tokio::test]
async fn interrupts_and_rejections_pass_whatever_else_is_stuck() {
    let server = Server::start(|request| {
        let urgent = request.line().ends_with("/interrupt") || request.line().ends_with("/respond_to_confirmation");
        if urgent { Act::Send(success()) } else { Act::Stall(Vec::new()) }
    })
    .await;
    let contract = changed(|data| data["timeouts_ms"]["read"] = json!(200)).unwrap();
    let client = Client::new(contract, server.port, key());
    let mut stuck = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let client = client.clone();
        stuck.spawn(async move { client.set_title(&session(), "t").await });
    }
    while server.received().len() < 32 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // A further one waits for its turn until its time is over: it was certainly never sent.
    let error = client.server_info().await.unwrap_err();
    assert!(matches!(error, ContractError::Timeout { sent: false, .. }), "{error}");
    assert!(!error.may_have_been_sent());
    client.interrupt(&session()).await.unwrap();
    client.reject(&session(), None).await.unwrap();
    assert_eq!(client.requests_sent(), [("interrupt", 1), ("reject", 1), ("set_title", 32)].into());
    // Those that were given up free their places.
    stuck.shutdown().await;
    assert!(matches!(client.server_info().await, Err(ContractError::Timeout { sent: true, .. })));
}
