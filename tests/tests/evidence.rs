//! A daemon that is killed around a call to its server: what came of the call is told by the conversation, once the next
//! daemon has read it. On the fake server, which starts fast; `chaos` of `testkit` does it to the real one.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use api_types::{Receipt, ReceiptState, SessionList, SessionSnapshot};
use gatepost_tests::{Faked, LIMIT, Scene, Session, typed, wait_until};
use serde_json::{Value, json};
use testkit::chaos::POINTS_VARIABLE;
use testkit::daemon::built_binary;
use testkit::fake_server::Plan;

/// The next daemon dies at this point.
fn trap(scene: &mut Scene, point: Option<&str>) {
    scene
        .home_mut()
        .reconfigure(|setup| {
            setup.environment.retain(|(name, _)| name != POINTS_VARIABLE);
            setup.environment.extend(point.map(|point| (POINTS_VARIABLE.to_owned(), format!("kill:{point}:1"))));
        })
        .unwrap();
}

/// Asks for an operation on which the daemon dies, and for its receipt once another one has looked.
fn cut_short(scene: &mut Scene, id: &str, point: &str, operation: &str, input: &Value) -> (Session, Receipt) {
    let (session, receipt, asked) = act_under_trap(scene, id, point, |session| {
        let generation = wait_until("the session to be on a server", LIMIT, || {
            let snapshot = session.snapshot();
            let is_on_server = snapshot.values.get("server_start_id").is_some_and(|id| !id.is_null());
            is_on_server.then_some(snapshot.capability_generation)
        });
        json!({"operation_id": operation, "input": input, "capability_generation": generation})
    });
    // The same request again is the same receipt, and nothing is done a second time.
    let reply = session.client().post(&session.path("/actions"), &asked).unwrap();
    let again: Receipt = typed(&reply, &[200]);
    assert_eq!((again.state, again.replayed), (receipt.state, true));
    (session, receipt)
}

/// Asks for an operation on which the daemon dies; the session on the next daemon, the receipt, and what was asked.
fn act_under_trap(
    scene: &mut Scene,
    id: &str,
    point: &str,
    prepare: impl FnOnce(&Session) -> Value,
) -> (Session, Receipt, Value) {
    let key = format!("cut-{}", uuid::Uuid::new_v4());
    let path = scene.take_up(id).path("/actions");
    let asked = die_on(scene, point, &path, |scene| {
        let mut body = prepare(&scene.take_up(id));
        body["client_action_id"] = json!(key);
        body
    });
    let session = scene.take_up(id);
    // Looked at, it is put on a server and read.
    drop(session.snapshot());
    let receipt = session.wait_final(&key);
    (session, receipt, asked)
}

/// Sends what is prepared to a daemon that dies on it, and starts another; what was sent.
fn die_on(scene: &mut Scene, point: &str, path: &str, prepare: impl FnOnce(&Scene) -> Value) -> Value {
    scene.stop_daemon();
    trap(scene, Some(point));
    scene.serve_again();
    let body = prepare(scene);
    let answer = scene.client().post(path, &body);
    assert!(answer.is_err(), "{point}: the daemon answered: {answer:?}");
    trap(scene, None);
    scene.daemon_ended();
    scene.serve_again();
    body
}

fn messages(session: &Session, text: &str) -> usize {
    session.events().iter().filter(|event| event.payload["text"] == text).count()
}

