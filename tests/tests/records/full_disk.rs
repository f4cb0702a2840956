//! A full disk under a daemon that runs: a clear refusal, nothing sent, nothing half written, and no restart needed.

use super::{changed, files, get, home};
use api_types::{OverallState, ReceiptState};
use gatepost_tests::{Faked, LIMIT, SETTLE, Scene, Session, SmallDisk, in_own_mounts, refusal_code, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};
use testkit::daemon::Reply;
use testkit::fake_server::{ControlAnswer, Plan};

/// Refused for want of room, in words that say where.
#[track_caller]
fn assert_disk_full(what: &str, reply: &Reply) {
    assert_eq!((reply.status, refusal_code(reply).as_str()), (503, "disk_full"), "{what}: {}", reply.text);
    assert_eq!(reply.body["retryable"], true, "{what}: {}", reply.text);
    assert!(reply.body["detail"].as_str().unwrap().contains("/state"), "{what}: {}", reply.text);
}

/// The daemon notices by itself that there is room again.
fn wait_ready(scene: &Scene) {
    let begun = Instant::now();
    while scene.client().get("/v1/readyz").unwrap().status != 200 {
        assert!(begun.elapsed() < LIMIT, "the daemon is not ready again:\n{}", scene.daemon().log().unwrap());
        std::thread::sleep(Duration::from_millis(100));
    }
    // A server that ended meanwhile is still said to have.
    let findings = get(scene.client(), "/v1/status")["findings"].to_string();
    assert!(!findings.contains("disk_full") && !findings.contains("records_read_only"), "{findings}");
}

/// Both files are whole: with the daemon, without it, and at its next start.
fn assert_records_whole(scene: &mut Scene, disk: SmallDisk) {
    assert_eq!(get(scene.client(), "/v1/audit/verification")["intact"], true);
    scene.stop_daemon();
    let told = scene.home().run(&["audit", "verify", "--json"]).unwrap();
    assert_eq!((told.code, &told.json()["intact"]), (Some(0), &json!(true)), "{told:?}");
    scene.serve_again();
    assert!(!scene.daemon().log().unwrap().contains("damaged"), "{}", scene.daemon().log().unwrap());
    scene.stop_daemon();
    drop(disk);
}

#[test]
fn on_a_full_disk_nothing_is_sent_and_everything_goes_on_once_there_is_room() {
    in_own_mounts("full_disk::on_a_full_disk_nothing_is_sent_and_everything_goes_on_once_there_is_room", || {
        let faked = Faked::new(Plan::default());
        let (mut scene, disk) = faked.scene_on_small_disk();
        let (session, idle) = (scene.session(), scene.session());
        let marker = scene.marker("full");
        let batch = session.propose(&marker.directive());
        let (pid, events) = (scene.daemon().pid(), session.events().len());
        disk.fill();
        let sent = faked.changes();
        let decide = |decision: &str| json!({"approval_id": batch.approval_id, "decision": decision});
        let asked = [
            ("accept", &session, "session.approval.decide", decide("accept")),
            ("reject", &session, "session.approval.decide", decide("reject")),
            ("replace", &session, "session.prompt.send", json!({"text": "say: no", "on_pending": "reject"})),
            ("interrupt", &session, "session.turn.interrupt", json!({})),
            ("prompt", &idle, "session.prompt.send", json!({"text": "say: hello"})),
            ("title", &idle, "session.title.set", json!({"title": "t"})),
        ];
        for (key, of, operation, input) in &asked {
            assert_disk_full(key, &of.ask_as(operation, input, key));
            let receipt = scene.client().get(&format!("/v1/actions/{key}")).unwrap();
            assert_eq!((receipt.status, refusal_code(&receipt).as_str()), (404, "action_not_found"), "{key}");
        }
        let workspace = scene.workspace();
        assert_disk_full("create", &scene.client().post("/v1/sessions", &json!({"workspace": workspace})).unwrap());
        assert_disk_full("delete", &idle.close(true));
        assert_eq!(faked.changes(), sent, "something was sent without a durable intent");
        assert_eq!(session.snapshot().pending_actions, 1);
        assert_eq!(session.events().len(), events, "reading goes on");
        let status = scene.status();
        let finding = status.findings.iter().find(|finding| finding.code == "disk_full").unwrap();
        assert_eq!(status.state, OverallState::Blocked);
        assert!(finding.remedy.contains(&*scene.home().state().to_string_lossy()), "{finding:?}");
        let ready = scene.client().get("/v1/readyz").unwrap();
        assert_eq!((ready.status, &ready.body["reasons"][0]["code"]), (503, &json!("disk_full")), "{}", ready.text);
        assert_eq!(scene.home().run(&["status", "--json"]).unwrap().code, Some(4));
        marker.assert_absent();

        disk.make_room();
        wait_ready(&scene);
        // The very keys that were refused.
        for (key, of, operation, input) in asked.iter().rev().filter(|(key, ..)| ["accept", "prompt"].contains(key)) {
            let reply = of.ask_as(operation, input, key);
            assert_eq!((reply.status, &reply.body["state"]), (200, &json!("applied")), "{key}: {}", reply.text);
        }
        session.wait_quiet();
        marker.assert_runs(1);
        session.turn("say: it goes on");
        assert_eq!(scene.daemon().pid(), pid);
        assert!(session.events().len() > events);
        assert_records_whole(&mut scene, disk);
    });
}

