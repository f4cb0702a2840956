//! `gatepost prompt --wait` ends with its own turn, whatever happens in the middle of it.

use super::{kill, pid, wait_other_server};
use gatepost_tests::{Faked, LIMIT, Scene, Session, wait_until};
use serde_json::Value;
use testkit::fake_server::{Fault, Plan};

/// What the command line said at its end, once the turn ran and something was done to it.
fn wait_for_turn(scene: &Scene, session: &Session, text: &str, meanwhile: impl FnOnce()) -> (Option<i32>, Value) {
    std::thread::scope(|threads| {
        let words = ["prompt", session.id(), text, "--wait", "--json", "--timeout-s", "60"];
        let waiting = threads.spawn(move || scene.home().run(&words).unwrap());
        meanwhile();
        let spoken = waiting.join().unwrap();
        let last = spoken.stdout.lines().last().unwrap_or_default();
        (spoken.code, serde_json::from_str(last).unwrap_or(Value::Null))
    })
}

#[test]
fn waiting_ends_with_its_own_turn_whatever_comes_in_between() {
    let faked = Faked::new(Plan::default());
    // The stream never comes: what is known of a turn is what the log says, late.
    faked.follow(Plan::default().with_fault("events_stream", Fault::Drop));
    let scene = faked.scene();
    let session = scene.session();
    let runs = |session: &Session| drop(session.wait_status(&["running"]));

    // Each turn follows one that ended: that status is there all the time, and none of them ends with it.
    session.turn("say: before");
    let (code, end) = wait_for_turn(&scene, &session, "slow 3000: say: done", || ());
    assert_eq!((code, end["turn_status"].as_str()), (Some(0), Some("finished")), "{end}");
    let said = session.events().into_iter().filter(|event| event.payload["text"] == "done").count();
    assert_eq!(said, 1, "it ended before its turn did");

    let (code, end) = wait_for_turn(&scene, &session, "slow 1000: run: echo asked", || ());
    assert_eq!((code, end["turn_status"].as_str()), (Some(0), Some("waiting_for_confirmation")), "{end}");
    session.reject(&session.wait_pending());
    session.wait_quiet();

    let (code, end) = wait_for_turn(&scene, &session, "slow 600000: say: never", || {
        runs(&session);
        session.interrupt();
    });
    assert_eq!((code, end["turn_status"].as_str()), (Some(0), Some("paused")), "{end}");

    let before = pid(&scene);
    let (code, end) = wait_for_turn(&scene, &session, "slow 600000: say: never", || {
        runs(&session);
        kill(before);
        wait_other_server(&scene, before);
        wait_until("the session to be on it", LIMIT, || {
            session.snapshot().values["server_start_id"].as_str().map(drop)
        });
    });
    assert_eq!(code, Some(1), "{end}");
    let status = end["error"]["turn_status"].as_str().or(end["turn_status"].as_str());
    assert_eq!((status, end["error"]["code"].as_str()), (Some("error"), Some("turn_failed")), "{end}");
    scene.finish();
}