#[test]
fn what_came_of_a_call_without_an_answer_is_read_from_the_conversation() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene_with(|setup| {
        setup.binary = Some(built_binary("gatepost-tests", "gatepost-watched").unwrap());
        setup.model = "choices = [\"openai/other\"]".to_owned();
    });
    // A session whose making was cut off is made once, and by the same request.
    let id = uuid::Uuid::new_v4().to_string();
    let request = json!({"workspace": scene.workspace(), "session_id": id});
    for point in ["after:call.create_conversation", "before:ledger.put_session", "after:ledger.put_session"] {
        die_on(&mut scene, point, "/v1/sessions", |_| request.clone());
    }
    let made: SessionSnapshot = typed(&scene.client().post("/v1/sessions", &request).unwrap(), &[200, 201]);
    assert_eq!(made.session_id, id);
    let first = scene.take_up(&id);
    first.turn("say: one");
    let asked = scene.client().post("/v1/sessions", &request).unwrap();
    assert_eq!(asked.status, 200, "once more is the same session: {}", asked.text);
    let by_evidence = |receipt: &Receipt, what: &str| {
        assert_eq!(receipt.state, ReceiptState::Applied, "{what}: {receipt:?}");
        assert_eq!(receipt.result["evidence"], "event_log", "{what}: {receipt:?}");
    };

    // A message that arrived, and one that never left.
    let prompt = |text: &str| json!({"text": text});
    let (session, receipt) =
        cut_short(&mut scene, &id, "after:call.send_message", "session.prompt.send", &prompt("say: arrived"));
    by_evidence(&receipt, "a message that arrived");
    assert_eq!(messages(&session, "say: arrived"), 1);
    session.wait_quiet();
    let (session, receipt) =
        cut_short(&mut scene, &id, "before:call.send_message", "session.prompt.send", &prompt("say: lost"));
    assert_eq!(receipt.state, ReceiptState::OutcomeUnknown, "{receipt:?}");
    assert_eq!(messages(&session, "say: lost"), 0);
    // A receipt begins with the intent of its step: whether that was sent is not known.
    let (session, receipt) =
        cut_short(&mut scene, &id, "after:ledger.insert_receipt", "session.prompt.send", &prompt("say: never"));
    assert_eq!((receipt.state, receipt.steps[0].name.as_str()), (ReceiptState::OutcomeUnknown, "send_message"));
    assert_eq!(messages(&session, "say: never"), 0);

    // The title, the model, the head.
    let title = json!({"title": "found again"});
    let (session, receipt) = cut_short(&mut scene, &id, "after:call.set_title", "session.title.set", &title);
    by_evidence(&receipt, "a title");
    // What a title makes of the session is recorded with the end of its receipt.
    let title = json!({"title": "recorded"});
    let point = "after:ledger.put_session_with_receipt";
    let (_, receipt) = cut_short(&mut scene, &id, point, "session.title.set", &title);
    assert_eq!((receipt.state, &receipt.result), (ReceiptState::Applied, &title));
    let model = json!({"model": "openai/other"});
    let (_, receipt) = cut_short(&mut scene, &id, "after:call.switch_profile", "session.model.set", &model);
    by_evidence(&receipt, "a model");
    let back = session.snapshot().choices.rewind.first().unwrap().event_id.clone();
    let rewind = json!({"event_id": back});
    let (_, receipt) = cut_short(&mut scene, &id, "after:call.navigate", "session.rewind", &rewind);
    by_evidence(&receipt, "a rewind");
    let (_, receipt) = cut_short(&mut scene, &id, "after:call.condense", "session.compact", &json!({}));
    assert_eq!(receipt.state, ReceiptState::OutcomeUnknown, "nothing shows a compaction: {receipt:?}");

    // A fork that nobody had recorded is found, and is a session.
    for point in ["after:call.fork", "after:ledger.put_session"] {
        let title = json!({"title": format!("cut {point}")});
        let (_, receipt) = cut_short(&mut scene, &id, point, "session.fork", &title);
        by_evidence(&receipt, point);
        let fork_id = receipt.result["session_id"].as_str().unwrap().to_owned();
        let list: SessionList = typed(&scene.client().get("/v1/sessions").unwrap(), &[200]);
        assert!(list.sessions.iter().any(|session| session.session_id == fork_id), "{point}: {list:?}");
        scene.take_up(&fork_id).turn("say: in the fork");
    }

    // A rejection; and an accept, of which the log says whether it ran.
    let marker = scene.marker("rejected");
    let approval = session_of(&scene, &id).propose(&marker.directive());
    drop(approval);
    let (session, receipt) = decide(&mut scene, &id, "after:call.reject", "reject");
    by_evidence(&receipt, "a rejection");
    assert!(session.pending().is_none());
    marker.assert_absent();
    let marker = scene.marker("accepted");
    drop(session.propose(&marker.directive()));
    let (session, receipt) = decide(&mut scene, &id, "after:ledger.record_accept", "accept");
    assert_eq!((receipt.state, receipt.code.as_deref()), (ReceiptState::Rejected, Some("stopped_before_step")));
    let doubtful = session.pending().unwrap();
    assert!(doubtful.actions[0].in_doubt, "what was recorded as sent is never accepted again: {doubtful:?}");
    session.reject(&doubtful);
    marker.assert_absent();
    drop(session.propose(&marker.directive()));
    let (session, receipt) = decide(&mut scene, &id, "after:call.accept", "accept");
    match marker.runs() {
        0 => assert_eq!(receipt.state, ReceiptState::OutcomeUnknown, "{receipt:?}"),
        runs => {
            assert_eq!(runs, 1);
            assert_ne!(receipt.state, ReceiptState::Rejected, "{receipt:?}");
        }
    }
    if let Some(doubtful) = session.pending() {
        session.reject(&doubtful);
    }
    session.turn("say: it goes on");
    scene.finish();
}

