//! Approval soundness, on a model: the Agent Server as it was read and seen to step, and gatepost driving it through its
//! real rules, with every order of operations, faults and replies.
//!
//! Explored whole up to [`DEPTH`] operations (`SOUNDNESS_DEPTH` in the environment goes deeper), beyond that at random.
//! Promised: an action runs only if it was approved, and once; what was approved and not cut off runs; every prompt is
//! read by a turn or its receipt says why not; whatever waits, some operation leads on; nothing in doubt is approvable.
//! Each guard is needed: without it, the same explorer finds a broken promise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod asking;
mod check;
mod equivalence;
mod explorer;
mod forget;
mod gatepost;
mod ground;
mod log;
mod moves;
mod operations;
mod possible;
mod random;
mod reading;
mod replies;
mod sending;
mod server;
mod setup;
mod teeth;
mod world;

use explorer::explore;
use replies::Replies;
use setup::Setup;

/// Operations in a row that are explored whole.
const DEPTH: usize = 7;

fn depth(usual: usize) -> usize {
    let deeper = std::env::var("SOUNDNESS_DEPTH").ok().map(|depth| depth.parse().expect("SOUNDNESS_DEPTH is a number"));
    deeper.unwrap_or(0).max(usual)
}

/// No broken promise within `usual` operations, and as many kinds of moves made as there are.
fn holds(name: &str, setup: Setup, usual: usize, kinds: usize) {
    let depth = depth(usual);
    let explored = explore(setup, depth, |_| true);
    println!("{name}: {} states, by operations {:?}, {:.1?}", explored.states, explored.by_depth, explored.took);
    if let Some((violation, path)) = explored.found {
        panic!("{name}: {violation:?} by {path:#?}");
    }
    assert_eq!(explored.by_depth.len(), depth + 1);
    assert!(explored.by_depth.iter().all(|states| *states > 0), "{name}: the exploration ended early");
    assert_eq!(explored.kinds.len(), kinds, "{name}: not every kind of move was made");
}

/// However many operations there are: nothing new is reached after some number of them.
#[test]
fn every_state_there_is_with_few_replies() {
    let setup = Setup { replies: Replies::Plain, max_actions: 2, ..Setup::GATE };
    let explored = explore(setup, 40, |_| true);
    println!("few replies: {} states, by operations {:?}, {:.1?}", explored.states, explored.by_depth, explored.took);
    assert!(explored.found.is_none(), "{:?}", explored.found);
    assert_eq!(explored.by_depth.last(), Some(&0), "it has no end");
}

#[test]
fn gate_and_latch_together() {
    holds("gate and latch", Setup { max_actions: 2, ..Setup::FULL }, DEPTH, 16);
}

#[test]
fn the_gate_alone() {
    holds("gate alone", Setup::GATE, DEPTH, 16);
}

#[test]
fn with_a_fork() {
    let few = Setup { replies: Replies::Plain, max_actions: 2, late_kill: false, lost_calls: false, ..Setup::FULL };
    holds("with a fork", Setup { fork: true, ..few }, DEPTH, 16);
}

#[test]
fn the_latch_alone_against_anybody() {
    holds("latch alone", Setup { max_actions: 1, ..Setup::LATCH }, DEPTH, 8);
}

#[test]
fn every_interleaving_of_few_operations() {
    holds("gate and latch, finest", Setup { max_actions: 2, ..Setup::FULL }.fine(), 3, 19);
}
