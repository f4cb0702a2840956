//! A server that ended without being asked to is started again by itself, and its sessions are on it again.

use super::{kill, line, pid, server_in, told, wait_other_server};
use api_types::{Event, EventKind, ReceiptState, ServerState};
use gatepost_tests::{Faked, LIMIT, SETTLE, Scene, Session, refusal_code, wait_until};
use std::time::Duration;
use testkit::fake_server::Plan;
use testkit::model::Reply;

/// The approval that the events asked for last.
fn asked_last(session: &Session) -> Option<String> {
    let mut events = session.events().into_iter().filter(|event| event.kind == EventKind::ApprovalRequested);
    events.next_back().map(|event| event.payload["approval_id"].as_str().unwrap().to_owned())
}

/// On the real server: one session has a batch that waits, one a turn that runs with a prompt queued behind it. Nobody
/// asks for anything until all of it goes on.
#[test]
fn a_killed_server_comes_back_by_itself_with_its_sessions() {
    let scene = Scene::start();
    let (waiting, talking) = (scene.session(), scene.session());
    let (marker, later) = (scene.marker("waits"), scene.marker("later"));
    let shown = waiting.propose(&marker.directive());
    let generation = waiting.snapshot().capability_generation;
    let before = pid(&scene);
    let cursor = waiting.snapshot().cursor;
    assert_eq!(talking.prompt("slow 600000: say: never").state, ReceiptState::Applied);
    talking.wait_status(&["running"]);
    let queued = talking.prompt(&later.directive());
    assert_eq!(queued.state, ReceiptState::Queued);
    let reader = {
        let waiting = waiting.clone();
        std::thread::spawn(move || read_until_restarted(&waiting, cursor))
    };

    kill(before);
    let after = wait_other_server(&scene, before);
    assert_eq!((after.state, after.reason), (ServerState::Ready, None));
    assert_eq!(after.failures_in_a_row, 1, "it has not been ready for long");

    // The batch is shown again by itself, under another id; the old one is good for nothing.
    let again = wait_until("the batch to be shown again", LIMIT, || {
        asked_last(&waiting).filter(|now| *now != shown.approval_id)
    });
    assert_eq!(told(&waiting), ["server_ready", "server_ended", "server_restarted"]);
    assert_eq!(line(&scene, &waiting).blocked_reason, None);
    let read = reader.join().unwrap();
    let numbers: Vec<u64> = read.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (numbers[0]..).take(numbers.len()).collect::<Vec<_>>(), "a reader missed something");

    // The turn that ran is over, and the prompt behind it was delivered under the gate: its command waits like any.
    assert_eq!(talking.wait_final(&queued.client_action_id).state, ReceiptState::Applied);
    wait_until("the queued prompt's command to wait", LIMIT, || asked_last(&talking));
    later.assert_absent();
    marker.assert_absent();

    assert_eq!(refusal_code(&waiting.ask_accept(&shown.approval_id)), "approval_superseded");
    assert!(waiting.snapshot().capability_generation > generation);
    let batch = waiting.wait_pending();
    assert_eq!((&batch.approval_id, &batch.actions), (&again, &shown.actions));
    // The server shows the model the action's result without the call: its next words are given here.
    assert!(scene.model().push(Reply::say("done")));
    waiting.approve_to_end(&batch);
    marker.assert_runs(1);
    talking.approve_to_end(&talking.wait_pending());
    later.assert_runs(1);
    scene.finish();
}

/// Follows the events from a cursor on, as a client does, over the end of the server.
fn read_until_restarted(session: &Session, mut after: String) -> Vec<Event> {
    let mut read = Vec::new();
    wait_until("the reader to be told of the restart", LIMIT, || {
        let page = session.page(Some(&after), 100, Duration::from_secs(5));
        assert_eq!(page.resync, None, "the cursor is of another epoch");
        after = page.next_cursor;
        read.extend(page.events);
        read.iter().any(|event: &Event| event.payload["event"] == "server_restarted").then_some(())
    });
    read
}

/// Nobody needs it: its sessions are closed, or the daemon stopped it because it was idle.
#[test]
fn a_server_that_nobody_needs_is_started_only_when_somebody_does() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene_with(|setup| setup.agent_server = "max_servers = 1\n".to_owned());
    let closed = scene.session();
    let before = pid(&scene);
    assert_eq!(closed.close(false).status, 200);
    kill(before);
    let dead = wait_until("the end to be noticed", LIMIT, || {
        server_in(&scene, &scene.workspace()).filter(|server| server.state == ServerState::Failed)
    });
    assert_eq!((dead.pid, dead.reason.unwrap().code.as_str()), (None, "server_unavailable"));
    std::thread::sleep(SETTLE);
    assert_eq!(scene.server_pid(), None, "nobody needs it");

    // On demand it is there at once; then it makes room for another workspace's, which is no failure.
    let idle = scene.session();
    let other = scene.session_in(&scene.home().new_workspace("other").unwrap());
    other.turn("say: hello");
    std::thread::sleep(SETTLE);
    let stopped = server_in(&scene, &scene.workspace()).unwrap();
    assert_eq!((stopped.state, stopped.reason, stopped.next_try_at), (ServerState::Stopped, None, None));
    assert_eq!(line(&scene, &idle).blocked_reason, None);
    idle.turn("say: again");
    scene.finish();
}
