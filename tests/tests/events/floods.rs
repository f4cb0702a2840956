//! More frames than anyone can take.

use super::stage::{Reader, stage, streams};
use gatepost_tests::{LIMIT, Scene, wait_until};
use std::time::Duration;
use testkit::fake_server::{Plan, StreamPlan};

/// Frames that are published at once and never appended.
const FRAMES: u64 = 100_000;
/// Events that are appended and published at once.
const EVENTS: u64 = 3_000;
/// By how much the daemon may grow over a flood, in KiB. All of its frames would be twice that.
const GROWTH_KIB: u64 = 64 * 1024;

/// The daemon's memory in KiB.
fn memory_kib(scene: &Scene) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", scene.daemon().pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_flood_of_frames_grows_nothing_and_starves_nobody() {
    let (faked, scene) = stage();
    let neighbour = scene.session();
    neighbour.turn("say: before the flood");
    let beside = Reader::of(&neighbour);
    let before = memory_kib(&scene);
    faked.follow(streams(StreamPlan { strangers_on_open: FRAMES, ..StreamPlan::default() }));
    let session = scene.session();
    let reader = Reader::of(&session);
    let mut largest = 0;
    for _ in 0..5 {
        neighbour.turn("say: beside the flood");
        session.turn("say: in the flood");
        largest = largest.max(memory_kib(&scene));
        std::thread::sleep(Duration::from_millis(200));
    }
    beside.wait_for_the_log(&scene, &neighbour);
    beside.end();
    reader.wait_for_the_log(&scene, &session);
    faked.follow(Plan::default());
    session.turn("say: after the flood");
    let read = reader.wait_for_the_log(&scene, &session);
    reader.end();
    assert!(read.resyncs.len() <= 4, "the flood began an epoch again and again: {:?}", read.resyncs);
    largest = largest.max(memory_kib(&scene));
    assert!(largest < before + GROWTH_KIB, "{before} KiB before the flood, up to {largest} KiB in it");
    scene.finish();
}

#[test]
fn many_events_at_once_come_in_order() {
    let (faked, scene) = stage();
    faked.follow(streams(StreamPlan { appends_on_open: EVENTS, ..StreamPlan::default() }));
    let session = scene.session();
    let reader = Reader::of(&session);
    wait_until("the events", LIMIT, || (reader.now().events.len() as u64 > EVENTS).then_some(()));
    faked.follow(Plan::default());
    reader.wait_for_the_log(&scene, &session);
    session.turn("say: it goes on");
    reader.wait_for_the_log(&scene, &session);
    reader.end();
    scene.finish();
}