fn session_of(scene: &Scene, id: &str) -> Session {
    let session = scene.take_up(id);
    drop(session.wait_quiet());
    session
}

/// Decides on what waits, as the daemon under the trap will show it: a restart gives it another id.
fn decide(scene: &mut Scene, id: &str, point: &str, decision: &str) -> (Session, Receipt) {
    let (session, receipt, _asked) = act_under_trap(scene, id, point, |session| {
        let approval = session.wait_pending();
        json!({
            "operation_id": "session.approval.decide",
            "input": {"approval_id": approval.approval_id, "decision": decision},
            "capability_generation": session.snapshot().capability_generation,
        })
    });
    (session, receipt)
}

/// What is found under an id later must be what was made under it.
#[test]
fn a_fork_takes_no_id_that_was_used_and_a_first_prompt_is_sent_once() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene_with(|setup| {
        setup.binary = Some(built_binary("gatepost-tests", "gatepost-watched").unwrap());
    });
    let parent = scene.session();
    parent.turn("say: one");
    let id = parent.id().to_owned();

    // The id of a session that stands or stood, also where its conversation is gone, and of a conversation that only the
    // server knows.
    let (closed, deleted) = (scene.session(), scene.session());
    assert_eq!((closed.close(false).status, deleted.close(true).status), (200, 200));
    let unknown = uuid::Uuid::new_v4().to_string();
    let body = json!({"workspace": scene.workspace(), "session_id": unknown});
    die_on(&mut scene, "after:call.create_conversation", "/v1/sessions", |_| body);
    let parent = scene.take_up(&id);
    for taken in [id.as_str(), closed.id(), deleted.id(), unknown.as_str()] {
        assert_eq!(parent.refused("session.fork", &json!({"session_id": taken})), "session_exists", "{taken}");
    }
    let free = uuid::Uuid::new_v4().to_string();
    assert_eq!(parent.applied("session.fork", &json!({"session_id": free})).result["session_id"], free.as_str());

    // A session that was made, and whose first prompt was not sent any more.
    let started = uuid::Uuid::new_v4().to_string();
    let body = json!({"workspace": scene.workspace(), "session_id": started, "prompt": "say: first"});
    die_on(&mut scene, "after:ledger.put_session", "/v1/sessions", |_| body.clone());
    for _ in 0..2 {
        let made: SessionSnapshot = typed(&scene.client().post("/v1/sessions", &body).unwrap(), &[200]);
        assert_eq!(made.session_id, started);
        let session = scene.take_up(&started);
        drop(session.wait_quiet());
        assert_eq!(messages(&session, "say: first"), 1);
    }
    scene.finish();
}
