//! A stream that loses, invents, swaps, alters and delays; reads that fail and stall.

use super::stage::{Log, Reader, no_reads, stage, streams, wait_stream};
use gatepost_tests::{Scene, Session};
use testkit::fake_server::{Fault, Plan, StreamPlan};

/// A text, a command that runs, a command that is rejected.
fn turns(scene: &Scene, session: &Session, name: &str) {
    session.turn("say: one two three");
    let marker = scene.marker(name);
    let shown = session.propose(&marker.directive());
    session.approve_to_end(&shown);
    marker.assert_runs(1);
    let shown = session.propose(&marker.directive());
    session.reject(&shown);
    marker.assert_runs(1);
}

#[test]
fn whatever_the_stream_does_readers_end_with_the_log() {
    let (faked, scene) = stage();
    let stream = StreamPlan::default();
    let plans = [
        ("lost", streams(StreamPlan { loses_every: Some(3), ..stream.clone() })),
        ("unheard", streams(StreamPlan { loses_every: Some(1), ..stream.clone() })),
        ("invented", streams(StreamPlan { invents_every: Some(4), ..stream.clone() })),
        ("swapped", streams(StreamPlan { swaps_every: Some(2), ..stream.clone() })),
        ("altered", streams(StreamPlan { alters: true, ..stream.clone() })),
        ("late", streams(StreamPlan { delay_ms: 40, ..stream.clone() })),
        ("stalled", Plan::default().with_fault("events_page", Fault::StallMs(150))),
        ("late-and-lost", streams(StreamPlan { delay_ms: 40, loses_every: Some(3), ..stream })),
    ];
    for (name, plan) in plans {
        eprintln!("--- {name}");
        faked.follow(Plan::default());
        let session = scene.session();
        let reader = Reader::of(&session);
        wait_stream(&session, "open");
        // A read that comes between two frames that change places finds one that the stream seems to have left out.
        let has_late_ones = plan.stream.loses_every.is_some() || plan.stream.swaps_every.is_some();
        faked.follow(plan);
        turns(&scene, &session, name);
        let wait = || {
            if has_late_ones {
                reader.wait_for_all_of_the_log(&scene, &session)
            } else {
                reader.wait_for_the_log(&scene, &session)
            }
        };
        wait();
        faked.follow(Plan::default());
        session.turn("say: it goes on");
        wait();
        reader.end();
    }
    scene.finish();
}

/// What the stream left out gets the next numbers, behind what came after it: nobody starts over, also after a restart.
#[test]
fn what_the_stream_left_out_is_numbered_behind_and_nobody_starts_over() {
    let (faked, mut scene) = stage();
    let session = scene.session();
    let reader = Reader::of(&session);
    session.turn("say: before");
    reader.wait_for_the_log(&scene, &session);
    session.prompt("slow 3000: say: the truth");
    let before = reader.wait_for_the_log(&scene, &session).upstream_ids().len();
    faked.follow(no_reads(StreamPlan { loses_every: Some(2), ..StreamPlan::default() }));
    reader.wait_read("what the stream brings", |read| read.upstream_ids().len() >= before + 2);
    faked.follow(Plan::default());
    session.wait_quiet();
    let read = reader.wait_for_all_of_the_log(&scene, &session);
    assert_ne!(read.upstream_ids(), Log::of(&scene, &session).ids(), "the stream left nothing out in between");
    session.turn("say: it goes on");
    let read = reader.wait_for_all_of_the_log(&scene, &session);
    assert_eq!(read.resyncs, Vec::<String>::new());
    let before = reader.end();
    scene.kill_daemon();
    scene.serve_again();
    let session = scene.take_up(session.id());
    let reader = Reader::going_on(&session, before);
    session.turn("say: after another start");
    let read = reader.wait_for_all_of_the_log(&scene, &session);
    assert_eq!(read.resyncs, Vec::<String>::new());
    reader.end();
    scene.finish();
}

/// No read succeeds, so what readers get came by the stream, and what was decided rests on none of it.
#[test]
fn events_reach_readers_while_no_read_succeeds() {
    let (faked, scene) = stage();
    let session = scene.session();
    let reader = Reader::of(&session);
    session.turn("say: before");
    reader.wait_for_the_log(&scene, &session);
    let marker = scene.marker("ahead");
    session.prompt(&format!("slow 1500: {}", marker.directive()));
    faked.follow(no_reads(StreamPlan::default()));
    let command =
        |read: &super::stage::Read| read.events.iter().filter(|event| event.kind.as_str() == "tool_call").count();
    gatepost_tests::wait_until("the proposal", gatepost_tests::LIMIT, || (command(&reader.now()) == 1).then_some(()));
    assert_eq!(session.pending(), None, "a batch was offered that only the stream told of");
    faked.follow(Plan::default());
    let shown = session.wait_pending();
    let read = reader.wait_for_the_log(&scene, &session);
    assert_eq!(read.resyncs, Vec::<String>::new(), "the orders were the same");
    session.approve_to_end(&shown);
    marker.assert_runs(1);
    reader.wait_for_the_log(&scene, &session);
    reader.end();
    scene.finish();
}

/// Readers were shown what is not so: they are told, and have what is so in the end.
#[test]
fn what_was_never_appended_and_what_was_altered_is_taken_back() {
    let (faked, scene) = stage();
    let cases = [
        (StreamPlan { invents_every: Some(2), ..StreamPlan::default() }, "of another conversation"),
        (StreamPlan { alters: true, ..StreamPlan::default() }, "altered"),
    ];
    for (stream, untrue) in cases {
        faked.follow(Plan::default());
        let session = scene.session();
        let reader = Reader::of(&session);
        session.turn("say: before");
        reader.wait_for_the_log(&scene, &session);
        session.prompt("slow 1500: say: the truth");
        faked.follow(no_reads(stream));
        reader.wait_shown(untrue);
        faked.follow(Plan::default());
        session.wait_quiet();
        reader.wait_shown("the truth");
        let read = reader.wait_for_the_log(&scene, &session);
        assert_eq!(read.resyncs, ["epoch_changed"]);
        assert!(read.events.iter().all(|event| event.payload["text"] != untrue), "{untrue} is still shown");
        session.turn("say: it goes on");
        let read = reader.wait_for_the_log(&scene, &session);
        assert_eq!(read.resyncs, ["epoch_changed"]);
        reader.end();
    }
    scene.finish();
}

/// What the stream brought and the server forgot with its process is taken back at the next start.
#[test]
fn what_a_killed_daemon_journaled_and_the_log_does_not_have_is_taken_back() {
    let (faked, mut scene) = stage();
    let session = scene.session();
    let reader = Reader::of(&session);
    session.turn("say: before");
    reader.wait_for_the_log(&scene, &session);
    session.prompt("slow 1500: say: the truth");
    faked.follow(no_reads(StreamPlan { invents_every: Some(1), ..StreamPlan::default() }));
    reader.wait_shown("of another conversation");
    let before = reader.end();
    scene.kill_daemon();
    faked.follow(Plan::default());
    scene.serve_again();
    let session = scene.take_up(session.id());
    session.wait_quiet();
    let reader = Reader::going_on(&session, before);
    let read = reader.wait_for_the_log(&scene, &session);
    assert_eq!(read.resyncs, ["epoch_changed"]);
    let ready = |event: &&api_types::Event| event.payload["event"] == "server_ready";
    assert_eq!(read.events.iter().filter(ready).count(), 2, "gatepost's own events are kept");
    session.turn("say: it goes on");
    reader.wait_for_the_log(&scene, &session);
    reader.end();
    scene.finish();
}