/// Whatever step of a decision finds no room: what was sent and ran is told as that, everything else can be done again.
#[test]
fn a_disk_that_fills_up_anywhere_in_a_decision_leaves_no_receipt_open() {
    in_own_mounts("full_disk::a_disk_that_fills_up_anywhere_in_a_decision_leaves_no_receipt_open", || {
        let faked = Faked::new(Plan::default());
        let (mut scene, disk) = faked.scene_on_small_disk();
        let session = scene.session();
        let mut codes = std::collections::BTreeMap::<String, u32>::new();
        for pages in (0..14).chain((14..50).step_by(6)) {
            let marker = scene.marker(&format!("room-{pages}"));
            let batch = session.propose(&marker.directive());
            let key = format!("accept-{pages}");
            disk.leave_pages(pages);
            let reply = std::thread::scope(|scope| {
                let accepting = scope.spawn(|| session.accept_as(&batch.approval_id, &key));
                // One that was sent is waited for, and what came of it cannot be recorded.
                let begun = Instant::now();
                while !accepting.is_finished() && begun.elapsed() < SETTLE {
                    std::thread::sleep(Duration::from_millis(20));
                }
                disk.make_room();
                accepting.join().unwrap()
            });
            wait_ready(&scene);
            let outcome = settled(&scene, &session, &key);
            *codes.entry(format!("{} {} {outcome}", reply.status, reply.body["code"])).or_default() += 1;
            session.wait_quiet();
            if outcome == "applied" {
                marker.assert_runs(1);
                continue;
            }
            assert!(["none", "rejected"].contains(&outcome.as_str()), "{pages}: {outcome} {}", reply.text);
            marker.assert_absent();
            session.approve_to_end(&session.wait_pending());
            marker.assert_runs(1);
        }
        assert!(codes.len() > 1, "the disk filled up nowhere, or everywhere: {codes:?}");
        told_of_each_batch(&session);
        assert_records_whole(&mut scene, disk);
    });
}

/// The grant fails, so the accept certainly never left; that it did not is recorded as soon as it can be, and nothing is in doubt.
#[test]
fn an_accept_that_never_left_is_not_in_doubt_for_want_of_room() {
    in_own_mounts("full_disk::an_accept_that_never_left_is_not_in_doubt_for_want_of_room", || {
        let faked = Faked::new(Plan::default());
        let (mut scene, disk) = faked.scene_on_small_disk();
        let session = scene.session();
        let mut codes = std::collections::BTreeSet::new();
        for pages in [12, 16, 19, 20, 22, 40] {
            let marker = scene.marker(&format!("ungranted-{pages}"));
            let batch = session.propose(&marker.directive());
            let key = format!("ungranted-{pages}");
            faked.follow(Plan {
                grant_answer: ControlAnswer::Lie,
                exit_at_once: (pages == 19).then_some(1),
                ..Plan::default()
            });
            disk.leave_pages(pages);
            let reply = session.accept_as(&batch.approval_id, &key);
            codes.insert(reply.status);
            disk.make_room();
            // Once, while no server can be started.
            assert_eq!(settled(&scene, &session, &key), "rejected", "{pages}: {}", reply.text);
            faked.follow(Plan::default());
            wait_ready(&scene);
            let again = session.wait_pending();
            assert!(!again.actions[0].in_doubt, "{pages}: {again:?}");
            session.approve_to_end(&again);
            marker.assert_runs(1);
        }
        assert_eq!(codes.into_iter().collect::<Vec<_>>(), [200, 503], "the disk filled up nowhere, or everywhere");
        assert_records_whole(&mut scene, disk);
    });
}

