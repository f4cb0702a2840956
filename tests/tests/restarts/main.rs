//! What ended comes back: servers by themselves, their sessions with them, and what waited in them goes on.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

mod closing;
mod crash_loop;
mod cut_off;
mod daemon;
mod probes;
mod server;
mod spare;
mod waiting;

use api_types::{EventKind, Server, SessionList, SessionSummary};
use gatepost_tests::{LIMIT, Scene, Session, typed, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;

/// The server of a workspace, as status shows it: looking starts none.
fn server_in(scene: &Scene, workspace: &Path) -> Option<Server> {
    let wanted = workspace.to_string_lossy().into_owned();
    scene.status().servers.into_iter().find(|server| server.workspace == wanted)
}

/// The process id of the server of the scene's workspace.
fn pid(scene: &Scene) -> u32 {
    scene.server_pid().unwrap()
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

/// Waits for another server of the scene's workspace, without asking for anything that would start one.
#[track_caller]
fn wait_other_server(scene: &Scene, before: u32) -> Server {
    wait_until("another server", LIMIT, || {
        server_in(scene, &scene.workspace()).filter(|server| server.pid.is_some_and(|pid| pid != before))
    })
}

/// The session's line in the list: looking puts it on no server.
fn line(scene: &Scene, session: &Session) -> SessionSummary {
    let list: SessionList = typed(&scene.client().get("/v1/sessions").unwrap(), &[200]);
    list.sessions.into_iter().find(|line| line.session_id == session.id()).unwrap()
}

/// What the session's `lifecycle` events say, in order. Reading events puts it on no server either.
fn told(session: &Session) -> Vec<String> {
    let events = session.events().into_iter().filter(|event| event.kind == EventKind::Lifecycle);
    events.map(|event| event.payload["event"].as_str().unwrap().to_owned()).collect()
}
