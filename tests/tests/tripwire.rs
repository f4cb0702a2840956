//! The tripwire, on a real server that breaks its word: it has no latch and runs some commands unasked. What it runs is
//! noticed, told, interrupted, and blocks the session until the owner acknowledges that very thing.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use api_types::{Event, EventKind, ReceiptState};
use gatepost_tests::{LIMIT, Scene, ServerLog, Session, wait_until};
use serde_json::json;
use testkit::daemon::built_binary;
use testkit::guards::UNASKED;

fn block(session: &Session) -> String {
    let snapshot = session.snapshot();
    assert_eq!(snapshot.blocked_reason.as_ref().unwrap().code, "unreviewed_action");
    assert_eq!(snapshot.choices.acknowledge.len(), 1, "{snapshot:?}");
    let choice = snapshot.choices.acknowledge.into_iter().next().unwrap();
    assert!(!choice.observation_ids.is_empty());
    choice.block_id
}

fn wait_blocked(session: &Session) -> String {
    wait_until("the session to be blocked", LIMIT, || session.snapshot().blocked_reason);
    block(session)
}

fn told(session: &Session, word: &str) -> Vec<Event> {
    let is_it = |event: &Event| event.kind == EventKind::Lifecycle && event.payload["event"] == word;
    session.events().into_iter().filter(is_it).collect()
}

fn acknowledge(session: &Session, block_id: &str) {
    let receipt = session.applied("session.block.acknowledge", &json!({"block_id": block_id}));
    assert_eq!(receipt.result["block_id"], block_id);
}

#[test]
fn what_ran_unasked_blocks_until_it_is_acknowledged() {
    let mut scene = Scene::with(|setup| {
        setup.binary = Some(built_binary("gatepost-tests", "gatepost-unasked").unwrap());
    });
    let session = scene.session();
    let asked = scene.marker("asked");
    let unasked = scene.marker(&format!("{UNASKED}-1"));

    // The server asks of other commands, and what was approved trips nothing.
    let approval = session.propose(&asked.directive());
    session.approve_to_end(&approval);
    asked.assert_runs(1);
    assert_eq!(session.snapshot().blocked_reason, None);
    assert_eq!(
        session.refused("session.block.acknowledge", &json!({"block_id": approval.approval_id})),
        "not_advertised"
    );

    // It runs, is told of once, and the session stands still.
    session.prompt(&unasked.directive());
    let first = wait_blocked(&session);
    unasked.assert_runs(1);
    let [blocked] = told(&session, "session_blocked").try_into().unwrap();
    assert_eq!(blocked.payload["block_id"], first.as_str());
    let log = ServerLog::of_only_server(&scene.home().state()).unwrap();
    let interrupted = || log.requests().iter().any(|request| request.target.ends_with("/interrupt")).then_some(());
    wait_until("the interrupt", LIMIT, interrupted);
    let status = scene.home().run(&["status"]).unwrap();
    assert_eq!(status.code, Some(4), "{}", status.stdout);
    for (operation, input) in [
        ("session.prompt.send", json!({"text": "say: hello"})),
        ("session.resume", json!({})),
        ("session.compact", json!({})),
        ("session.fork", json!({})),
    ] {
        assert_eq!(session.refused(operation, &input), "unreviewed_action", "{operation}");
    }

    // A restart forgets nothing of it.
    scene.restart();
    let session = scene.take_up(session.id());
    assert_eq!(wait_blocked(&session), first);

    // Only that very block is acknowledged; then the session goes on, and trips again at the next.
    let other = format!("{:0>64}", "1");
    assert_eq!(session.refused("session.block.acknowledge", &json!({"block_id": other})), "approval_superseded");
    assert_eq!(block(&session), first);
    let printed = scene.home().run(&["acknowledge", session.id(), "--json"]).unwrap();
    assert_eq!(printed.code, Some(2), "without a terminal the block must be named: {}", printed.stdout);
    let printed = scene.home().run(&["acknowledge", session.id(), &first[..12], "--json"]).unwrap();
    assert_eq!(printed.code, Some(0), "{} {}", printed.stdout, printed.stderr);
    assert_eq!(session.snapshot().blocked_reason, None);
    assert_eq!(told(&session, "session_unblocked").len(), 1);
    let again = scene.marker("asked-again");
    let approval = session.propose(&again.directive());
    session.approve_to_end(&approval);
    again.assert_runs(1);

    let second = scene.marker(&format!("{UNASKED}-2"));
    session.prompt(&second.directive());
    let later = wait_blocked(&session);
    assert_ne!(later, first);
    assert_eq!(session.refused("session.block.acknowledge", &json!({"block_id": first})), "approval_superseded");
    acknowledge(&session, &later);

    // What was acknowledged stays acknowledged.
    scene.restart();
    let session = scene.take_up(session.id());
    let receipt = session.prompt("say: hello");
    assert_eq!(receipt.state, ReceiptState::Applied, "{receipt:?}");
    session.wait_quiet();
    assert_eq!(session.snapshot().blocked_reason, None);
    let reply = session.close(false);
    assert_eq!(reply.status, 200, "{}", reply.text);
    scene.finish();
}
