//! What is done in one sequence, drawn before it begins. Pure: the same seed and number give the same plan.

use super::shape::Shape;
use crate::random::Random;

/// Of a hundred sequences, so many have the server killed in them.
const SERVER_KILLS: u64 = 6;
/// Of a hundred sequences, so many have the daemon killed in them.
const DAEMON_KILLS: u64 = 3;
/// The latest that a kill comes after the operation it meets has begun, in milliseconds.
const KILL_WITHIN_MS: u64 = 900;

/// Which batch an accept names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// The one that waits, looked at just before.
    Current,
    /// One that was decided before.
    Decided,
    /// One that was shown and does not wait any more.
    Superseded,
    /// One that waits in another session.
    OfAnother,
    /// One that was never offered.
    Unheard,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// A prompt; with `true`, a waiting batch is rejected for it.
    Prompt(Shape, bool),
    /// An acceptance.
    Approve(Named),
    /// Two acceptances of what waits, at once; with `true`, under one key.
    ApproveTwice(bool),
    /// A rejection of what waits.
    Reject,
    Resume,
    Fork,
    /// A rewind to one of the offered points.
    RewindSafe,
    /// A rewind to any event of the log.
    RewindAny,
    Compact,
    Interrupt,
}

impl Operation {
    fn draw(random: &mut Random) -> Self {
        let shape = Shape::draw(random);
        let operations = [
            (22, Self::Prompt(shape, false)),
            (6, Self::Prompt(shape, true)),
            (28, Self::Approve(Named::Current)),
            (3, Self::Approve(Named::Decided)),
            (5, Self::Approve(Named::Superseded)),
            (4, Self::Approve(Named::OfAnother)),
            (1, Self::Approve(Named::Unheard)),
            (2, Self::ApproveTwice(true)),
            (3, Self::ApproveTwice(false)),
            (6, Self::Reject),
            (6, Self::Resume),
            (6, Self::Fork),
            (4, Self::RewindSafe),
            (5, Self::RewindAny),
            (4, Self::Compact),
            (6, Self::Interrupt),
        ];
        random.weighted(&operations, Self::Interrupt)
    }

    /// The word that it is counted under.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Prompt(_, false) => "prompt",
            Self::Prompt(_, true) => "prompt_rejecting",
            Self::Approve(Named::Current) => "approve",
            Self::Approve(Named::Decided) => "approve_decided",
            Self::Approve(Named::Superseded) => "approve_superseded",
            Self::Approve(Named::OfAnother) => "approve_of_another_session",
            Self::Approve(Named::Unheard) => "approve_unheard_of",
            Self::ApproveTwice(true) => "approve_twice_one_key",
            Self::ApproveTwice(false) => "approve_twice_two_keys",
            Self::Reject => "reject",
            Self::Resume => "resume",
            Self::Fork => "fork",
            Self::RewindSafe => "rewind_safe",
            Self::RewindAny => "rewind_any",
            Self::Compact => "compact",
            Self::Interrupt => "interrupt",
        }
    }
}

/// What comes after an operation before the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// Nothing: the next one races with whatever this one began.
    None,
    /// So many milliseconds.
    Ms(u64),
    /// Until a batch waits or the turn is over.
    Batch,
}

/// What is killed while an operation is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    Server,
    Daemon,
}

/// One operation with its session and what happens around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Picks the session; `None` stays with the one of the step before.
    pub(super) pick: Option<u64>,
    pub(super) operation: Operation,
    /// Picks among whatever the operation can name.
    pub(super) target: u64,
    /// Another one in the same session, so many milliseconds after this one began.
    pub(super) alongside: Option<(u64, Operation)>,
    /// What is killed, so many milliseconds after it began.
    pub(super) kill: Option<(u64, Victim)>,
    pub(super) pause: Pause,
}

/// One sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// Sessions made at its beginning.
    pub(super) sessions: u64,
    pub(super) steps: Vec<Step>,
}

/// Draws the sequence of that number.
pub(super) fn draw(seed: u64, sequence: u64) -> Plan {
    let mut random = Random::of(seed, sequence);
    let sessions = if random.chance(60) { 2 } else { 1 };
    let count = 4 + random.below(5);
    let mut steps: Vec<Step> = (0..count).map(|_| draw_step(&mut random)).collect();
    // Something to decide comes first.
    if let Some(first) = steps.first_mut() {
        let shape = Shape::draw(&mut random);
        (first.operation, first.alongside, first.pause) = (Operation::Prompt(shape, false), None, Pause::Batch);
    }
    for (percent, victim) in [(SERVER_KILLS, Victim::Server), (DAEMON_KILLS, Victim::Daemon)] {
        let (dies, at, after_ms) = (random.chance(percent), random.below(count), random.below(KILL_WITHIN_MS));
        let met = usize::try_from(at).ok().and_then(|at| steps.get_mut(at));
        if let Some(step) = met.filter(|_| dies) {
            step.kill = Some((after_ms, victim));
        }
    }
    Plan { sessions, steps }
}

fn draw_step(random: &mut Random) -> Step {
    let operation = Operation::draw(random);
    let delay_ms = random.below(300);
    let alongside = random.chance(15).then(|| (delay_ms, Operation::draw(random)));
    let pauses = [(55, Pause::Batch), (20, Pause::None), (25, Pause::Ms(50 + random.below(800)))];
    Step {
        pick: random.chance(45).then(|| random.next()),
        operation,
        target: random.next(),
        alongside,
        kill: None,
        pause: random.weighted(&pauses, Pause::Batch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_plan_can_be_drawn_again() {
        assert_eq!(draw(3, 17), draw(3, 17));
        assert_ne!(draw(3, 17), draw(3, 18));
        assert_ne!(draw(3, 17), draw(4, 17));
    }

    #[test]
    fn plans_are_short_begin_with_a_prompt_and_hold_everything_in_time() {
        let plans: Vec<Plan> = (0..1000).map(|sequence| draw(1, sequence)).collect();
        let steps = || plans.iter().flat_map(|plan| &plan.steps);
        for plan in &plans {
            assert!((4..=8).contains(&plan.steps.len()) && (1..=2).contains(&plan.sessions));
            assert!(matches!(plan.steps[0].operation, Operation::Prompt(..)));
        }
        let kinds: BTreeSet<&str> = steps().map(|step| step.operation.kind()).collect();
        assert_eq!(kinds.len(), 16, "{kinds:?}");
        let kills = |wanted| steps().filter(|step| step.kill.is_some_and(|(_, victim)| victim == wanted)).count();
        assert!((30..90).contains(&kills(Victim::Server)), "{}", kills(Victim::Server));
        assert!((10..60).contains(&kills(Victim::Daemon)), "{}", kills(Victim::Daemon));
        assert!(steps().any(|step| step.alongside.is_some()) && steps().any(|step| step.pause == Pause::None));
    }
}
