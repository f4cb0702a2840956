//! A server that is killed takes its tree along, no other server's; its sessions go on with a new one.

use crate::left::{Hidden, Left, runs};
use crate::port::{self, Squatter};
use crate::{approve_restored, binding, kill, server_of, tree, wait_gone};
use api_types::ReceiptState;
use gatepost_tests::{LIMIT, Scene, Session, refusal_code, wait_until};
use serde_json::json;
use std::path::Path;
use testkit::daemon::server_port;

#[test]
fn a_killed_server_takes_its_tree_along_and_its_sessions_go_on() {
    let mut scene = Scene::with(|setup| setup.agent_server = "max_servers = 2\n".to_owned());
    let workspace = scene.workspace();
    let session = scene.session();
    let left = Left::by(&scene, &session, Hidden::Too);
    let neighbour = Neighbour::start(&scene);

    while_a_batch_waits(&scene, &session, &left);
    neighbour.check_untouched(&scene);
    neighbour.check_limit(&scene);
    while_an_action_runs(&scene, &session);
    neighbour.check_untouched(&scene);

    // Stopping ends what any server's agent left, the stubborn and the hidden too.
    let left = Left::by(&scene, &session, Hidden::Too);
    let (server, other) = (server_of(&scene, &workspace).pid.unwrap(), neighbour.server.pid.unwrap());
    let sockets: Vec<_> = [&workspace, &neighbour.workspace].map(|of| binding(&scene, of)).into();
    scene.stop_daemon();
    assert_eq!(left.alive(), []);
    assert!(!runs(server) && !runs(other));
    for binding in sockets {
        assert!(!binding.join("tmux").exists() && !binding.join("tmp").exists(), "temporary files are left");
    }
    assert!(!scene.home().socket().exists(), "the daemon's socket is left");
}

/// A batch that waits is shown again by the next server, under another id; the old one is good for nothing.
fn while_a_batch_waits(scene: &Scene, session: &Session, left: &Left) {
    let workspace = scene.workspace();
    let marker = scene.marker("waiting");
    let batch = session.propose(&marker.directive());
    let before = server_of(scene, &workspace);
    assert!(tree(scene, &workspace).iter().any(|process| process.command.contains("tmux")));
    let port = server_port(before.pid.unwrap()).unwrap();
    // The daemon has the socket too, so it outlives the server.
    assert_ne!(port::holds(scene.daemon().pid(), port), Some(false));
    let squatter = Squatter::start(port);
    wait_until("the port to be refused to a stranger", LIMIT, || Some(()).filter(|()| squatter.refusals() > 0));

    kill(before.pid.unwrap());
    wait_gone(scene, &workspace, &[left]);
    marker.assert_absent();

    let again = session.wait_pending();
    let after = server_of(scene, &workspace);
    assert_ne!((before.pid, &before.server_start_id), (after.pid, &after.server_start_id));
    assert_eq!(before.launch_config_digest, after.launch_config_digest);
    assert_ne!(batch.approval_id, again.approval_id, "a restart voids what was shown");
    assert_eq!(batch.actions, again.actions);
    assert_eq!(refusal_code(&session.ask_accept(&batch.approval_id)), "approval_superseded");
    assert!(session.events().iter().any(|event| event.payload["event"] == "server_ended"));

    // The socket is closed once nothing of ours can speak to it any more: whoever gets the port then hears nothing.
    assert_eq!(squatter.stop(), [] as [String; 0], "someone spoke to a stranger on the server's port");
    marker.assert_absent();
    approve_restored(scene, session, &again);
    marker.assert_runs(1);
}

