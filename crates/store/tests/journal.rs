//! The journal through its public face: order, repetition, epochs, pages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

use std::os::unix::fs::PermissionsExt;

use store::{Check, EventRow, Head, Journal, MAX_PAGE_BYTES, MAX_PAGE_EVENTS, NewEvent, Rewritten, StoreError};

fn private_directory() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

fn event(id: impl ToString) -> NewEvent {
    NewEvent {
        event_id: id.to_string(),
        at: "2025-01-01T00:00:00Z".into(),
        kind: "user_message".into(),
        payload_json: format!("{{\"id\":{:?}}}", id.to_string()),
        is_late: false,
    }
}

fn head(epoch: u64, seq: u64, first_seq: u64, raised_because: Option<&str>) -> Head {
    Head { epoch, seq, first_seq, raised_because: raised_because.map(str::to_owned) }
}

fn ids(events: &[store::EventRecord]) -> Vec<(u64, &str)> {
    events.iter().map(|event| (event.seq, event.event_id.as_str())).collect()
}

#[test]
fn events_are_numbered_from_one_and_repetitions_are_left_out() {
    let directory = private_directory();
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    assert_eq!(journal.head("s").unwrap(), head(1, 0, 1, None));
    assert_eq!(journal.read("s", 1, 0, 10).unwrap(), Vec::new());
    let first = journal.append("s", vec![event("a"), event("b"), event("a")], 1).unwrap();
    assert_eq!(ids(&first), [(1, "a"), (2, "b")]);
    let second = journal.append("s", vec![event("b"), event("c")], 1).unwrap();
    assert_eq!(ids(&second), [(3, "c")]);
    assert_eq!(journal.append("s", vec![event("c")], 1).unwrap(), Vec::new());
    // A fork keeps its parent's ids: they are another session's.
    assert_eq!(ids(&journal.append("fork", vec![event("a")], 1).unwrap()), [(1, "a")]);

    drop(journal);
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    assert_eq!(journal.head("s").unwrap(), head(1, 3, 1, None));
    let all = journal.read("s", 1, 0, 10).unwrap();
    assert_eq!(all, [first, second].concat());
    assert_eq!(ids(&journal.read("s", 1, 1, 1).unwrap()), [(2, "b")]);
    assert_eq!(journal.read("s", 1, 3, 10).unwrap(), Vec::new());
}

#[test]
fn numbers_have_no_gap_under_concurrency() {
    const WRITERS: usize = 8;
    const EVENTS: usize = 60;
    let directory = private_directory();
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let journal = journal.clone();
            scope.spawn(move || {
                for number in 0..EVENTS {
                    // Every second event is offered by all writers, in any order.
                    let id = if number % 2 == 0 { format!("{writer}-{number}") } else { format!("shared-{number}") };
                    journal.append("s", vec![event(id)], 1).unwrap();
                }
            });
        }
        let journal = journal.clone();
        scope.spawn(move || {
            let mut seen = 0;
            while seen < (WRITERS * EVENTS / 2 + EVENTS / 2) as u64 {
                for event in journal.read("s", 1, seen, 7).unwrap() {
                    seen += 1;
                    assert_eq!(event.seq, seen, "a reader sees no number twice and misses none");
                }
            }
        });
    });
    let all = journal.read("s", 1, 0, MAX_PAGE_EVENTS).unwrap();
    assert_eq!(all.len(), WRITERS * EVENTS / 2 + EVENTS / 2);
    let mut unique: Vec<_> = all.iter().map(|event| &event.event_id).collect();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), all.len());
    assert!(all.iter().zip(1..).all(|(event, seq)| event.seq == seq));
}

#[test]
fn a_raised_epoch_keeps_what_stands_before_and_refuses_old_positions() {
    let directory = private_directory();
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    journal.append("s", ["first", "a", "b", "ours"].map(event).into(), 1).unwrap();
    journal.append("other", vec![event("a")], 1).unwrap();
    let new = |id: &str| Rewritten::New(event(id));
    // The one that stays behind and one that stands before are not doubled.
    let tail = vec![new("b"), new("a"), Rewritten::Kept(4), new("first"), new("c")];
    let raised = journal.raise_epoch("s", "order_differs", 1, tail, 1).unwrap();
    assert_eq!(ids(&raised), [(2, "b"), (3, "a"), (4, "ours"), (5, "c")]);
    assert!(raised.iter().all(|event| event.epoch == 2));
    let expected = head(2, 5, 1, Some("order_differs"));
    assert_eq!(journal.head("s").unwrap(), expected);
    assert_eq!(ids(&journal.read("s", 2, 0, 2).unwrap()), [(1, "first"), (2, "b")]);
    for (epoch, after) in [(1, 0), (3, 0), (2, 6)] {
        assert_eq!(journal.read("s", epoch, after, 10), Err(StoreError::OutOfRange { head: expected.clone() }));
    }
    assert_eq!(ids(&journal.append("s", vec![event("a"), event("d")], 1).unwrap()), [(6, "d")]);
    assert_eq!(journal.head("other").unwrap(), head(1, 1, 1, None));
    assert_eq!(journal.raise_epoch("new", "never_appended", 3, Vec::new(), 1).unwrap(), Vec::new());
    assert_eq!(journal.head("new").unwrap(), head(2, 0, 1, Some("never_appended")));
}

