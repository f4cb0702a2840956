//! Connections that break at every byte of a frame, and messages that are too large.

use super::stage::{Log, Reader, stage, streams, wait_stream};
use gatepost_tests::{LIMIT, wait_until};
use testkit::fake_server::{Plan, StreamPlan};

/// So many sessions share the breaks, since each waits longer from break to break.
const SESSIONS: usize = 48;
/// More than a frame of the events that are appended when a stream is opened.
const BREAKS: u64 = 280;
/// A frame's head.
const HEAD_BYTES: usize = 4;

#[test]
fn a_stream_may_break_at_every_byte_of_a_frame() {
    let (faked, scene) = stage();
    let first = scene.session();
    faked.follow(streams(StreamPlan { appends_on_open: 1, breaks: BREAKS, ..StreamPlan::default() }));
    let sessions: Vec<_> = (0..SESSIONS).map(|_| scene.session()).collect();
    let opened = || faked.asked_for("events_stream");
    // Those of the first session and of the last streams, which stand, count as well.
    wait_until("every break", LIMIT, || (opened() as u64 > BREAKS).then_some(()));
    for session in &sessions {
        wait_stream(session, "open");
    }
    faked.follow(Plan::default());
    for session in &sessions {
        let reader = Reader::of(session);
        reader.wait_for_the_log(&scene, session);
        reader.end();
        let events = Log::of(&scene, session).events();
        let longest = events.iter().map(|event| event.to_string().len()).max().unwrap();
        assert!(events.len() >= 2 && longest + HEAD_BYTES < BREAKS as usize, "the breaks end before the frame does");
    }
    for session in [&first, &sessions[0], &sessions[SESSIONS - 1]] {
        let reader = Reader::of(session);
        session.turn("say: it goes on");
        reader.wait_for_the_log(&scene, session);
        reader.end();
    }
    scene.finish();
}

#[test]
fn a_message_that_is_too_large_ends_the_stream_and_nothing_else() {
    let (faked, scene) = stage();
    faked.follow(streams(StreamPlan { oversize_on_open_bytes: 9 << 20, ..StreamPlan::default() }));
    let session = scene.session();
    let reader = Reader::of(&session);
    session.turn("say: without a stream");
    reader.wait_for_the_log(&scene, &session);
    faked.follow(Plan::default());
    wait_stream(&session, "open");
    session.turn("say: with a stream");
    reader.wait_for_the_log(&scene, &session);
    reader.end();
    scene.finish();
}
