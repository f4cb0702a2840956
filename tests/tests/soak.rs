//! A short soak on the real server, with both latches and with either alone; the long one is `approval-soak` of `testkit`.
//!
//! The seeds are of sequences in which nothing is killed, so that each run starts one server.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use std::sync::{Mutex, PoisonError};
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
