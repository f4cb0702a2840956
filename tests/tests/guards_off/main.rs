//! Each guard is needed: every known way to run what nobody approved does run it when nothing stands in the way, and runs
//! nothing when only what is inside the server stands there.
//!
//! The ways are gone by a client that has the session key and no daemon in front of it: the gate is out in both tests. One
//! real server is started for all of them, once without the guards of its start-up module and once with them.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

mod around;
mod pending;
mod world;

use testkit::guards::Guard;
use world::{Expected, World};

fn go_every_way(taken_out: &[Guard], expected: Expected) {
    let mut world = World::start(taken_out, expected);
    world.go("1: a message while an action waits", pending::message);
    world.go("2: a run while an action waits", pending::run);
    world.go("3: a fork while an action waits, then a run of the fork", pending::fork);
    world.go("4: a compaction while an action waits", pending::condense);
    world.go("5: back to an action that was executed, then a prompt", pending::executed);
    world.go("6: back to an action that was rejected, then a prompt", pending::rejected);
    world.go("7: hooks of a plugin in the workspace", around::hooks);
    world.go("8: a sub-agent behind one approved call", around::sub_agent);
    world.go("an accept that names no action", pending::accept);
    world.go("an accept of one batch that meets another", pending::accept_of_another);
    world.go("an interrupt while an action waits, then a prompt", pending::interrupt_then_message);
    world.go("an interrupt while an action waits, then a run", pending::interrupt_then_run);
    world.go("a call that reuses the id of a failed one, then a prompt", pending::reused_call_id);
    world.go("the policy set to never ask, then a prompt", around::policy);
    world.go("hooks that come with the request for a conversation", around::requested_hooks);
    world.go("an agent of another kind", around::other_agent);
    world.go("an agent of another kind, by a profile", around::other_agent_by_profile);
    world.go("a tool whose parameters name a program", around::tool_parameter);
    world.go("a worktree of a repository with hooks", around::worktree);
    world.go("the server's own shell", around::shell);
    world.finish();
}

#[test]
fn without_guards_every_known_way_runs_what_nobody_approved() {
    go_every_way(&Guard::ALL, Expected::Runs);
}

#[test]
fn what_is_inside_the_server_alone_stops_every_known_way() {
    go_every_way(&[], Expected::Stopped);
}
