//! Events that are older than they are kept.

use super::stage::{Reader, stage};
use gatepost_tests::Scene;
use std::process::Command;
use std::time::Duration;

/// Lets the events up to a number be from long ago, in the file of a daemon that is stopped.
fn age(scene: &Scene, upto: u64) {
    let statement = format!("UPDATE events SET journaled_at_ms = 0 WHERE seq <= {upto}");
    let script = "import sqlite3, sys\nfile = sqlite3.connect(sys.argv[1])\nfile.execute(sys.argv[2])\nfile.commit()";
    let file = scene.home().state().join("journal.sqlite3");
    let status = Command::new("python3").args(["-c", script]).arg(file).arg(statement).status().unwrap();
    assert!(status.success());
}

#[test]
fn who_asks_for_what_is_gone_is_told_and_what_is_gone_does_not_come_again() {
    let (_faked, mut scene) = stage();
    let session = scene.session();
    let reader = Reader::of(&session);
    session.turn("say: long ago");
    let first = reader.wait_for_the_log(&scene, &session);
    session.turn("say: lately");
    let all = reader.wait_for_the_log(&scene, &session);
    reader.end();
    scene.stop_daemon();
    let gone = first.events.len();
    age(&scene, gone as u64);
    scene.serve_again();
    let session = scene.take_up(session.id());
    session.wait_quiet();

    let page = session.page(Some(&all.events[gone - 2].cursor), 1000, Duration::ZERO);
    let resync = page.resync.clone().unwrap();
    assert_eq!(resync.reason, "events_expired");
    let kept: Vec<&str> = all.events[gone..].iter().map(|event| event.event_id.as_str()).collect();
    let given: Vec<&str> = page.events.iter().map(|event| event.event_id.as_str()).collect();
    assert_eq!(&given[..kept.len()], kept, "what is left is where it was");
    assert!(page.events.iter().skip(kept.len()).all(|event| event.kind.as_str() == "lifecycle"), "{page:?}");
    let again = session.page(Some(&resync.first_cursor), 1000, Duration::ZERO);
    assert_eq!((again.events, again.resync), (page.events, None));
    // The last that is gone is still a place to go on from.
    let page = session.page(Some(&all.events[gone - 1].cursor), 1, Duration::ZERO);
    assert_eq!((page.events[0].seq, page.resync), (gone as u64 + 1, None));

    session.turn("say: it goes on");
    let page = session.page(Some(&all.events.last().unwrap().cursor), 1000, Duration::ZERO);
    assert!(page.events.iter().any(|event| event.payload["text"] == "it goes on"));
    assert!(page.events.iter().all(|event| event.payload["text"] != "long ago"));
    scene.finish();
}
