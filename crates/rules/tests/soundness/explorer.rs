//! Breadth first by the number of operations: whatever goes on by itself between two of them is followed to its end.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::mem::{Discriminant, discriminant};
use std::time::{Duration, Instant};

use crate::check::check;
use crate::ground::Violation;
use crate::moves::Move;
use crate::setup::Setup;
use crate::world::World;

/// More states than this are not kept: an exploration that comes so far fails.
const MAX_STATES: usize = 20_000_000;

/// What an exploration came to.
#[derive(Debug)]
pub(crate) struct Explored {
    /// Different states visited.
    pub(crate) states: usize,
    /// Of these, first reached by so many operations.
    pub(crate) by_depth: Vec<usize>,
    pub(crate) took: Duration,
    /// The kinds of moves that were made at least once.
    pub(crate) kinds: HashSet<Discriminant<Move>>,
    /// What the states at rest are like, whatever led to them.
    pub(crate) rests: BTreeSet<Vec<u8>>,
    /// The first broken promise that was looked for, and the shortest way to it.
    pub(crate) found: Option<(Violation, Vec<Move>)>,
}

/// A state's digest, and how it was reached first.
struct Reached {
    from: u128,
    by: Option<Move>,
}

struct Explorer<'a> {
    looked_for: &'a dyn Fn(&Violation) -> bool,
    reached: HashMap<u128, Reached>,
    kinds: HashSet<Discriminant<Move>>,
    rests: BTreeSet<Vec<u8>>,
    layer: VecDeque<(u128, World)>,
    next: VecDeque<(u128, World)>,
}

type Broken = (Violation, Option<Move>);

/// Visits everything that at most `depth` operations lead to, or stops at the first broken promise that is looked for;
/// others are not followed further.
pub(crate) fn explore(setup: Setup, depth: usize, looked_for: impl Fn(&Violation) -> bool) -> Explored {
    let begun = Instant::now();
    let first = World::new(setup);
    let reached = HashMap::from([(first.digest(), Reached { from: 0, by: None })]);
    let (layer, next, kinds) = (VecDeque::from([(first.digest(), first)]), VecDeque::new(), HashSet::new());
    let mut explorer = Explorer { looked_for: &looked_for, reached, kinds, rests: BTreeSet::new(), layer, next };
    let (mut by_depth, mut found) = (Vec::new(), None);
    for done in 0..=depth {
        let before = by_depth.iter().sum::<usize>();
        while let Some((digest, world)) = explorer.layer.pop_front() {
            if let Err((violation, by)) = explorer.expand(&world, digest, done < depth) {
                found = Some((violation, explorer.path(digest, by)));
                break;
            }
        }
        by_depth.push(explorer.reached.len() - explorer.next.len() - before);
        explorer.layer = std::mem::take(&mut explorer.next);
        if found.is_some() {
            break;
        }
    }
    Explored {
        states: explorer.reached.len(),
        by_depth,
        took: begun.elapsed(),
        kinds: explorer.kinds,
        rests: explorer.rests,
        found,
    }
}

impl Explorer<'_> {
    fn expand(&mut self, world: &World, digest: u128, operations: bool) -> Result<(), Broken> {
        let mut rests = true;
        for step in world.inner_moves() {
            rests &= !self.follow(world, digest, step)?;
        }
        if rests {
            self.rests.insert(world.outline());
        }
        if rests && let Err(violation) = check(world) {
            return if (self.looked_for)(&violation) { Err((violation, None)) } else { Ok(()) };
        }
        if operations {
            for step in world.operations() {
                self.follow(world, digest, step)?;
            }
        }
        Ok(())
    }

    /// Whether the move could be made.
    fn follow(&mut self, world: &World, from: u128, step: Move) -> Result<bool, Broken> {
        let mut after = world.clone();
        match after.make(step) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(violation) if (self.looked_for)(&violation) => return Err((violation, Some(step))),
            Err(_) => return Ok(true),
        }
        self.kinds.insert(discriminant(&step));
        after.forget();
        let digest = after.digest();
        assert!(self.reached.len() < MAX_STATES, "too many states to explore them all");
        if let Entry::Vacant(place) = self.reached.entry(digest) {
            place.insert(Reached { from, by: Some(step) });
            let queue = if step.is_operation() { &mut self.next } else { &mut self.layer };
            queue.push_back((digest, after));
        }
        Ok(true)
    }

    fn path(&self, to: u128, last: Option<Move>) -> Vec<Move> {
        let mut path: Vec<Move> = last.into_iter().collect();
        let mut at = to;
        while let Some(Reached { from, by: Some(step) }) = self.reached.get(&at) {
            path.push(*step);
            at = *from;
        }
        path.reverse();
        path
    }
}
