//! Short soaks. On the real server, with both latches and with either alone: the long one is `approval-soak` of `testkit`; the seeds
//! are of sequences in which nothing is killed, so that each run starts one server. On the fake one, with many readers: the long one
//! is `event-soak`.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use testkit::event_soak;
use testkit::soak::{Only, Options, Summary, run};
use testkit::verdict::Findings;

/// One server at a time: two on a small machine are slow enough to time out.
static TURN: Mutex<()> = Mutex::new(());

fn soak(only: Option<Only>, sequences: u64, seed: u64, first: u64) -> Summary {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let options = Options { sequences, seed, first, only };
    let summary = run(&options, &|line| eprintln!("{line}")).unwrap();
    assert!(summary.is_sound(), "{}", summary.text());
    assert_eq!(summary.oddities, [], "{}", summary.text());
    assert_eq!((summary.sequences, summary.leftover_processes, summary.server_starts), (sequences, 0, 1));
    assert!(summary.kills.is_empty(), "{:?}", summary.kills);
    // It was about something.
    assert!(summary.proposed > summary.approved && summary.executed > 0, "{}", summary.text());
    summary
}

#[test]
fn with_both_latches_what_runs_was_approved() {
    let summary = soak(None, 6, 20_260_801, 13);
    assert_eq!(summary.held, 0, "the gate let a call out that the latch had to stop");
}

#[test]
fn with_the_gate_alone_what_runs_was_approved() {
    soak(Some(Only::Gate), 3, 20_260_801, 20);
}

#[test]
fn with_the_latch_alone_what_runs_was_approved() {
    soak(Some(Only::Server), 3, 20_260_801, 0);
}

#[test]
fn many_readers_get_every_event_once_in_order_while_turns_are_taken() {
    let options = event_soak::Options { length: Duration::from_secs(20), sessions: 6, readers: 10, seed: 1 };
    let summary = event_soak::run(&options, &|line| eprintln!("{line}")).unwrap();
    assert!(summary.is_sound(), "{}", summary.text());
    assert_eq!((summary.sessions, summary.readers), (6, 60));
    let verdict = &summary.verdict;
    // Each reader, and for each session the one that came last.
    assert_eq!(verdict.events_expected, summary.events_appended * 11);
    assert!(summary.deliveries > verdict.events_expected && summary.events_appended > 6 * 20, "{}", summary.json());
    // It was about something, by every way there is.
    assert!(summary.turns > 12 && summary.executed > 6, "{}", summary.json());
    for kind in ["prompt", "accept", "reject"] {
        assert!(summary.actions_by.get(kind) > Some(&0), "{:?}", summary.actions_by);
    }
    assert_eq!(summary.receipts_by.keys().collect::<Vec<_>>(), ["applied"], "{:?}", summary.receipts_by);
    assert!(summary.polls > 100 && summary.streams > 6 && summary.reconnects > 6, "{}", summary.json());
    assert!(summary.growth.samples > 20 && !summary.growth.judged, "{:?}", summary.growth);
}
