//! Each guard is needed.

use crate::explorer::explore;
use crate::ground::Violation;
use crate::replies::Replies;
use crate::setup::{Guards, Setup};

/// Deepest that a broken promise is looked for.
const DEPTH: usize = 5;

#[track_caller]
fn bites(setup: Setup, looked_for: impl Fn(&Violation) -> bool) {
    let found = explore(setup, DEPTH, looked_for).found;
    let (violation, path) = found.expect("without the guard a promise is broken");
    println!("{violation:?} by {path:?}");
    assert!(!path.is_empty());
}

fn runs_unapproved(violation: &Violation) -> bool {
    matches!(violation, Violation::Unapproved(_))
}

fn runs_twice(violation: &Violation) -> bool {
    matches!(violation, Violation::Twice(_))
}

/// A command under the call id of an earlier error looks answered.
#[test]
fn a_naive_matcher() {
    let guards = Guards { matcher: false, ..Guards::ALL };
    bites(Setup { replies: Replies::Ids, ..Setup::SMALL }.with(guards), runs_unapproved);
}

/// Any step runs what pends.
#[test]
fn no_look_at_what_pends() {
    bites(Setup::SMALL.with(Guards { pending: false, ..Guards::ALL }), runs_unapproved);
}

/// A call is answered before its turn has begun.
#[test]
fn no_wait_for_quiet() {
    bites(Setup::SMALL.with(Guards { quiet: false, settled: false, ..Guards::ALL }), runs_unapproved);
    bites(Setup::SMALL.fine().with(Guards { quiet: false, fresh: false, ..Guards::ALL }), runs_unapproved);
}

/// An accept that reaches a run task at its end is answered with success, and nothing comes of it.
#[test]
fn no_wait_for_the_end_of_the_run_task() {
    let swallowed = |violation: &Violation| *violation == Violation::ApprovedNotRun;
    bites(Setup::SMALL.fine().with(Guards { settled: false, ..Guards::ALL }), swallowed);
}

/// A crash leaves an action pending that ran.
#[test]
fn no_memory_of_sent_accepts() {
    bites(Setup::SMALL.with(Guards { sent: false, ..Guards::ALL }), runs_twice);
}

/// What was shown on one server is accepted on the next.
#[test]
fn an_approval_id_of_the_actions_alone() {
    let guards = Guards { bound: false, ..Guards::ALL };
    bites(Setup::SMALL.with(guards), |violation| *violation == Violation::NotAsShown);
}

/// What pends goes into the fork as well, and is accepted on both sides.
#[test]
fn a_fork_anywhere() {
    let guards = Guards { safe_points: false, ..Guards::ALL };
    bites(Setup { fork: true, both: true, max_actions: 1, ..Setup::SMALL }.with(guards), runs_twice);
}

/// Either that an interrupt ended a step is noted under the session's lock, or the gate is asked on a read that began
/// after the server had settled: with neither, a prompt that was sent beside an interrupt is overlooked.
#[test]
fn an_interrupt_that_takes_another_step_for_over() {
    let guards = Guards { noted_locked: false, fresh: false, ..Guards::ALL };
    bites(Setup { max_actions: 1, ..Setup::SMALL }.fine().with(guards), runs_unapproved);
}

/// The same closes an accept too early that was sent beside it.
#[test]
fn an_interrupt_that_takes_an_accept_for_over() {
    let guards = Guards { noted_locked: false, ..Guards::ALL };
    let cut_short = |violation: &Violation| *violation == Violation::ApprovedNotRun;
    bites(Setup { latch: true, max_actions: 1, ..Setup::SMALL }.fine().with(guards), cut_short);
}

/// The log's last status is of the server that is gone.
#[test]
fn a_restart_that_is_noted_before_the_log_is_read() {
    let guards = Guards { restart_last: false, ..Guards::ALL };
    bites(Setup::SMALL.with(guards), |violation| *violation == Violation::NeverQuiet);
}

/// A grant outlives its accept.
#[test]
fn grants_that_are_not_taken_back() {
    let guards = Guards { revoked: false, ..Guards::ALL };
    bites(Setup { latch: true, ..Setup::SMALL }.with(guards), |violation| *violation == Violation::GrantLeft);
}

/// A call that was given up is carried out when something pends.
#[test]
fn a_call_without_an_answer() {
    let guards = Guards { answered: false, ..Guards::ALL };
    bites(Setup { max_actions: 1, ..Setup::SMALL }.with(guards), runs_unapproved);
}

/// Where the guards fail, the tripwire sees what is to be seen, and nothing else.
#[test]
fn the_tripwire_sees_what_gets_past() {
    let guards = [Guards { pending: false, ..Guards::ALL }, Guards { matcher: false, ..Guards::ALL }];
    for guards in guards {
        let setup = Setup { replies: Replies::Ids, ..Setup::SMALL }.with(guards);
        bites(setup, runs_unapproved);
        let explored = explore(Setup { lenient: true, ..setup }, 3, |_| true);
        assert!(explored.found.is_none(), "{:?}", explored.found);
        assert!(explored.states > 1000);
    }
}

/// With the latch in force, none of these lets anything run that was not approved, or twice.
#[test]
fn behind_the_latch_nothing_runs_all_the_same() {
    let without = [
        Guards { matcher: false, ..Guards::ALL },
        Guards { pending: false, ..Guards::ALL },
        Guards { quiet: false, settled: false, fresh: false, ..Guards::ALL },
        Guards { noted_locked: false, fresh: false, revoked: false, answered: false, ..Guards::ALL },
    ];
    for guards in without {
        let setup = Setup { latch: true, replies: Replies::Ids, ..Setup::SMALL }.with(guards);
        for setup in [setup, setup.fine()] {
            let explored = explore(setup, 3, |violation| runs_unapproved(violation) || runs_twice(violation));
            assert!(explored.found.is_none(), "{guards:?}: {:?}", explored.found);
            assert!(explored.states > 1000);
        }
    }
}
