//! What is asked of the server: nothing when nothing changed, and no more in a crowd than alone.

use super::stage::{Reader, stage, wait_stream};
use gatepost_tests::{Faked, LIMIT, Scene, Session, wait_until};
use serde_json::json;
use std::time::Duration;
use testkit::fake_server::requests_of_operation;

/// Conversations of the crowd.
const CROWD: usize = 100;
/// Requests of an operation, its own call included.
const FEW: usize = 3;
/// Requests of one that changes twice.
const SOME: usize = 6;
/// So often is each operation counted, and so often where it took more than it may: on a busy machine reads of news come late.
const FEW_TRIES: usize = 3;
const MOST_TRIES: usize = 12;

#[test]
fn nothing_is_asked_when_nothing_changed_and_no_more_in_a_crowd() {
    let (faked, scene) = stage();
    let session = scene.session();
    let alone = counts(&faked, &scene, &session);
    let crowd: Vec<Session> = (1..CROWD).map(|_| scene.session()).collect();
    for other in &crowd {
        wait_stream(other, "open");
    }
    assert_eq!(scene.status().sessions.len(), CROWD);
    // Whether a read of news falls into an operation is chance; one for each conversation would not be.
    let crowded = counts(&faked, &scene, &session);
    assert!(alone.iter().zip(&crowded).all(|(one, many)| one.abs_diff(*many) <= 1), "{alone:?} {crowded:?}");
    scene.finish();
}

/// How many requests each operation takes, the least of a few tries.
fn counts(faked: &Faked, scene: &Scene, session: &Session) -> Vec<usize> {
    nothing_asked(faked, scene, session);
    let marker = scene.marker("counted");
    let batch = || session.pending().unwrap_or_else(|| session.propose(&marker.directive()));
    let free = || {
        if let Some(shown) = session.pending() {
            session.reject(&shown);
        }
    };
    let counts = vec![
        least(FEW, faked, session, free, |()| drop(session.prompt("say: counted"))),
        least(FEW, faked, session, batch, |shown| drop(session.reject(&shown))),
        least(FEW, faked, session, batch, |shown| drop(session.approve(&shown))),
        least(FEW, faked, session, free, |()| drop(session.interrupt())),
        least(FEW, faked, session, free, |()| drop(session.applied("session.title.set", &json!({"title": "counted"})))),
        least(SOME, faked, session, batch, |_| {
            session.applied("session.prompt.send", &json!({"text": "say: instead", "on_pending": "reject"}));
        }),
    ];
    session.wait_quiet();
    assert!(counts.iter().take(5).all(|count| *count <= FEW) && counts[5] <= SOME, "{counts:?}");
    counts
}

fn nothing_asked(faked: &Faked, scene: &Scene, session: &Session) {
    let reader = Reader::of(session);
    session.turn("say: something");
    reader.wait_for_the_log(scene, session);
    wait_stream(session, "open");
    let before = wait_until("the last read", LIMIT, || {
        let before = faked.asked().len();
        std::thread::sleep(Duration::from_millis(300));
        (faked.asked().len() == before).then_some(before)
    });
    let head = session.snapshot().cursor;
    for _ in 0..10 {
        drop(session.snapshot());
        assert_eq!(session.pending(), None);
        assert_eq!(session.page(Some(&head), 10, Duration::ZERO).events, []);
        drop(scene.status());
    }
    assert_eq!(session.page(Some(&head), 10, Duration::from_secs(1)).events, []);
    let asked = faked.asked().split_off(before);
    assert_eq!(asked, Vec::<String>::new(), "asked although nothing had changed");
    reader.end();
}

/// Something else may read in the middle of a try, so the least of several counts.
fn least<T>(bound: usize, faked: &Faked, session: &Session, prepare: impl Fn() -> T, act: impl Fn(T)) -> usize {
    let one = || {
        session.wait_quiet();
        let prepared = prepare();
        session.wait_quiet();
        let before = faked.asked().len();
        act(prepared);
        requests_of_operation(&faked.asked().split_off(before))
    };
    let few = (0..FEW_TRIES).map(|_| one()).min().unwrap();
    (FEW_TRIES..MOST_TRIES).fold(few, |least, _| if least <= bound { least } else { least.min(one()) })
}
