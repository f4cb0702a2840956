//! What could not be recorded at once is, without a restart, and holds up nothing else.

use super::{edit, get, ledger};
use api_types::ReceiptState;
use gatepost_tests::{Faked, LIMIT, in_own_mounts, refusal_code, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::fake_server::Plan;

/// The store failed in another way than for want of room, and nothing else tells that it works again.
#[test]
fn a_receipt_that_could_not_be_closed_is_closed_by_itself() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene();
    let session = scene.session();
    scene.stop_daemon();
    let hindered = "create trigger hindered before update on receipts when new.client_action_id = 'stuck' \
                    and not exists (select 1 from receipts where client_action_id = 'release') \
                    begin select raise(abort, 'hindered'); end";
    edit(&ledger(scene.home()), hindered);
    scene.serve_again();
    let session = scene.take_up(session.id());
    let reply = session.ask_as("session.turn.interrupt", &json!({}), "stuck");
    assert_eq!(refusal_code(&reply), "store_failed", "{}", reply.text);
    assert_eq!(session.receipt("stuck").state, ReceiptState::InFlight);
    let reply = session.ask_as("session.title.set", &json!({"title": "u"}), "release");
    assert_eq!(reply.status, 200, "{}", reply.text);
    let closed = session.wait_final("stuck");
    assert_eq!((closed.state, closed.code.as_deref()), (ReceiptState::Rejected, Some("store_failed")), "{closed:?}");
    scene.finish();
}

/// Nothing of one session can be journaled, whatever room there is: that is no want of room, and no matter of the others.
#[test]
fn a_session_that_cannot_be_journaled_holds_up_no_other() {
    in_own_mounts("owed::a_session_that_cannot_be_journaled_holds_up_no_other", || {
        let faked = Faked::new(Plan::default());
        let (mut scene, disk) = faked.scene_on_small_disk();
        let mut sessions = [scene.session(), scene.session()].map(|session| session.id().to_owned());
        sessions.sort();
        scene.stop_daemon();
        // The first that is looked at.
        let hindered = format!(
            "create trigger hindered before insert on events when new.session_id = '{}' \
             begin select raise(abort, 'hindered'); end",
            sessions[0]
        );
        edit(&scene.home().state().join("journal.sqlite3"), &hindered);
        scene.serve_again();
        let sound = scene.take_up(&sessions[1]);
        sound.turn("say: before");
        drop(scene.client().get(&format!("/v1/sessions/{}", sessions[0])).unwrap());
        disk.fill();
        kill_process(Pid::from_raw(scene.server_pid().unwrap().cast_signed()).unwrap(), Signal::KILL).unwrap();
        let readyz = |status: u16| (scene.client().get("/v1/readyz").unwrap().status == status).then_some(());
        wait_until("the daemon to notice", LIMIT, || readyz(503));
        disk.make_room();
        wait_until("the daemon to be ready", LIMIT, || readyz(200));
        sound.wait_event("word of the end", |event| event.payload["event"] == "server_ended");
        sound.turn("say: it goes on");
        scene.stop_daemon();
        drop(disk);
    });
}

/// A restart of the server puts one batch in another's place: both is told, in order, once it can be.
#[test]
fn a_batch_is_told_of_although_the_end_of_the_one_before_could_not_be_journaled() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene();
    let ids = [scene.session(), scene.session()].map(|session| session.id().to_owned());
    scene.stop_daemon();
    let hindered = "create trigger hindered before insert on events when new.kind = 'approval_resolved' \
                    and not exists (select 1 from events where payload_json like '%release%') \
                    begin select raise(abort, 'hindered'); end";
    edit(&scene.home().state().join("journal.sqlite3"), hindered);
    scene.serve_again();
    let [session, other] = ids.map(|id| scene.take_up(&id));
    let before = session.propose("run: echo waits");
    session.wait_event("word of the batch", |event| event.payload["approval_id"] == before.approval_id.as_str());
    kill_process(Pid::from_raw(scene.server_pid().unwrap().cast_signed()).unwrap(), Signal::KILL).unwrap();
    let is_hindered = || scene.daemon().log().unwrap().contains("hindered").then_some(());
    wait_until("the end of the batch not to be journaled", LIMIT, is_hindered);
    other.turn("say: release");
    let after = wait_until("the batch on another server", LIMIT, || {
        session.pending().filter(|now| now.approval_id != before.approval_id)
    });
    session.reject(&after);
    let told = |event: &api_types::Event| {
        event.kind.as_str() == "approval_requested" && event.payload["approval_id"] == after.approval_id.as_str()
    };
    session.wait_event("word of the batch that took its place", told);
    let kinds: Vec<String> = session.events().iter().map(|event| event.kind.as_str().to_owned()).collect();
    let own: Vec<&str> = kinds.iter().map(String::as_str).filter(|kind| kind.starts_with("approval_")).collect();
    assert_eq!(own, ["approval_requested", "approval_resolved", "approval_requested", "approval_resolved"]);
    scene.finish();
}

/// Closed is what the ledger says is closed: readers are told once they can be, and the session may be attached again.
#[test]
fn a_close_that_could_not_be_journaled_is_a_close() {
    in_own_mounts("owed::a_close_that_could_not_be_journaled_is_a_close", || {
        let faked = Faked::new(Plan::default());
        let (mut scene, disk) = faked.scene_on_small_disk();
        let mut statuses = std::collections::BTreeSet::new();
        for pages in 0..12 {
            let session = scene.session();
            session.turn("say: before");
            disk.leave_pages(pages);
            let status = session.close(false).status;
            statuses.insert(status);
            disk.make_room();
            wait_until("room", LIMIT, || (scene.client().get("/v1/readyz").unwrap().status == 200).then_some(()));
            if status == 200 {
                let listed = get(scene.client(), "/v1/sessions");
                let is_it = |line: &serde_json::Value| line["session_id"] == session.id();
                assert!(!listed["sessions"].as_array().unwrap().iter().any(is_it), "{pages}: {listed}");
                let body = json!({"conversation_id": session.id(), "workspace": scene.workspace()});
                let attached = scene.client().post("/v1/sessions/attach", &body).unwrap();
                assert!([200, 201].contains(&attached.status), "{pages}: {}", attached.text);
                session.wait_event("word of the close", |event| event.payload["event"] == "session_closed");
                let closes = session.events().iter().filter(|event| event.payload["event"] == "session_closed").count();
                assert_eq!(closes, 1, "{pages}");
            }
            session.turn("say: it goes on");
        }
        assert_eq!(statuses.into_iter().collect::<Vec<_>>(), [200, 503], "the disk was full nowhere, or everywhere");
        scene.stop_daemon();
        drop(disk);
    });
}
