//! A stream that the server closes: for good, or for a while.

use super::stage::{Reader, stage, streams, wait_stream};
use gatepost_tests::{LIMIT, wait_until};
use testkit::fake_server::{Plan, StreamPlan};

#[test]
fn a_refused_stream_is_told_of_and_not_opened_again() {
    for (code, reason) in [(4001, "bad_key"), (4004, "unknown_conversation")] {
        let (faked, scene) = stage();
        faked.follow(streams(StreamPlan { close_code: Some(code), ..StreamPlan::default() }));
        let session = scene.session();
        wait_stream(&session, reason);
        session.wait_event("the refusal", |event| {
            event.payload["event"] == "stream_refused" && event.payload["reason"] == reason
        });
        faked.follow(Plan::default());
        // Readers have what is read.
        let reader = Reader::of(&session);
        session.turn("say: without a stream");
        reader.wait_for_the_log(&scene, &session);
        reader.end();
        let opened = faked.asked_for("events_stream");
        assert_eq!(opened, 1, "it was opened again");
        scene.finish();
    }
}

#[test]
fn a_stream_that_was_closed_for_another_reason_is_opened_again() {
    let (faked, scene) = stage();
    faked.follow(streams(StreamPlan { close_code: Some(1013), ..StreamPlan::default() }));
    let session = scene.session();
    let opened = || faked.asked_for("events_stream");
    wait_until("the stream to be opened again", LIMIT, || (opened() >= 3).then_some(()));
    faked.follow(Plan::default());
    wait_stream(&session, "open");
    let reader = Reader::of(&session);
    session.turn("say: with a stream");
    reader.wait_for_the_log(&scene, &session);
    reader.end();
    scene.finish();
}
