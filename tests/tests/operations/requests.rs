//! How much an operation asks of the server: few reads, and each change once.

use gatepost_tests::{LIMIT, Scene, ServerLog, Session, UpstreamRequest, wait_until};
use serde_json::json;
use std::time::Duration;

/// Requests of most operations, their own call included.
const FEW: usize = 3;
/// Requests of those that change twice or make a session.
const SOME: usize = 6;
/// How long the server's log may lag.
const LOG_DELAY: Duration = Duration::from_millis(500);

/// What an operation asked of the server until its reply, its last change at least.
fn asked(log: &ServerLog, changes: usize, operation: impl FnOnce()) -> Vec<UpstreamRequest> {
    // The log is written a moment after the answer: what came before shall stand in it.
    std::thread::sleep(LOG_DELAY);
    let before = log.requests().len();
    operation();
    wait_until("the operation's changes in the server's log", LIMIT, || {
        let requests = log.requests().split_off(before);
        let found = requests.iter().filter(|request| !request.is_read()).count();
        assert!(found <= changes, "more than {changes} changes: {requests:#?}");
        (found == changes).then_some(requests)
    })
}

/// How many of the requests are the operation's own. Each change brings news, read by what follows the session for its
/// readers: reads of the session's events after the first change are not counted.
fn own(requests: &[UpstreamRequest], session: &Session) -> usize {
    let is_own = |(at, request): &(usize, &UpstreamRequest)| {
        let reads_news = request.is_about(session.id()) && request.target.contains("/events/search");
        !reads_news || requests[..*at].iter().all(UpstreamRequest::is_read)
    };
    requests.iter().enumerate().filter(is_own).count()
}

/// Something else may read the events in the middle of a try, so the best of six counts.
fn at_most<T>(limit: usize, changes: usize, on: (&ServerLog, &Session), prepare: impl Fn() -> T, act: impl Fn(T)) {
    let (log, session) = on;
    let mut tries: Vec<Vec<UpstreamRequest>> = Vec::new();
    for _ in 0..6 {
        let prepared = prepare();
        tries.push(asked(log, changes, || act(prepared)));
        if tries.iter().any(|requests| own(requests, session) <= limit) {
            return;
        }
    }
    assert!(tries.is_empty(), "more than {limit} requests each time: {tries:#?}");
}

pub(super) fn bounded(scene: &Scene) {
    let session = scene.session();
    let log = ServerLog::of_only_server(&scene.home().state()).unwrap();
    let marker = scene.marker("counted");
    session.turn("say: a first turn");
    let safe = session.snapshot().choices.rewind.pop().unwrap().event_id;
    let nothing_waits = || {
        session.wait_quiet();
        if let Some(shown) = session.pending() {
            session.reject(&shown);
        }
    };
    let batch = || {
        session.wait_quiet();
        session.pending().unwrap_or_else(|| session.propose(&marker.directive()))
    };

    let on = (&log, &session);
    at_most(FEW, 1, on, nothing_waits, |()| {
        session.prompt(&marker.directive());
    });
    session.wait_quiet();
    at_most(FEW, 1, on, batch, |shown| {
        session.reject(&shown);
    });
    at_most(FEW, 1, on, batch, |shown| {
        session.approve(&shown);
    });
    session.wait_quiet();
    at_most(SOME, 2, on, batch, |_| {
        session.applied("session.prompt.send", &json!({"text": "say: instead", "on_pending": "reject"}));
    });
    session.wait_quiet();
    at_most(FEW, 1, on, nothing_waits, |()| {
        session.interrupt();
    });
    at_most(FEW, 1, on, nothing_waits, |()| {
        session.applied("session.rewind", &json!({"event_id": safe}));
    });
    at_most(SOME, 1, on, nothing_waits, |()| {
        session.applied("session.model.set", &json!({"model": super::SECOND_MODEL}));
    });
    at_most(SOME, 2, on, nothing_waits, |()| {
        session.applied("session.fork", &json!({}));
    });
}

/// Nothing changed, so nothing is asked: looks are answered from what is kept.
pub(super) fn none_for_a_look(scene: &Scene) {
    let session = scene.session();
    session.turn("say: nothing more");
    let log = ServerLog::of_only_server(&scene.home().state()).unwrap();
    let about = || log.requests().iter().filter(|request| request.is_about(session.id())).count();
    let end = session.events().pop().unwrap().cursor;
    // What followed the turn is read by now.
    wait_until("the session to be left alone", LIMIT, || {
        let before = about();
        std::thread::sleep(LOG_DELAY * 3);
        (about() == before).then_some(())
    });
    let before = about();
    for _ in 0..20 {
        drop(session.snapshot());
        assert!(session.pending().is_none());
        assert!(session.page(Some(&end), 100, Duration::from_millis(20)).events.is_empty());
    }
    std::thread::sleep(LOG_DELAY);
    assert_eq!(about(), before, "{:#?}", log.requests().split_off(before.min(log.requests().len())));
}
