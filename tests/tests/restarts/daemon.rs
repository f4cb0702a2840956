//! A daemon that is started again takes up by itself what waited to be done.

use super::{line, server_in, told};
use api_types::{Receipt, ReceiptState, ServerState};
use gatepost_tests::{Faked, LIMIT, Scene, Session, typed, wait_until};
use serde_json::json;
use testkit::fake_server::{Fault, Plan};

/// A turn that does not end, and a prompt behind it; its receipt's key.
fn queue_behind(session: &Session, text: &str) -> String {
    assert_eq!(session.prompt("slow 600000: say: never").state, ReceiptState::Applied);
    session.wait_status(&["running"]);
    let queued = session.prompt(text);
    assert_eq!(queued.state, ReceiptState::Queued, "{queued:?}");
    queued.client_action_id
}

/// On the real server, with a daemon that is killed. Nothing is asked but what became of the prompt.
#[test]
fn a_queued_prompt_is_delivered_after_the_daemon_was_killed_without_anyone_asking() {
    let mut scene = Scene::start();
    let (session, idle) = (scene.session(), scene.session_in(&scene.home().new_workspace("idle").unwrap()));
    let marker = scene.marker("later");
    let cursor = session.snapshot().cursor;
    let key = queue_behind(&session, &marker.directive());
    scene.kill_daemon();
    scene.serve_again();
    let (session, idle) = (scene.take_up(session.id()), scene.take_up(idle.id()));
    assert_eq!(session.wait_final(&key).state, ReceiptState::Applied);
    wait_until("the command to wait", LIMIT, || (line(&scene, &session).pending_actions == 1).then_some(()));
    marker.assert_absent();
    // Readers go on where they were.
    let page = session.page(Some(&cursor), 500, std::time::Duration::ZERO);
    assert!(page.resync.is_none() && !page.events.is_empty());
    assert!(session.events().len() > page.events.len());
    session.approve_to_end(&session.wait_pending());
    marker.assert_runs(1);
    // A workspace in which nothing waits has no server.
    assert_eq!(scene.status().servers.len(), 1, "{:?}", scene.status().servers);
    assert_eq!(told(&idle).len(), 1);
    scene.finish();
}

/// What was decided on a state that a daemon showed is not carried out by the next one, nor after the session was closed and
/// taken up again: no number comes twice.
#[test]
fn a_generation_of_before_a_restart_is_stale() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene();
    let session = scene.session();
    session.turn("say: before");
    // The same steps in each daemon: put on its server by a look, or by the request.
    scene.restart();
    let restarted = scene.take_up(session.id());
    assert_eq!(told(&restarted)[..2], ["server_ready", "server_ended"], "the end of the server was not recorded");
    let decided_on = restarted.snapshot().capability_generation;
    scene.restart();
    let session = scene.take_up(session.id());
    let steps = faked.steps().len();
    let late = session.request("session.prompt.send", &json!({"text": "say: too late"}), Some(decided_on), "late");
    assert_eq!((late.status, late.body["code"].as_str()), (409, Some("generation_stale")), "{}", late.text);
    let current = session.snapshot().capability_generation;
    assert!(decided_on < current && current < 1 << 53, "{decided_on} and {current}");
    assert_eq!(late.body["capability_generation"], json!(current));
    assert_eq!(faked.steps().len(), steps);
    assert_eq!(session.close(false).status, 200);
    let body = json!({"workspace": scene.workspace(), "conversation_id": session.id()});
    let attached = scene.client().post("/v1/sessions/attach", &body).unwrap();
    assert!(attached.body["capability_generation"].as_u64().unwrap() > current, "{}", attached.text);
    scene.finish();
}

/// An accept without an answer is looked into without anyone asking: what became of it is then told.
#[test]
fn an_accept_without_an_answer_is_settled_after_the_daemon_was_killed() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene();
    let session = scene.session();
    let begun = scene.marker("begun");
    let batch = session.propose(&format!("run: {} && sleep 300", begun.command()));
    let accept = json!({
        "operation_id": "session.approval.decide", "client_action_id": "in-flight",
        "input": {"approval_id": batch.approval_id, "decision": "accept"},
        "capability_generation": session.snapshot().capability_generation,
    });
    let accepting = {
        let (client, path) = (session.client().clone(), session.path("/actions"));
        std::thread::spawn(move || drop(client.post(&path, &accept)))
    };
    wait_until("the action to begin", LIMIT, || Some(()).filter(|()| begun.runs() == 1));
    scene.kill_daemon();
    accepting.join().unwrap();
    scene.serve_again();
    let session = scene.take_up(session.id());
    wait_until("the session to be on a server", LIMIT, || server_in(&scene, &scene.workspace())?.pid);
    wait_until("its batch to be shown", LIMIT, || (line(&scene, &session).pending_actions == 1).then_some(()));
    let doubtful = session.wait_pending();
    assert!(doubtful.actions[0].in_doubt, "{doubtful:?}");
    begun.assert_runs(1);
    scene.finish();
}

