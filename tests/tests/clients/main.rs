//! The programs of the pages for authors of back ends, run as they stand there against the real server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of a test file end the test as the tests do"
)]

mod backend;
mod pages;

use backend::Backend;
use gatepost_tests::{Scenarios, Scene};
use std::path::Path;

#[test]
fn the_programs_of_the_client_pages_do_what_they_say() {
    let mut scene = Scene::start();
    let programs = tempfile::tempdir().unwrap();
    let python = pages::python(programs.path());
    let typescript = pages::typescript(programs.path());
    let mut scenarios = Scenarios::new();
    scenarios.play("python over a killed daemon", || over_a_killed_daemon(&mut scene, &python));
    scenarios.play("python killed and started again", || killed_and_started_again(&scene, &python));
    scenarios.play("typescript over a killed daemon", || over_a_killed_daemon(&mut scene, &typescript));
    scenarios.play("typescript killed and started again", || killed_and_started_again(&scene, &typescript));
    scenarios.finish();
    scene.finish();
}

/// What waits when the daemon is killed is void: it must be shown anew, and runs once.
fn over_a_killed_daemon(scene: &mut Scene, program: &pages::Program) {
    let marker = scene.marker(&format!("{}-killed", program.name));
    let state = tempfile::tempdir().unwrap();
    let state = state.path().join("state.json");
    let mut backend = Backend::start(scene, program, &state, &marker.directive());
    let first = backend.wait_shown();
    scene.kill_daemon();
    scene.serve_again();
    backend.answer("yes");
    let second = backend.wait_shown();
    assert_ne!(first, second, "a restart voids what was shown");
    marker.assert_absent();
    backend.answer("yes");
    let lines = backend.end();
    assert!(lines.iter().any(|line| line.starts_with("not decided (")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("accept: applied")), "{lines:?}");
    marker.assert_runs(1);
    assert_gapless(&seqs(&lines));

    // The same again finds everything done, and nothing to tell.
    let lines = Backend::start(scene, program, &state, &marker.directive()).end();
    assert_eq!(lines, ["prompt: applied", "the turn has ended: finished"]);
    marker.assert_runs(1);
}

/// The program is killed while the person thinks; the next one goes on where it stopped.
fn killed_and_started_again(scene: &Scene, program: &pages::Program) {
    let marker = scene.marker(&format!("{}-again", program.name));
    let state = tempfile::tempdir().unwrap();
    let state = state.path().join("state.json");
    let mut backend = Backend::start(scene, program, &state, &marker.directive());
    let shown = backend.wait_shown();
    let mut lines = backend.kill();
    let mut backend = Backend::start(scene, program, &state, &marker.directive());
    assert_eq!(backend.wait_shown(), shown, "the same batch waits");
    backend.answer("no");
    lines.extend(backend.end());
    assert!(lines.iter().any(|line| line.starts_with("reject: applied")), "{lines:?}");
    marker.assert_absent();
    assert_gapless(&seqs(&lines));
}

/// The numbers of the events that were printed.
fn seqs(lines: &[String]) -> Vec<u64> {
    let numbered = lines.iter().filter_map(|line| line.trim_start().split_once(' '));
    numbered.filter_map(|(number, _)| number.parse().ok()).collect()
}

/// Each event once, in order. Nothing was printed that a later line repeats: the kill came while nothing was printed.
#[track_caller]
fn assert_gapless(seqs: &[u64]) {
    let expected: Vec<u64> = (1..=seqs.len() as u64).collect();
    assert!(seqs.len() > 5, "few events: {seqs:?}");
    assert_eq!(seqs, expected);
}

/// Where the daemon keeps the owner's token.
fn token_file(state_dir: &Path) -> std::path::PathBuf {
    state_dir.join("owner.token")
}
