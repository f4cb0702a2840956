//! Long ways, at random, with nothing forgotten and everything at its finest.

use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::check::check;
use crate::setup::Setup;
use crate::world::World;

const SEQUENCES: u32 = 1000;
const MOVES: usize = 90;

/// Follows the choices; each picks among what is possible, or among what goes on by itself.
fn walk(setup: Setup, choices: &[u16]) -> Result<(), TestCaseError> {
    let mut world = World::new(setup);
    let mut path = Vec::new();
    for choice in choices {
        let mut moves = world.inner_moves();
        // Most of the time, what was begun goes on.
        if moves.is_empty() || choice % 3 == 0 {
            moves.extend(world.operations());
        }
        let first = usize::from(choice / 3);
        let mut next = None;
        for offset in 0..moves.len() {
            let step = moves[(first + offset) % moves.len()];
            let mut after = world.clone();
            match after.make(step) {
                Ok(true) => {
                    path.push(step);
                    next = Some(after);
                    break;
                }
                Ok(false) => {}
                Err(violation) => prop_assert!(false, "{violation:?} by {step:?} after {path:?}"),
            }
        }
        let Some(after) = next else { return Ok(()) };
        world = after;
        let rests = world.inner_moves().into_iter().all(|step| !matches!(world.clone().make(step), Ok(true)));
        if rests && let Err(violation) = check(&world) {
            prop_assert!(false, "{violation:?} at rest after {path:?}");
        }
    }
    Ok(())
}

fn choices() -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(any::<u16>(), MOVES..=MOVES)
}

const MANY: Setup = Setup { max_actions: 20, fork: true, both: true, ..Setup::FULL }.fine();

proptest! {
    #![proptest_config(Config { cases: SEQUENCES, failure_persistence: None, ..Config::default() })]

    #[test]
    fn gate_and_latch(choices in choices()) {
        walk(MANY, &choices)?;
    }

    #[test]
    fn gate_alone(choices in choices()) {
        walk(Setup { latch: false, ..MANY }, &choices)?;
    }

    #[test]
    fn latch_alone(choices in choices()) {
        walk(Setup { driver: Setup::LATCH.driver, ..MANY }, &choices)?;
    }
}
