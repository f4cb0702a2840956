//! Closing with deletion is two writes: what comes between them leaves a session that can be closed again.

use super::{line, wait_other_server};
use gatepost_tests::{Faked, LIMIT, Scene, Session, refusal_code, wait_until};
use testkit::fake_server::{Fault, Plan};

fn stands(scene: &Scene, session: &Session) -> bool {
    scene.status().sessions.iter().any(|line| line.session_id == session.id())
}

#[test]
fn a_deletion_that_the_server_refuses_leaves_the_session_as_it_was() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let session = scene.session();
    session.turn("say: before");
    for (fault, code) in [
        (Fault::StatusInstead(500), "upstream_refused"),
        (Fault::StatusInstead(409), "upstream_refused"),
        (Fault::NotJson, "upstream_malformed"),
    ] {
        faked.follow(Plan::default().with_fault("delete", fault));
        assert_eq!(refusal_code(&session.close(true)), code);
        faked.follow(Plan::default());
        assert!(stands(&scene, &session));
        session.turn("say: it goes on");
    }
    assert_eq!(session.close(true).status, 200);
    assert!(!stands(&scene, &session));
    scene.finish();
}

/// The conversation is gone and the session is not closed: the answer was lost, the server or the daemon ended in between.
#[test]
fn a_deletion_that_was_cut_off_can_be_asked_for_again() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene();
    let closed_at_last = |scene: &Scene, session: &Session| {
        let told = wait_until("the session to say that its conversation is gone", LIMIT, || {
            session.snapshot().blocked_reason.map(|reason| reason.code)
        });
        assert_eq!(told, "conversation_not_found");
        assert_eq!(session.close(true).status, 200);
        assert!(!stands(scene, session));
    };

    let lost = scene.session();
    faked.follow(Plan::default().with_fault("delete", Fault::StatusAfter(500)));
    assert_eq!(lost.close(true).status, 200, "it is gone, whatever was answered");
    assert!(!stands(&scene, &lost));

    let (died, before) = (scene.session(), scene.server_pid().unwrap());
    faked.follow(Plan::default().with_fault("delete", Fault::DieAfter));
    assert_eq!(refusal_code(&died.close(true)), "upstream_unreachable");
    faked.follow(Plan::default());
    wait_other_server(&scene, before);
    assert!(line(&scene, &died).blocked_reason.is_some());
    closed_at_last(&scene, &died);

    let killed = scene.session();
    faked.follow(Plan::default().with_fault("delete", Fault::DieAfter));
    assert_eq!(refusal_code(&killed.close(true)), "upstream_unreachable");
    scene.kill_daemon();
    faked.follow(Plan::default());
    scene.serve_again();
    let killed = scene.take_up(killed.id());
    closed_at_last(&scene, &killed);
    scene.finish();
}
