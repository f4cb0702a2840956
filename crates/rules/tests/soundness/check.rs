//! What must hold whenever nothing goes on by itself any more.

use crate::asking::Ask;
use crate::gatepost::Offer;
use crate::ground::Violation;
use crate::log::{Kind, What};
use crate::moves::Move;
use crate::server::Reply;
use crate::setup::Driver;
use crate::world::World;

/// Most moves in which whatever was begun must come to its end.
const MAX_MOVES: usize = 60;

type Checked = Result<(), Violation>;

/// Whether every promise about rest holds.
///
/// # Errors
/// The first that does not.
pub(crate) fn check(world: &World) -> Checked {
    if world.setup.driver == Driver::Anybody {
        return Ok(());
    }
    let (ground, sessions) = (&world.ground, &world.sessions);
    let (blocked, breached) = (sessions.iter().any(|session| session.blocked), was_seen_to_break(world));
    match (blocked, breached) {
        (true, true) => return Ok(()),
        (true, false) => return Err(Violation::FalseAlarm),
        (false, true) => return Err(Violation::Unnoticed),
        (false, false) => {}
    }
    if !ground.approved.without(ground.executed).without(ground.cut).is_empty() {
        return Err(Violation::ApprovedNotRun);
    }
    if !ground.grants.is_empty() {
        return Err(Violation::GrantLeft);
    }
    (0..sessions.len()).try_for_each(|at| check_session(world, at))
}

/// Whether a log holds more observations of some command than were approved. At rest, all of them are read.
fn was_seen_to_break(world: &World) -> bool {
    world.servers.iter().any(|server| {
        let mut commands =
            server.log.iter().filter(|entry| matches!(entry.kind, Kind::Action { what: What::Command, .. }));
        commands.any(|command| {
            let runs = server.log.iter().filter(|entry| entry.kind == Kind::Observation(command.id)).count();
            runs > usize::from(world.ground.approved.has(command.id))
        })
    })
}

fn check_session(world: &World, at: usize) -> Checked {
    let session = &world.sessions[at];
    if world.servers[at].unread {
        return Err(Violation::PromptLost);
    }
    if !session.quiet.is_quiet() {
        return Err(Violation::NeverQuiet);
    }
    if !session.open.is_empty() {
        return Err(Violation::DecisionOpen);
    }
    let waits = world.waits(at);
    if session.queue > 0 && !waits {
        return Err(Violation::PromptStuck);
    }
    if waits {
        return reject_and_go_on(world, at);
    }
    world.ask(at, Ask::Message).map(drop).map_err(|_| Violation::NoWayOn)
}

/// Whatever waits can be rejected, and then a prompt goes out.
fn reject_and_go_on(world: &World, at: usize) -> Checked {
    let mut world = world.clone();
    let Some(head) = world.sessions[at].leaf else { return Err(Violation::NoWayOn) };
    let offer = Offer { start: world.start, head };
    if !world.reject(at, offer)? {
        return Err(Violation::NoWayOn);
    }
    let rested = settle_down(world)?;
    check(&rested)
}

/// Lets everything come to its end; the model has nothing more to propose.
fn settle_down(mut world: World) -> Result<World, Violation> {
    for _ in 0..MAX_MOVES {
        let Some(next) = one_inner_move(&world)? else { return Ok(world) };
        world = next;
    }
    Err(Violation::Endless)
}

fn one_inner_move(world: &World) -> Result<Option<World>, Violation> {
    for step in world.inner_moves() {
        if matches!(step, Move::Model(_, Reply::Fail | Reply::Calls(_)) | Move::Beside { early: true, .. }) {
            continue;
        }
        let mut after = world.clone();
        if after.make(step)? {
            return Ok(Some(after));
        }
    }
    Ok(None)
}
