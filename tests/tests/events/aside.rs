//! The log of a session at rest is not held in memory, and whoever looks finds everything as it was.

use super::rest::{LONG, tables};
use api_types::{Event, EventKind, SessionList, SessionSnapshot};
use gatepost_tests::{Faked, LIMIT, Scene, Session, typed, wait_until};
use serde_json::json;
use testkit::chaos::POINTS_VARIABLE;
use testkit::daemon::{Setup, built_binary};
use testkit::fake_server::Plan;

/// How often a log was set aside.
pub(crate) fn set_aside(scene: &Scene) -> usize {
    scene.daemon().log().unwrap().matches("the log is set aside").count()
}

/// How often one was taken up.
fn taken_up(scene: &Scene) -> usize {
    scene.daemon().log().unwrap().matches("the log is taken up").count()
}

/// Waits until so many logs were set aside in all.
pub(crate) fn wait_aside(scene: &Scene, count: usize) {
    wait_until("logs to be set aside", LIMIT, || (set_aside(scene) >= count).then_some(()));
}

/// What a snapshot says of the log and of what may be done.
fn said(snapshot: &SessionSnapshot) -> String {
    let mut values = snapshot.values.clone();
    values.remove("event_stream");
    format!("{:?} {:?} {values:?}", snapshot.choices.rewind, snapshot.advertised_operations)
}

/// The events of the server.
fn upstream(session: &Session) -> Vec<Event> {
    session.events().into_iter().filter(|event| event.kind != EventKind::Lifecycle).collect()
}

fn sessions(scene: &Scene) -> Vec<String> {
    let list: SessionList = typed(&scene.client().get("/v1/sessions").unwrap(), &[200]);
    list.sessions.iter().map(|session| format!("{session:?}")).collect()
}

/// A turn whose action is approved, and one whose action is rejected.
fn decide(scene: &Scene, session: &Session, name: &str) {
    let marker = scene.marker(name);
    let shown = session.propose(&marker.directive());
    session.approve_to_end(&shown);
    marker.assert_runs(1);
    let marker = scene.marker(&format!("{name}-not"));
    let shown = session.propose(&marker.directive());
    session.reject(&shown);
    session.wait_quiet();
    marker.assert_absent();
}

#[test]
fn a_log_is_set_aside_while_the_session_rests_and_is_the_same_afterwards() {
    let faked = Faked::new(Plan { begins_with_events: 350, ..Plan::default() });
    let scene = faked.scene_with(|setup| setup.tables = tables(1));
    let (session, other) = (scene.session(), scene.session());
    decide(&scene, &session, "before");
    let (snapshot, events) = (session.snapshot(), upstream(&session));
    assert!(!snapshot.choices.rewind.is_empty());
    let listed = sessions(&scene);
    wait_aside(&scene, 2);

    // Neither the list, nor status, nor the looks at sessions at rest need it.
    let kept = taken_up(&scene);
    assert_eq!(sessions(&scene), listed);
    drop(scene.status());
    std::thread::sleep(LONG);
    assert_eq!(sessions(&scene), listed);
    assert_eq!((set_aside(&scene), taken_up(&scene)), (2, kept));

    // A look takes up the one that is looked at.
    assert_eq!(said(&session.snapshot()), said(&snapshot));
    assert_eq!(taken_up(&scene), kept + 1);
    assert_eq!(upstream(&session), events);
    decide(&scene, &session, "after");
    assert_eq!(upstream(&session)[..events.len()], events);
    wait_aside(&scene, 3);
    other.turn("say: hello");
    scene.finish();
}

/// The log that is taken up for the n-th time is lost.
fn losing(setup: &mut Setup, nth: usize) {
    setup.binary = Some(built_binary("gatepost-tests", "gatepost-watched").unwrap());
    setup.environment.push((POINTS_VARIABLE.to_owned(), format!("cut:before:aside.take_up_log:{nth}")));
    setup.tables = tables(1);
    // What the server does by itself, it does when it is asked how it is.
    setup.agent_server = "probe_interval_s = 1\n".to_owned();
}

fn is_lost(scene: &Scene) -> bool {
    scene.daemon().log().unwrap().contains("what was known of a log is lost")
}

fn wait_on_server(session: &Session) -> SessionSnapshot {
    wait_until("the session on its server", LIMIT, || {
        let found = session.snapshot();
        found.values.get("server_start_id").is_some_and(|id| !id.is_null()).then_some(found)
    })
}

/// What cannot be taken up again is read anew, as after a start of the daemon: nothing goes on before that, and no reader has
/// to start over.
#[test]
fn a_log_that_is_lost_is_read_anew_before_anything_goes_on() {
    let faked = Faked::new(Plan { begins_with_events: 350, ..Plan::default() });
    let scene = faked.scene_with(|setup| losing(setup, 1));
    let session = scene.session();
    decide(&scene, &session, "before");
    let (snapshot, events) = (session.snapshot(), session.events());
    wait_aside(&scene, 1);

    let found = wait_on_server(&session);
    assert!(is_lost(&scene));
    assert_eq!((said(&found), found.blocked_reason), (said(&snapshot), None));
    let page = session.page(Some(&snapshot.cursor), 1000, std::time::Duration::ZERO);
    assert!(page.resync.is_none(), "{:?}", page.resync);
    assert_eq!(session.events()[..events.len()], events);
    decide(&scene, &session, "after");
    wait_aside(&scene, 2);
    assert_eq!(session.snapshot().blocked_reason, None);
    scene.finish();
}

/// What was acknowledged is lost with the log, and is known again before anything is judged by it.
#[test]
fn a_log_that_is_lost_while_something_comes_is_not_judged_without_what_was_known() {
    let plan = Plan { has_no_latch: true, asks_nothing: true, ..Plan::default() };
    let faked = Faked::new(plan.clone());
    let scene = faked.scene_with(|setup| losing(setup, 2));
    let session = scene.session();
    session.turn("say: before the rest");
    wait_aside(&scene, 1);
    let marker = scene.marker("by-itself");
    faked.follow(Plan { begins_by_itself: Some(marker.directive()), ..plan.clone() });
    wait_until("the interrupt", LIMIT, || (faked.asked_for("interrupt") > 0).then_some(()));
    faked.follow(plan.clone());
    let block = session.snapshot().choices.acknowledge.remove(0);
    session.applied("session.block.acknowledge", &json!({"block_id": block.block_id}));
    session.wait_quiet();
    wait_aside(&scene, 2);

    let interrupts = faked.asked_for("interrupt");
    faked.follow(Plan { begins_by_itself: Some("say: by itself".to_owned()), ..plan.clone() });
    wait_until("the log to be lost", LIMIT, || is_lost(&scene).then_some(()));
    faked.follow(plan);
    std::thread::sleep(LONG);
    assert_eq!(wait_on_server(&session).blocked_reason, None);
    assert_eq!(faked.asked_for("interrupt"), interrupts, "what was acknowledged was taken for something new");
    scene.finish();
}