/// An interrupt that is refused has cancelled nothing, or all of it: no prompt is forgotten.
#[test]
fn an_interrupt_on_a_disk_that_fills_up_forgets_no_queued_prompt() {
    in_own_mounts("full_disk::an_interrupt_on_a_disk_that_fills_up_forgets_no_queued_prompt", || {
        let faked = Faked::new(Plan::default());
        let (mut scene, disk) = faked.scene_on_small_disk();
        let session = scene.session();
        let mut outcomes = std::collections::BTreeSet::new();
        for pages in 0..12 {
            session.prompt("slow 600000: say: never");
            session.wait_status(&["running"]);
            let queued: Vec<String> = (0..3).map(|_| session.prompt("say: later").client_action_id).collect();
            let key = format!("interrupt-{pages}");
            disk.leave_pages(pages);
            let reply = session.ask_as("session.turn.interrupt", &json!({}), &key);
            disk.make_room();
            wait_ready(&scene);
            let outcome = settled(&scene, &session, &key);
            outcomes.insert(outcome.clone());
            if outcome != "applied" {
                assert_disk_full("interrupt", &reply);
                session.interrupt();
            }
            for key in queued {
                let receipt = session.wait_final(&key);
                assert_eq!(receipt.code.as_deref(), Some("interrupted"), "{pages} {outcome}: {receipt:?}");
            }
            session.wait_quiet();
        }
        assert!(outcomes.len() > 1, "the disk filled up nowhere, or everywhere: {outcomes:?}");
        assert_records_whole(&mut scene, disk);
    });
}

/// The ways to stop the agent that need no room: a close interrupts first, and a stop of the daemon ends its servers. The next
/// start waits for room, and finds everything.
#[test]
fn the_agent_can_be_stopped_on_a_full_disk_and_nothing_begins_on_one() {
    in_own_mounts("full_disk::the_agent_can_be_stopped_on_a_full_disk_and_nothing_begins_on_one", || {
        let faked = Faked::new(Plan::default());
        let (mut scene, disk) = faked.scene_on_small_disk();
        let (session, other) = (scene.session(), scene.session());
        let batch = other.propose(&scene.marker("waits").directive());
        session.prompt("slow 600000: say: never");
        session.wait_status(&["running"]);
        disk.fill();
        assert_disk_full("close", &session.close(false));
        assert_eq!(faked.asked_for("interrupt"), 1);
        scene.stop_daemon();
        // What it closed gave up some room.
        disk.fill();
        let before = files(scene.home(), "");
        let told = scene.home().run(&["serve", "--json"]).unwrap();
        assert_eq!((told.code, &told.json()["error"]["code"]), (Some(4), &json!("disk_full")), "{told:?}");
        let doctor = scene.home().run(&["doctor", "--json"]).unwrap().json();
        let room = doctor["findings"].as_array().unwrap().iter().find(|one| one["check"] == "disk_space").unwrap();
        assert_eq!(room["state"], "failed", "{room}");
        assert!(room["remedy"].as_str().unwrap().contains("make room"), "{room}");
        assert_eq!(changed(&before, &files(scene.home(), "")), Vec::<String>::new());
        disk.make_room();
        scene.serve_again();
        assert_ne!(scene.take_up(session.id()).snapshot().status, "running");
        let other = scene.take_up(other.id());
        assert_eq!(other.wait_pending().actions[0].event_id, batch.actions[0].event_id);
        other.approve_to_end(&other.wait_pending());
        scene.marker("waits").assert_runs(1);
        assert_records_whole(&mut scene, disk);
    });
}

