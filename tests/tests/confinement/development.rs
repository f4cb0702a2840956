//! Ordinary development, by the agent itself.

use std::time::Duration;

use api_types::Approval;
use gatepost_tests::{Scene, Session, wait_until};
use testkit::development::{Course, tasks};

use crate::stage::Stage;

/// How long all tasks together may take; each of them is bounded by itself.
const COURSE_LIMIT: Duration = Duration::from_secs(600);
/// At least so many must have been tried, whatever a machine lacks.
const LEAST: usize = 51;

/// Every task of [`tasks`] by one approved command, on the real server, as an ordinary user, in full confinement.
#[test]
fn ordinary_development_works_in_full_confinement() {
    let scene = Scene::ordinary_with(|setup| {
        setup.confinement = "full";
        setup.is_developer = true;
    });
    let session = scene.session();
    let has_program = |name: &str| scene.home().has_program(name).unwrap();
    let course = Course::place(&scene.workspace(), has_program).unwrap();
    let proposed = session.propose(&format!("run: {}", course.command()));
    judge(&session, &course, &proposed);
    scene.finish();
}

/// Accepts the command of the course, and waits until every task of it has passed.
#[track_caller]
pub(crate) fn judge(session: &Session, course: &Course, proposed: &Approval) {
    // Its answer may come before the command is over.
    let accepted = session.ask_accept(&proposed.approval_id);
    assert!([200, 202].contains(&accepted.status), "{}", accepted.text);
    let report = wait_until("the tasks to be over", COURSE_LIMIT, || course.report().unwrap());
    assert!(report.failed.is_empty(), "{:#?}", report.failed);
    assert_eq!(report.passed.len() + report.unavailable.len(), tasks().count());
    for (task, why) in &report.unavailable {
        eprintln!("not tried: {task}: {why}");
    }
    assert!(report.passed.len() >= LEAST, "too little was tried: {:?}", report.unavailable);
    session.wait_quiet();
}

/// What docs/containment.md says does not work.
#[test]
fn what_is_expected_to_fail_does() {
    let stage = Stage::new();
    for script in ["git config --global a.b c", "echo a > /tmp/gatepost-a-file", "unshare --user true"] {
        let ended = stage.wrapped("/bin/sh", &["sh", "-c", script]).output().status;
        assert_ne!(ended.code(), Some(0), "{script}");
    }
}
