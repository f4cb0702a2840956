//! What a holder of the session key does in one sequence. Pure: the same seed and number give the same plan.

use super::super::shape::Shape;
use crate::random::Random;

/// Of a hundred sequences, so many have the server killed in them.
const SERVER_KILLS: u64 = 6;
const KILL_WITHIN_MS: u64 = 900;

/// One operation; all but a granted acceptance are what a thief would try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// A message that starts a turn, whatever waits.
    Say(Shape),
    Run,
    /// A whole copy, with what waits; with `true`, it is run.
    Fork(bool),
    Condense,
    /// Back to any event of the log.
    Navigate,
    /// Grants what waits, each action once in its life, then accepts: an approval.
    Approve,
    /// Accepts without a grant.
    AcceptUngranted,
    /// Grants the first action of what waits only, then accepts.
    AcceptHalfGranted,
    Reject,
    Interrupt,
    /// From now on nothing is to be asked.
    NeverAsk,
}

impl Operation {
    fn draw(random: &mut Random) -> Self {
        let shape = Shape::draw(random);
        let run = random.chance(70);
        let operations = [
            (26, Self::Say(shape)),
            (9, Self::Run),
            (8, Self::Fork(run)),
            (5, Self::Condense),
            (10, Self::Navigate),
            (36, Self::Approve),
            (7, Self::AcceptUngranted),
            (3, Self::AcceptHalfGranted),
            (4, Self::Reject),
            (5, Self::Interrupt),
            (3, Self::NeverAsk),
        ];
        random.weighted(&operations, Self::Interrupt)
    }

    /// The word that it is counted under.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Say(_) => "message",
            Self::Run => "run",
            Self::Fork(false) => "fork_whole",
            Self::Fork(true) => "fork_whole_and_run",
            Self::Condense => "condense",
            Self::Navigate => "navigate_any",
            Self::Approve => "approve",
            Self::AcceptUngranted => "accept_ungranted",
            Self::AcceptHalfGranted => "accept_half_granted",
            Self::Reject => "reject",
            Self::Interrupt => "interrupt",
            Self::NeverAsk => "policy_never_confirm",
        }
    }
}

/// One operation and what happens around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Picks the conversation; `None` stays with the one of the step before.
    pub(super) pick: Option<u64>,
    pub(super) operation: Operation,
    /// Picks among whatever the operation can name.
    pub(super) target: u64,
    /// Another one in the same conversation, so many milliseconds after this one began.
    pub(super) alongside: Option<(u64, Operation)>,
    /// The server is killed so many milliseconds after it began.
    pub(super) kill_after_ms: Option<u64>,
    /// So many milliseconds later comes the next one; `None` waits until nothing runs.
    pub(super) pause_ms: Option<u64>,
}

/// One sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Conversations made at its beginning.
    pub(super) conversations: u64,
    pub(super) steps: Vec<Step>,
}

/// Draws the sequence of that number.
pub(crate) fn draw(seed: u64, sequence: u64) -> Plan {
    let mut random = Random::of(seed, sequence);
    let conversations = if random.chance(40) { 2 } else { 1 };
    let count = 4 + random.below(5);
    let mut steps: Vec<Step> = (0..count).map(|_| draw_step(&mut random)).collect();
    // Something to decide comes first.
    if let Some(first) = steps.first_mut() {
        let shape = Shape::draw(&mut random);
        (first.operation, first.alongside, first.pause_ms) = (Operation::Say(shape), None, None);
    }
    let (dies, at, after_ms) = (random.chance(SERVER_KILLS), random.below(count), random.below(KILL_WITHIN_MS));
    let met = usize::try_from(at).ok().and_then(|at| steps.get_mut(at));
    if let Some(step) = met.filter(|_| dies) {
        step.kill_after_ms = Some(after_ms);
    }
    Plan { conversations, steps }
}

fn draw_step(random: &mut Random) -> Step {
    let operation = Operation::draw(random);
    let delay_ms = random.below(300);
    let alongside = random.chance(15).then(|| (delay_ms, Operation::draw(random)));
    let pauses = [(60, None), (15, Some(0)), (25, Some(50 + random.below(800)))];
    Step {
        pick: random.chance(45).then(|| random.next()),
        operation,
        target: random.next(),
        alongside,
        kill_after_ms: None,
        pause_ms: random.weighted(&pauses, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_plan_can_be_drawn_again_and_holds_everything_in_time() {
        assert_eq!(draw(3, 17), draw(3, 17));
        assert_ne!(draw(3, 17), draw(3, 18));
        let plans: Vec<Plan> = (0..1000).map(|sequence| draw(1, sequence)).collect();
        let steps = || plans.iter().flat_map(|plan| &plan.steps);
        assert!(plans.iter().all(|plan| (4..=8).contains(&plan.steps.len())));
        assert!(plans.iter().all(|plan| matches!(plan.steps[0].operation, Operation::Say(_))));
        let kinds: BTreeSet<&str> = steps().map(|step| step.operation.kind()).collect();
        assert_eq!(kinds.len(), 12, "{kinds:?}");
        let kills = steps().filter(|step| step.kill_after_ms.is_some()).count();
        assert!((30..90).contains(&kills), "{kills}");
    }
}