/// More workspaces have something that waits than servers may run: one after the other gets its turn.
#[test]
fn a_start_of_the_daemon_keeps_to_the_limit_of_servers() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene_with(|setup| setup.agent_server = "max_servers = 3\n".to_owned());
    let workspaces = ["a", "b", "c"].map(|name| scene.home().new_workspace(name).unwrap().canonicalize().unwrap());
    let queued = workspaces.map(|workspace| queue_behind(&scene.session_in(&workspace), "say: later"));
    scene.kill_daemon();
    scene.home_mut().reconfigure(|setup| setup.agent_server = "max_servers = 1\n".to_owned()).unwrap();
    scene.serve_again();
    let receipt =
        |key: &String| -> Receipt { typed(&scene.client().get(&format!("/v1/actions/{key}")).unwrap(), &[200]) };
    wait_until("every queued prompt to be delivered", LIMIT, || {
        let running = scene.status().servers.iter().filter(|server| server.state != ServerState::Stopped).count();
        assert!(running <= 1, "{:?}", scene.status().servers);
        queued.iter().all(|key| receipt(key).state == ReceiptState::Applied).then_some(())
    });
    scene.finish();
}

/// A healthy server on which the session cannot be put for a while: it is not given up, and nobody has to ask. The former limit
/// was six tries.
#[test]
fn a_session_with_something_that_waits_is_put_on_its_server_however_often_that_failed() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene();
    let session = scene.session();
    let key = queue_behind(&session, "say: later");
    scene.kill_daemon();
    let before = faked.asked_for("set_policy");
    faked.follow(Plan::default().with_fault_times("set_policy", 0, Some(7), Fault::StatusInstead(500)));
    scene.serve_again();
    // By the record of requests and the receipt alone: to look at the session would be to ask for it.
    wait_until("the prompt to be delivered", 2 * LIMIT, || {
        let receipt: Receipt = typed(&scene.client().get(&format!("/v1/actions/{key}")).unwrap(), &[200]);
        (receipt.state == ReceiptState::Applied).then_some(())
    });
    assert!(faked.asked_for("set_policy") >= before + 8, "{:?}", faked.asked());
    scene.finish();
}

/// A session that cannot be put on its server takes the place of other workspaces' servers a few times, and then no more.
#[test]
fn a_session_that_cannot_be_put_on_its_server_does_not_drive_others_off_for_ever() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene_with(|setup| setup.agent_server = "max_servers = 1\n".to_owned());
    let session = scene.session();
    let key = queue_behind(&session, "say: later");
    scene.kill_daemon();
    let before = faked.asked_for("set_policy");
    faked.follow(Plan::default().with_fault("set_policy", Fault::StatusInstead(500)));
    scene.serve_again();
    wait_until("some tries", LIMIT, || (faked.asked_for("set_policy") >= before + 4).then_some(()));
    let other = scene.home().new_workspace("other").unwrap().canonicalize().unwrap();
    let refused = scene.client().post("/v1/sessions", &json!({"workspace": other})).unwrap();
    assert!(refused.status >= 500, "{}", refused.text);
    let session = Session::clone(&session).with_client(scene.client().clone());
    wait_until("the session to find no place", LIMIT, || {
        line(&scene, &session).blocked_reason.filter(|reason| reason.code == "server_limit")
    });
    let server = server_in(&scene, &other).unwrap();
    assert_eq!(server.state, ServerState::Ready);
    let warned = scene.daemon().log().unwrap().matches("could not be put on its server; it is tried on").count();
    assert_eq!(warned, 1);
    // Asked for, it comes at once.
    faked.follow(Plan::default());
    let session = scene.take_up(session.id());
    assert_eq!(session.snapshot().session_id, session.id());
    assert_eq!(session.wait_final(&key).state, ReceiptState::Applied);
    scene.finish();
}
