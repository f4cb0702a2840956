//! The agent turns to the daemon itself: what descends from its server is refused at the socket.

use gatepost_tests::{LIMIT, SETTLE, Scene, wait_until};
use std::path::Path;

/// The command line that approves a batch, as its owner types it, saying what came of it in a file.
fn approval(scene: &Scene, session_id: &str, approval_id: &str, outcome: &Path) -> String {
    let home = scene.home();
    let command = home.command();
    format!(
        "{} approve {session_id} {approval_id} --json --state-dir {} --config {} > {out} 2>&1; echo exit $? >> {out}",
        command.get_program().to_string_lossy(),
        home.state().display(),
        home.path().join("config.toml").display(),
        out = outcome.display(),
    )
}

pub(super) fn approves_itself(scene: &Scene) {
    let waiting = scene.session();
    let marker = scene.marker("self-approved");
    let shown = waiting.propose(&marker.directive());
    let agent = scene.session();
    let direct = scene.workspace().join("direct.txt");
    let detached = scene.workspace().join("detached.txt");
    let approve = |outcome: &Path| approval(scene, waiting.id(), &shown.approval_id, outcome);
    // A process that has left its session, its group and its parent still is the agent's.
    let commands =
        [approve(&direct), format!("(setsid sh -c 'sleep 1; {}' < /dev/null > /dev/null 2>&1 &)", approve(&detached))];
    for (command, outcome) in commands.iter().zip([&direct, &detached]) {
        agent.approve_to_end(&agent.propose(&format!("run: {command}")));
        let said = wait_until("the attempt to end", LIMIT, || {
            std::fs::read_to_string(outcome).ok().filter(|text| text.contains("exit "))
        });
        assert!(!said.contains("exit 0"), "the agent approved its own action: {said}");
        assert!(!said.contains("approval_id"), "the agent was told something: {said}");
    }
    std::thread::sleep(SETTLE);
    marker.assert_absent();
    assert_eq!(waiting.pending().map(|now| now.approval_id), Some(shown.approval_id.clone()), "it waits as before");

    // The very same words do it when a person types them.
    let typed = scene.workspace().join("typed.txt");
    let shell = std::process::Command::new("sh").arg("-c").arg(approve(&typed)).status().unwrap();
    assert!(shell.success());
    let said = std::fs::read_to_string(&typed).unwrap();
    assert!(said.contains("exit 0"), "{said}");
    waiting.wait_quiet();
    marker.assert_runs(1);
}