/// What gatepost itself has to tell readers is told once it can be.
#[test]
fn the_end_of_a_server_on_a_full_disk_is_told_once_there_is_room() {
    in_own_mounts("full_disk::the_end_of_a_server_on_a_full_disk_is_told_once_there_is_room", || {
        let faked = Faked::new(Plan::default());
        let (mut scene, disk) = faked.scene_on_small_disk();
        let session = scene.session();
        disk.fill();
        let pid = Pid::from_raw(scene.server_pid().unwrap().cast_signed()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        wait_until("the daemon to notice", LIMIT, || {
            (scene.client().get("/v1/readyz").unwrap().status == 503).then_some(())
        });
        disk.make_room();
        wait_ready(&scene);
        session.wait_event("word of the end", |event| event.payload["event"] == "server_ended");
        session.wait_event("word of the new start", |event| event.payload["event"] == "server_restarted");
        session.turn("say: it goes on");
        assert_records_whole(&mut scene, disk);
    });
}

/// An approved command could have filled the disk; what runs unasked after it is noticed and stopped all the same.
#[test]
fn what_runs_unasked_on_a_full_disk_is_interrupted_and_blocks_before_there_is_room() {
    in_own_mounts("full_disk::what_runs_unasked_on_a_full_disk_is_interrupted_and_blocks_before_there_is_room", || {
        let faked = Faked::new(Plan { has_no_latch: true, ..Plan::default() });
        let (mut scene, disk) = faked.scene_on_small_disk();
        let session = scene.session();
        let (asked, unasked, go) = (scene.marker("asked"), scene.marker("unasked"), scene.marker("go"));
        let waits = format!("{} && while [ ! -e {} ]; do sleep 0.05; done", asked.command(), go.path().display());
        let script = format!("run: {waits}\nthen {}\nthen slow 600000: say: never", unasked.directive());
        let batch = session.propose(&script);
        // Whoever asks for the accept runs the turn by this plan.
        faked.follow(Plan { has_no_latch: true, asks_nothing: true, ..Plan::default() });
        std::thread::scope(|scope| {
            let accepting = scope.spawn(|| session.accept_as(&batch.approval_id, "asked"));
            wait_until("the approved command", LIMIT, || (asked.runs() == 1).then_some(()));
            disk.fill();
            fs::write(go.path(), "").unwrap();
            wait_until("the interrupt", LIMIT, || (faked.asked_for("interrupt") > 0).then_some(()));
            unasked.assert_runs(1);
            let blocked = wait_until("the block", LIMIT, || session.snapshot().blocked_reason);
            assert_eq!(blocked.code, "unreviewed_action");
            assert_eq!(session.snapshot().session_id, session.id());
            assert_eq!(faked.asked_for("interrupt"), 1, "once is enough");
            assert_eq!(scene.client().get("/v1/readyz").unwrap().status, 503, "there was room meanwhile");
            disk.make_room();
            accepting.join().unwrap();
        });
        wait_ready(&scene);
        asked.assert_runs(1);
        let told = session.wait_event("word of the block", |event| event.payload["event"] == "session_blocked");
        assert_eq!(told.payload["observations"].as_array().unwrap().len(), 1, "{told:?}");
        let again = session.events().iter().filter(|event| event.payload["event"] == "session_blocked").count();
        assert_eq!(again, 1);
        assert_records_whole(&mut scene, disk);
    });
}

/// A first start that finds no room leaves nothing half made behind.
#[test]
fn a_first_start_on_a_full_disk_leaves_nothing_half_made() {
    in_own_mounts("full_disk::a_first_start_on_a_full_disk_leaves_nothing_half_made", || {
        for pages in 0..40 {
            let home = home();
            let disk = SmallDisk::under_state_of(&home);
            disk.leave_pages(pages);
            if pages == 0 {
                let told = home.run(&["serve", "--json"]).unwrap();
                assert_eq!((told.code, &told.json()["error"]["code"]), (Some(4), &json!("disk_full")), "{told:?}");
            }
            let started = home.serve();
            disk.make_room();
            if let Ok(daemon) = started {
                assert!(pages > 0 && daemon.stop().unwrap().status.success());
                break;
            }
            let log = fs::read_to_string(home.path().join("daemon.log")).unwrap_or_default();
            let left: Vec<String> = files(&home, "").into_keys().collect();
            assert!(
                home.serve().is_ok_and(|daemon| daemon.stop().unwrap().status.success()),
                "{pages} {left:?}: {log}"
            );
        }
    });
}

/// Root, too, is held back by a file system that is mounted read-only.
#[test]
fn on_a_read_only_file_system_the_start_is_refused_and_nothing_is_changed() {
    in_own_mounts("full_disk::on_a_read_only_file_system_the_start_is_refused_and_nothing_is_changed", || {
        let faked = Faked::new(Plan::default());
        let (mut scene, disk) = faked.scene_on_small_disk();
        let session = scene.session();
        let batch = session.propose(&scene.marker("read-only").directive());
        scene.stop_daemon();
        let before = files(scene.home(), "");
        disk.set_read_only(true);
        let told = scene.home().run(&["serve", "--json"]).unwrap();
        assert_eq!((told.code, &told.json()["error"]["code"]), (Some(4), &json!("records_read_only")), "{told:?}");
        assert_eq!(changed(&before, &files(scene.home(), "")), Vec::<String>::new());
        disk.set_read_only(false);
        scene.serve_again();
        let session = scene.take_up(session.id());
        assert_eq!(session.wait_pending().actions[0].event_id, batch.actions[0].event_id);
        assert_records_whole(&mut scene, disk);
    });
}

/// What became of a key in the end, without anybody asking for more: `none` where it was not used.
fn settled(scene: &Scene, session: &Session, key: &str) -> String {
    if scene.client().get(&format!("/v1/actions/{key}")).unwrap().status == 404 {
        return "none".to_owned();
    }
    let receipt = session.wait_final(key);
    assert_ne!(receipt.state, ReceiptState::OutcomeUnknown, "{receipt:?}");
    serde_json::to_value(receipt.state).unwrap().as_str().unwrap().to_owned()
}

/// Readers were told of every batch, and of what became of it, once.
fn told_of_each_batch(session: &Session) {
    let of_kind = |kind: &str| -> Vec<Value> {
        let events = serde_json::to_value(session.events()).unwrap();
        let of_kind = events.as_array().unwrap().iter().filter(|event| event["kind"] == kind);
        of_kind.map(|event| event["payload"]["approval_id"].clone()).collect()
    };
    let (requested, resolved) = (of_kind("approval_requested"), of_kind("approval_resolved"));
    assert_eq!(requested, resolved);
}
