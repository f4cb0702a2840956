//! A running server is asked again and again to prove itself: one slow answer is no verdict, none at all is.

use super::{line, pid, server_in, wait_other_server};
use api_types::{CanaryState, ServerState};
use gatepost_tests::{Faked, LIMIT, wait_until};
use testkit::fake_server::{ControlAnswer, Fault, Plan};

/// Longer than a probe waits.
const TOO_LATE_MS: u64 = 8_000;

/// How often the servers' canaries were read, by the log.
fn unanswered(scene: &gatepost_tests::Scene) -> usize {
    scene.daemon().log().unwrap().matches("the server did not answer in time").count()
}

#[test]
fn a_server_whose_answer_is_slow_or_refused_once_is_not_replaced() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene_with(|setup| setup.agent_server = "probe_interval_s = 1\n".to_owned());
    let session = scene.session();
    let marker = scene.marker("waits");
    let batch = session.propose(&marker.directive());
    let before = pid(&scene);
    let slow = Fault::StallMs(TOO_LATE_MS);
    for (number, (route, times, fault)) in [
        ("server_info", 1, slow.clone()),
        ("auth_probe", 1, slow),
        // A read over a connection that was lost is tried once more.
        ("init_probe", 2, Fault::Drop),
        ("server_info", 1, Fault::StatusInstead(503)),
        ("server_info", 1, Fault::NotJson),
    ]
    .into_iter()
    .enumerate()
    {
        faked.follow(Plan::default().with_fault_times(route, 0, Some(times), fault.clone()));
        let what = format!("a probe of {route} without an answer: {fault:?}");
        wait_until(&what, LIMIT, || (unanswered(&scene) > number).then_some(()));
        faked.follow(Plan::default());
        // The next one is answered, to its last question: nothing was lost, nothing is blocked.
        let asked = faked.asked_for("init_probe");
        wait_until("a probe that is answered", LIMIT, || (faked.asked_for("init_probe") > asked + 1).then_some(()));
        assert_eq!(line(&scene, &session).blocked_reason, None, "{route}");
    }
    assert_eq!(pid(&scene), before, "a healthy server was replaced");
    assert_eq!(session.pending().unwrap().approval_id, batch.approval_id);
    session.approve_to_end(&batch);
    marker.assert_runs(1);
    scene.finish();
}

#[test]
fn a_server_that_answers_no_more_is_ended_and_started_again() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene_with(|setup| setup.agent_server = "probe_interval_s = 1\n".to_owned());
    let session = scene.session();
    let marker = scene.marker("waits");
    let shown = session.propose(&marker.directive());
    let before = pid(&scene);
    faked.follow(Plan { inspect_answer: ControlAnswer::Silence, ..Plan::default() });
    // Asked again, it may answer yet: until then what it showed before counts.
    let doubtful = wait_until("the missing answer to show", LIMIT, || {
        server_in(&scene, &scene.workspace())
            .filter(|server| server.canaries.iter().any(|canary| canary.state != CanaryState::Ready))
    });
    let degraded: Vec<_> =
        doubtful.canaries.iter().filter(|one| one.state == CanaryState::Degraded).map(|one| &one.canary).collect();
    assert_eq!(degraded, ["inherited_listener", "startup_module"], "{doubtful:?}");
    assert!(doubtful.state == ServerState::Ready && doubtful.canaries.iter().all(|one| one.passed), "{doubtful:?}");
    let failed = wait_until("the server to be ended", LIMIT, || {
        server_in(&scene, &scene.workspace()).filter(|server| server.pid.is_none())
    });
    assert!([ServerState::Stopping, ServerState::Failed, ServerState::Starting].contains(&failed.state), "{failed:?}");
    let states: Vec<_> = failed.canaries.iter().map(|canary| canary.state).collect();
    let starting = failed.state == ServerState::Starting;
    let wrong = if starting { CanaryState::Starting } else { CanaryState::Blocked };
    let others = if starting { CanaryState::Starting } else { CanaryState::Stopped };
    assert_eq!(states, [others, others, wrong, wrong, others, others], "{failed:?}");
    assert!(unanswered(&scene) >= 2, "it had no second chance");
    faked.follow(Plan::default());
    assert_eq!(wait_other_server(&scene, before).state, ServerState::Ready);
    let again = session.wait_pending();
    assert_ne!(again.approval_id, shown.approval_id);
    session.approve_to_end(&again);
    marker.assert_runs(1);
    scene.finish();
}