#[test]
fn an_epoch_that_cannot_be_raised_changes_nothing() {
    let directory = private_directory();
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    journal.append("s", vec![event("a"), event("b")], 1).unwrap();
    let missing = journal.raise_epoch("s", "order_differs", 0, vec![Rewritten::Kept(3)], 1);
    assert!(matches!(missing, Err(StoreError::Damaged { .. })), "{missing:?}");
    assert_eq!(journal.head("s").unwrap(), head(1, 2, 1, None));
    assert_eq!(ids(&journal.read("s", 1, 0, 10).unwrap()), [(1, "a"), (2, "b")]);
}

#[test]
fn rows_tell_what_stands_where() {
    let directory = private_directory();
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    journal.append("s", vec![event("a")], 10).unwrap();
    journal.append("s", vec![event("b"), NewEvent { is_late: true, ..event("c") }], 100).unwrap();
    journal.prune(50).unwrap();
    let row =
        |seq, id: &str, kind: &str, is_late| EventRow { seq, event_id: id.to_owned(), kind: kind.to_owned(), is_late };
    assert_eq!(journal.rows("s", 0, 2).unwrap(), [row(1, "a", "", false), row(2, "b", "user_message", false)]);
    assert_eq!(journal.rows("s", 2, 9).unwrap(), [row(3, "c", "user_message", true)]);
    assert_eq!(journal.rows("none", 0, 9).unwrap(), []);
    // What was emptied and is written again can be read again.
    let again = vec![Rewritten::New(event("a")), Rewritten::Kept(3), Rewritten::Kept(2)];
    journal.raise_epoch("s", "order_differs", 0, again, 100).unwrap();
    assert_eq!(ids(&journal.read("s", 2, 0, 9).unwrap()), [(1, "a"), (2, "c"), (3, "b")]);
    // What is kept stays late.
    let late: Vec<bool> = journal.rows("s", 0, 9).unwrap().into_iter().map(|row| row.is_late).collect();
    assert_eq!(late, [false, true, false]);
}

#[test]
fn a_page_is_bounded_by_number_and_by_bytes() {
    let directory = private_directory();
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    journal.append("many", (0..MAX_PAGE_EVENTS + 5).map(event).collect(), 1).unwrap();
    assert_eq!(journal.read("many", 1, 0, usize::MAX).unwrap().len(), MAX_PAGE_EVENTS);
    let large = |id: &str| NewEvent { payload_json: "x".repeat(MAX_PAGE_BYTES / 2 + 1), ..event(id) };
    let huge = NewEvent { payload_json: "x".repeat(MAX_PAGE_BYTES + 1), ..event("huge") };
    journal.append("large", vec![large("a"), large("b"), huge], 1).unwrap();
    for (after, id) in (0..).zip(["a", "b", "huge"]) {
        let page = journal.read("large", 1, after, 10).unwrap();
        assert_eq!(ids(&page), [(after + 1, id)]);
    }
}

#[test]
fn pruned_events_keep_their_number_and_id() {
    let directory = private_directory();
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    journal.append("s", vec![event("a"), event("b")], 100).unwrap();
    journal.append("s", vec![event("c")], 200).unwrap();
    // The clock went back: an event behind a young one is not taken out of the middle.
    journal.append("s", vec![event("d")], 50).unwrap();
    journal.append("old", vec![event("a")], 10).unwrap();
    assert_eq!(journal.prune(150).unwrap(), 3);
    assert_eq!(journal.prune(150).unwrap(), 0);
    assert_eq!(journal.head("s").unwrap(), head(1, 4, 3, None));
    assert_eq!(ids(&journal.read("s", 1, 2, 10).unwrap()), [(3, "c"), (4, "d")]);
    assert_eq!(journal.read("s", 1, 1, 10), Err(StoreError::OutOfRange { head: head(1, 4, 3, None) }));
    assert_eq!(journal.head("old").unwrap(), head(1, 1, 2, None));
    assert_eq!(ids(&journal.append("s", vec![event("a"), event("e")], 300).unwrap()), [(5, "e")]);
}

#[test]
fn a_removed_session_leaves_nothing() {
    let directory = private_directory();
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    journal.raise_epoch("s", "x", 0, vec![Rewritten::New(event("a"))], 1).unwrap();
    journal.append("t", vec![event("a")], 1).unwrap();
    journal.remove_session("s").unwrap();
    assert_eq!(journal.head("s").unwrap(), head(1, 0, 1, None));
    assert_eq!(journal.head("t").unwrap(), head(1, 1, 1, None));
    assert_eq!(ids(&journal.append("s", vec![event("a")], 1).unwrap()), [(1, "a")]);
}
