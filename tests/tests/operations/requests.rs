//! How much an operation asks of the server: few reads, and each change once.

use gatepost_tests::{LIMIT, Scene, ServerLog, UpstreamRequest, wait_until};
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
/// readers: reads of the events after the first change are not counted.
fn own(requests: &[UpstreamRequest]) -> usize {
    let is_own = |(at, request): &(usize, &UpstreamRequest)| {
        requests[..*at].iter().all(UpstreamRequest::is_read) || !request.target.contains("/events/search")
    };
    requests.iter().enumerate().filter(is_own).count()
}

/// Something else may read the events in the middle of a try, so the best of three counts.
fn at_most<T>(limit: usize, changes: usize, log: &ServerLog, mut prepare: impl FnMut() -> T, act: impl Fn(T)) {
    let mut tries: Vec<Vec<UpstreamRequest>> = Vec::new();
    for _ in 0..3 {
        let prepared = prepare();
        tries.push(asked(log, changes, || act(prepared)));
        if tries.iter().any(|requests| own(requests) <= limit) {
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
    let batch = || session.pending().unwrap_or_else(|| session.propose(&marker.directive()));

    at_most(FEW, 1, &log, nothing_waits, |()| {
        session.prompt(&marker.directive());
    });
    session.wait_quiet();
    at_most(FEW, 1, &log, batch, |shown| {
        session.reject(&shown);
    });
    at_most(FEW, 1, &log, batch, |shown| {
        session.approve(&shown);
    });
    session.wait_quiet();
    at_most(SOME, 2, &log, batch, |_| {
        session.applied("session.prompt.send", &json!({"text": "say: instead", "on_pending": "reject"}));
    });
    session.wait_quiet();
    at_most(FEW, 1, &log, nothing_waits, |()| {
        session.interrupt();
    });
    at_most(FEW, 1, &log, nothing_waits, |()| {
        session.applied("session.rewind", &json!({"event_id": safe}));
    });
    at_most(SOME, 1, &log, nothing_waits, |()| {
        session.applied("session.model.set", &json!({"model": super::SECOND_MODEL}));
    });
    let forked = asked(&log, 2, || {
        session.applied("session.fork", &json!({}));
    });
    // Nothing else reads a conversation that has just come to be.
    assert!(forked.len() <= SOME, "{forked:#?}");
}
