//! A server that fails again and again: its sessions say so, and it comes back when it can.

use super::{kill, line, pid, server_in, told};
use api_types::{OverallState, ServerState};
use gatepost_tests::{Faked, LIMIT, refusal_code, wait_until};
use serde_json::json;
use testkit::fake_server::Plan;

#[test]
fn a_crash_loop_blocks_its_sessions_with_a_reason_and_ends_by_itself() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let session = scene.session();
    let marker = scene.marker("waits");
    let shown = session.propose(&marker.directive());
    faked.follow(Plan { exit_at_once: Some(9), ..Plan::default() });
    kill(pid(&scene));

    // Nobody asks for anything.
    let looping = wait_until("the crash loop to be seen", LIMIT, || {
        server_in(&scene, &scene.workspace()).filter(|server| server.state == ServerState::CrashLooping)
    });
    assert_eq!((looping.failures_in_a_row, looping.pid), (5, None));
    let reason = looping.reason.unwrap();
    assert_eq!(reason.code, "server_start_failed");
    assert!(reason.detail.contains("exit code 9") && reason.detail.contains("as planned"), "{}", reason.detail);
    let next_try_at = looping.next_try_at.unwrap();
    let blocked = line(&scene, &session).blocked_reason.unwrap();
    assert_eq!(blocked.code, "server_crash_looping");
    for words in ["5 times in a row", "the next try is at", "exit code 9", "as planned"] {
        assert!(blocked.detail.contains(words), "no {words:?} in {}", blocked.detail);
    }
    assert_eq!(told(&session), ["server_ready", "server_ended", "server_crash_looping"]);
    assert_eq!(scene.status().state, OverallState::Blocked);

    // Whoever asks is told at once, and starts nothing.
    let refused = session.refused("session.prompt.send", &json!({"text": "say: no"}));
    assert_eq!(refused, "server_crash_looping");
    assert!(!session.offers("session.prompt.send") && session.offers("session.turn.interrupt"));
    session.interrupt();
    let reply = scene.client().post("/v1/sessions", &json!({"workspace": scene.workspace()})).unwrap();
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (503, "server_crash_looping"));
    let now = server_in(&scene, &scene.workspace()).unwrap();
    assert_eq!((now.failures_in_a_row, now.next_try_at), (5, Some(next_try_at)), "a further start was tried");

    // Mended: at the next try everything is there again, without anyone asking.
    faked.follow(Plan::default());
    wait_until("the server to come back", LIMIT, || scene.server_pid());
    wait_until("the session to be told", LIMIT, || {
        (told(&session).last().map(String::as_str) == Some("server_restarted")).then_some(())
    });
    assert_eq!(line(&scene, &session).blocked_reason, None);
    assert_eq!(scene.status().state, OverallState::Ready);
    let batch = session.wait_pending();
    assert_ne!(batch.approval_id, shown.approval_id);
    session.approve_to_end(&batch);
    marker.assert_runs(1);
    scene.finish();
}
