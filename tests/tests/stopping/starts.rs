//! A server that does not come up is reported at once, with how it ended and its last words.

use gatepost_tests::{Scene, refusal_code};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::daemon::{Reply, SERVER_VERSION, processes_of};
use testkit::fake_server::{self, Announcement, Plan};

/// A start that ends by itself must be told of well before this, and long before its time is over.
const AT_ONCE: Duration = Duration::from_secs(10);

fn scene(directory: &TempDir, agent_server: &str) -> Scene {
    let executable = fake_server::install(&directory.path().join("env"), SERVER_VERSION).unwrap();
    Scene::with(|setup| {
        *setup = setup.clone().with_executable(&executable);
        setup.agent_server = agent_server.to_owned();
    })
}

fn directory() -> TempDir {
    tempfile::Builder::new().prefix("gp-").tempdir().unwrap()
}

fn start_in(scene: &Scene, workspace: &Path) -> (Reply, Duration) {
    let begun = Instant::now();
    let reply = scene.client().post("/v1/sessions", &json!({"workspace": workspace})).unwrap();
    (reply, begun.elapsed())
}

/// Makes the executable a script of these lines.
fn script(directory: &TempDir, lines: &str) {
    let interpreter = directory.path().join("env/bin/python3");
    fs::write(&interpreter, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&interpreter, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_server_that_ends_early_is_reported_at_once_with_its_status_and_last_words() {
    let directory = directory();
    let scene = scene(&directory, "start_timeout_s = 120\n");
    for (name, last_line, status) in
        [("code", "exit 3", "exit code 3"), ("signal", "kill -SEGV $$; sleep 1", "signal 11")]
    {
        let workspace = scene.home().new_workspace(name).unwrap().canonicalize().unwrap();
        script(&directory, &format!("echo to standard output\necho to standard error >&2\n{last_line}"));
        let (reply, took) = start_in(&scene, &workspace);
        assert_eq!((reply.status, refusal_code(&reply).as_str()), (503, "server_start_failed"), "{}", reply.text);
        let detail = reply.body["detail"].as_str().unwrap();
        for words in [status, "to standard output", "to standard error"] {
            assert!(detail.contains(words), "no {words:?} in {detail}");
        }
        assert!(took < AT_ONCE, "it took {took:?}");
        let server = crate::server_of(&scene, &workspace);
        assert_eq!((server.state, server.pid), (api_types::ServerState::Failed, None));
        assert_eq!(server.reason.unwrap().code, "server_start_failed");
    }
    scene.finish();
}

#[test]
fn a_server_that_keeps_failing_is_not_started_for_ever() {
    let directory = directory();
    let scene = scene(&directory, "");
    let proper = fs::read(directory.path().join("env/bin/python3")).unwrap();
    let starts = directory.path().join("starts");
    script(&directory, &format!("echo started >> {}\nexit 4", starts.display()));
    let code = |attempt| if attempt <= 5 { "server_start_failed" } else { "server_crash_looping" };
    for attempt in 1..=7 {
        let (reply, took) = start_in(&scene, &scene.workspace());
        assert_eq!((reply.status, refusal_code(&reply).as_str()), (503, code(attempt)), "{attempt}");
        assert!(reply.header("retry-after").is_some());
        assert!(reply.body["detail"].as_str().unwrap().contains("exit code 4"), "{}", reply.text);
        assert!(took < AT_ONCE, "attempt {attempt} took {took:?}");
    }
    assert_eq!(fs::read_to_string(&starts).unwrap().lines().count(), 5);

    let server = crate::server_of(&scene, &scene.workspace());
    assert_eq!((server.state, server.failures_in_a_row), (api_types::ServerState::CrashLooping, 5));
    assert!(server.next_try_at.is_some() && server.reason.unwrap().detail.contains("exit code 4"));
    assert_eq!(scene.status().state, api_types::OverallState::Blocked);
    let ready = scene.client().get("/v1/readyz").unwrap();
    assert_eq!((ready.status, &ready.body["reasons"][0]["code"]), (503, &json!("server_crash_looping")));
    let status = scene.home().run(&["status"]).unwrap();
    assert!(status.code == Some(4) && status.stdout.contains("crash-looping"), "{status:?}");

    // Another workspace has a server of its own, so the daemon can take sessions.
    fs::write(directory.path().join("env/bin/python3"), proper).unwrap();
    let other = scene.home().new_workspace("other").unwrap();
    scene.session_in(&other).turn("say: hello");
    assert_eq!(scene.client().get("/v1/readyz").unwrap().status, 200);
    assert_eq!(scene.status().state, api_types::OverallState::Degraded);
    scene.finish();
}

#[test]
fn a_server_that_says_nothing_is_ended_when_its_time_is_over() {
    let directory = directory();
    let scene = scene(&directory, "start_timeout_s = 3\n");
    let silent = Plan { announcement: Announcement::Never, ..Plan::default() };
    fake_server::set_plan(&directory.path().join("env"), &silent).unwrap();
    let (reply, took) = start_in(&scene, &scene.workspace());
    assert_eq!(refusal_code(&reply), "server_start_failed");
    assert!(reply.body["detail"].as_str().unwrap().contains("within 3 s"), "{}", reply.text);
    assert!((Duration::from_secs(3)..Duration::from_secs(3) + AT_ONCE).contains(&took), "it took {took:?}");
    assert_eq!(processes_of(scene.home().path(), &[]).len(), 1, "more than the daemon runs");

    // A script that ignores the polite signal, and one that left its group, go all the same.
    let pid_file = directory.path().join("pid");
    let stubborn =
        format!("trap '' TERM\nsetsid sh -c 'echo $$ > {}; exec sleep 600' &\nsleep 600", pid_file.display());
    script(&directory, &stubborn);
    let (reply, _took) = start_in(&scene, &scene.workspace());
    assert_eq!(refusal_code(&reply), "server_start_failed");
    let pid: u32 = fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    assert!(!crate::left::runs(pid), "what the server left still runs");
    assert_eq!(processes_of(scene.home().path(), &[]).len(), 1, "more than the daemon runs");
    scene.finish();
}
