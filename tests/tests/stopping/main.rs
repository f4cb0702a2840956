//! What is left when something ends: the server, the daemon, a start that fails. And who has the port meanwhile.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

mod daemon_killed;
mod left;
mod limits;
mod port;
mod server_killed;
mod starts;
mod temporary;
mod trees;

use api_types::Approval;
use gatepost_tests::{Scene, Session, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::daemon::{ProcessSeen, processes_of};
use testkit::model::Reply;

/// How long a killed server's tree may live on.
const TREE_LIMIT: Duration = Duration::from_secs(20);

/// The server of a workspace, as status shows it.
fn server_of(scene: &Scene, workspace: &Path) -> api_types::Server {
    let wanted = workspace.to_string_lossy().into_owned();
    scene.status().servers.into_iter().find(|server| server.workspace == wanted).unwrap()
}

/// Kills a process that status reports as the daemon's own server, or that an agent's command left. It may be gone.
fn kill(pid: u32) {
    let sent = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL);
    assert!(matches!(sent, Ok(()) | Err(rustix::io::Errno::SRCH)), "process {pid} could not be killed: {sent:?}");
}

/// The directory that everything of a workspace's server has in its environment.
fn binding(scene: &Scene, workspace: &Path) -> PathBuf {
    process::launch::data_dir(&scene.home().state(), workspace)
}

/// The processes of a workspace's server, itself included.
fn tree(scene: &Scene, workspace: &Path) -> Vec<ProcessSeen> {
    processes_of(&binding(scene, workspace), &[])
}

/// Waits until nothing of a workspace's server is left, nor of what its agent's commands left.
fn wait_gone(scene: &Scene, workspace: &Path, left: &[&left::Left]) {
    wait_until("the tree to be gone", TREE_LIMIT, || {
        let alive = left.iter().flat_map(|left| left.alive()).count() + tree(scene, workspace).len();
        (alive == 0).then_some(())
    });
}

/// Approves a batch that an earlier server proposed. The server then shows the model the action's result without the call,
/// so the model's next words are given here.
fn approve_restored(scene: &Scene, session: &Session, approval: &Approval) {
    assert!(scene.model().push(Reply::say("done")));
    session.approve_to_end(approval);
}