/// What was accepted and had begun is not known to have been done. The rest of its batch can only be rejected.
fn while_an_action_runs(scene: &Scene, session: &Session) {
    let (begun, never) = (scene.marker("begun"), scene.marker("never"));
    let batch = session.propose(&format!("run all: {} && sleep 300 ;; {}", begun.command(), never.command()));
    assert_eq!(batch.actions.len(), 2);
    let accepting = {
        let (session, approval_id) = (session.clone(), batch.approval_id.clone());
        std::thread::spawn(move || session.accept_as(&approval_id, "accept-in-flight"))
    };
    wait_until("the action to begin", LIMIT, || Some(()).filter(|()| begun.runs() == 1));
    kill(server_of(scene, &scene.workspace()).pid.unwrap());
    wait_gone(scene, &scene.workspace(), &[]);

    let doubtful = session.wait_pending();
    let receipt = session.wait_final("accept-in-flight");
    assert_eq!(receipt.state, ReceiptState::OutcomeUnknown, "{receipt:?}");
    let reply = accepting.join().unwrap();
    assert_eq!(reply.body["client_action_id"], "accept-in-flight", "{}", reply.text);
    assert!(doubtful.actions.iter().all(|action| action.in_doubt), "{doubtful:?}");
    assert_eq!(doubtful.actions.last().unwrap().event_id, batch.actions[1].event_id);
    assert_eq!(refusal_code(&session.ask_accept(&doubtful.approval_id)), "approval_in_doubt");
    let prompt = session.refused("session.prompt.send", &json!({"text": "run: ls"}));
    assert!(["approval_in_doubt", "approval_pending"].contains(&prompt.as_str()), "{prompt}");
    // The same key again is answered by what became of it, for the same content only; nothing is sent.
    let replayed = session.accept_as(&batch.approval_id, "accept-in-flight");
    assert_eq!((replayed.status, &replayed.body["state"]), (200, &json!("outcome_unknown")));
    assert_eq!(replayed.body["replayed"], true);
    let reused = session.accept_as(&doubtful.approval_id, "accept-in-flight");
    assert_eq!((reused.status, refusal_code(&reused).as_str()), (422, "client_action_id_reused"));
    session.reject(&doubtful);
    never.assert_absent();
    begun.assert_runs(1);

    let after = scene.marker("after");
    session.approve_to_end(&session.propose(&after.directive()));
    after.assert_runs(1);
    never.assert_absent();
    begun.assert_runs(1);
}

/// A second workspace with a server of its own, on which a batch waits.
struct Neighbour {
    workspace: std::path::PathBuf,
    session: Session,
    approval_id: String,
    server: api_types::Server,
    processes: Vec<u32>,
}

impl Neighbour {
    fn start(scene: &Scene) -> Self {
        let workspace = scene.home().new_workspace("neighbour").unwrap().canonicalize().unwrap();
        let session = scene.session_in(&workspace);
        session.approve_to_end(&session.propose("run: echo shell"));
        let approval_id = session.propose("run: echo waits").approval_id;
        let server = server_of(scene, &workspace);
        assert_ne!(server.pid, server_of(scene, &scene.workspace()).pid);
        let processes = pids(scene, &workspace);
        assert!(processes.len() > 2, "{processes:?}");
        Self { workspace, session, approval_id, server, processes }
    }

    fn check_untouched(&self, scene: &Scene) {
        let now = server_of(scene, &self.workspace);
        assert_eq!((now.pid, &now.server_start_id), (self.server.pid, &self.server.server_start_id));
        assert_eq!(pids(scene, &self.workspace), self.processes);
        assert_eq!(self.session.pending().unwrap().approval_id, self.approval_id);
    }

    /// Both servers have a batch that waits, so neither may be stopped for a third.
    fn check_limit(&self, scene: &Scene) {
        let session = scene.session();
        let batch = session.propose("run: echo busy");
        let third = scene.home().new_workspace("third").unwrap();
        let reply = scene.client().post("/v1/sessions", &json!({"workspace": third})).unwrap();
        assert_eq!((reply.status, refusal_code(&reply).as_str()), (503, "server_limit"));
        assert_eq!(scene.status().servers.iter().filter(|server| server.pid.is_some()).count(), 2);
        self.check_untouched(scene);
        session.reject(&batch);
    }
}

fn pids(scene: &Scene, workspace: &Path) -> Vec<u32> {
    tree(scene, workspace).iter().map(|process| process.pid).collect()
}
