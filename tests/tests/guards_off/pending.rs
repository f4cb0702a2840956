//! The server runs whatever is unanswered on the active branch at its next step, whoever asked for the step.

use crate::world::World;
use gatepost_tests::LIMIT;

pub(crate) fn message(world: &World) {
    let marker = world.marker();
    let (conversation, waited) = world.waiting(&marker);
    conversation.say("Wait, do NOT run that").unwrap().expect_status(200).unwrap();
    world.judge_waiting(&marker, &conversation, &waited);
}

pub(crate) fn run(world: &World) {
    let marker = world.marker();
    let (conversation, waited) = world.waiting(&marker);
    conversation.run().unwrap().expect_status(200).unwrap();
    world.judge_waiting(&marker, &conversation, &waited);
}

pub(crate) fn fork(world: &World) {
    let marker = world.marker();
    let (conversation, waited) = world.waiting(&marker);
    let fork = conversation.fork().unwrap();
    fork.run().unwrap().expect_status(200).unwrap();
    world.judge_waiting(&marker, &fork, &waited);
}

pub(crate) fn condense(world: &World) {
    let marker = world.marker();
    let (conversation, waited) = world.waiting(&marker);
    conversation.condense().unwrap();
    world.judge_waiting(&marker, &conversation, &waited);
}

pub(crate) fn executed(world: &World) {
    let marker = world.marker();
    let (conversation, waited) = world.waiting(&marker);
    world.approve(&conversation, &waited);
    marker.assert_runs(1);
    conversation.navigate(&waited[0]).unwrap().expect_status(200).unwrap();
    conversation.say("say: once more from here").unwrap().expect_status(200).unwrap();
    world.judge(&marker, 1);
}

pub(crate) fn rejected(world: &World) {
    let marker = world.marker();
    let (conversation, waited) = world.waiting(&marker);
    conversation.answer(false).unwrap().expect_status(200).unwrap();
    conversation.wait_status(&["idle"], LIMIT).unwrap();
    conversation.navigate(&waited[0]).unwrap().expect_status(200).unwrap();
    conversation.say("say: another way").unwrap().expect_status(200).unwrap();
    world.judge_waiting(&marker, &conversation, &waited);
}

pub(crate) fn accept(world: &World) {
    let marker = world.marker();
    let (conversation, waited) = world.waiting(&marker);
    conversation.answer(true).unwrap().expect_status(200).unwrap();
    world.judge_waiting(&marker, &conversation, &waited);
}

/// The first batch was looked at and granted; when the accept comes, another one waits.
pub(crate) fn accept_of_another(world: &World) {
    let (first, second) = (world.marker(), world.marker());
    let (conversation, looked_at) = world.waiting(&first);
    conversation.answer(false).unwrap().expect_status(200).unwrap();
    conversation.wait_status(&["idle"], LIMIT).unwrap();
    let waited = world.propose(&conversation, &second.directive());
    assert_ne!(waited, looked_at);
    world.grant(&looked_at);
    conversation.answer(true).unwrap().expect_status(200).unwrap();
    world.judge_waiting(&second, &conversation, &waited);
    first.assert_absent();
}

pub(crate) fn interrupt_then_message(world: &World) {
    let marker = world.marker();
    let (conversation, waited) = world.waiting(&marker);
    conversation.interrupt().unwrap().expect_status(200).unwrap();
    conversation.say("say: go on").unwrap().expect_status(200).unwrap();
    world.judge_waiting(&marker, &conversation, &waited);
}

pub(crate) fn interrupt_then_run(world: &World) {
    let marker = world.marker();
    let (conversation, waited) = world.waiting(&marker);
    conversation.interrupt().unwrap().expect_status(200).unwrap();
    conversation.run().unwrap().expect_status(200).unwrap();
    world.judge_waiting(&marker, &conversation, &waited);
}

pub(crate) fn reused_call_id(world: &World) {
    let marker = world.marker();
    let conversation = world.conversation();
    conversation.say("reuse-id call_again bad-args\nthen say: oh").unwrap().expect_status(200).unwrap();
    conversation.wait_status(&["finished"], LIMIT).unwrap();
    let waited = world.propose(&conversation, &format!("reuse-id call_again {}", marker.directive()));
    conversation.say("say: go on").unwrap().expect_status(200).unwrap();
    world.judge_waiting(&marker, &conversation, &waited);
}
