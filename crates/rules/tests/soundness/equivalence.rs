//! What the canonical form forgets makes no difference.

use std::mem::{Discriminant, discriminant};

use crate::explorer::{Explored, explore};
use crate::ground::Violation;
use crate::replies::Replies;
use crate::setup::{Guards, Setup};

/// The same, with and without forgetting.
fn both_ways(setup: Setup, depth: usize) -> [Explored; 2] {
    [true, false].map(|forget| explore(Setup { forget, ..setup }, depth, |_| true))
}

#[test]
fn the_same_states_of_rest_are_reached() {
    for (setup, depth) in [(Setup::SMALL, 4), (Setup { latch: true, replies: Replies::Ids, ..Setup::SMALL }, 3)] {
        let [short, long] = both_ways(setup, depth);
        assert!(short.found.is_none() && long.found.is_none());
        assert!(short.states < long.states && short.rests.len() > 20);
        assert_eq!(short.rests, long.rests);
    }
}

#[test]
fn the_same_promises_are_broken_by_as_many_operations() {
    let without = [
        Guards { matcher: false, ..Guards::ALL },
        Guards { pending: false, ..Guards::ALL },
        Guards { quiet: false, settled: false, ..Guards::ALL },
        Guards { sent: false, ..Guards::ALL },
        Guards { bound: false, ..Guards::ALL },
        Guards { restart_last: false, ..Guards::ALL },
        Guards { answered: false, ..Guards::ALL },
    ];
    for guards in without {
        let replies = if guards.matcher { Replies::Plain } else { Replies::Ids };
        let [short, long] = both_ways(Setup { replies, ..Setup::SMALL }.with(guards), 4);
        assert_eq!(broken(short), broken(long), "{guards:?}");
    }
}

fn broken(explored: Explored) -> (Discriminant<Violation>, usize) {
    let (violation, path) = explored.found.expect("without the guard a promise is broken");
    (discriminant(&violation), path.into_iter().filter(|step| step.is_operation()).count())
}
