//! Canaries of a server that starts: what fails one is ended before it is set up or given anything to do.

use api_types::{Canary, CanaryState, OverallState, Server, ServerState};
use gatepost_tests::{Faked, Scene, refusal_code};
use serde_json::json;
use std::path::Path;
use testkit::daemon::{Reply, SERVER_VERSION};
use testkit::fake_server::{Announcement, ControlAnswer, Keys, Plan, install_distributions};

/// A server that must not be taken.
struct Bad {
    name: &'static str,
    plan: Plan,
    code: &'static str,
    /// The canary that says so; none where the server was never spoken to.
    canary: Option<&'static str>,
}

fn bad(name: &'static str, plan: Plan, code: &'static str, canary: Option<&'static str>) -> Bad {
    Bad { name, plan, code, canary }
}

fn table() -> Vec<Bad> {
    let plan = Plan::default;
    let announcing = |announcement| Plan { announcement, ..plan() };
    let (module, auth) = (Some("startup_module"), Some("authentication"));
    vec![
        bad("another-version", Plan { version: Some("1.41.0".into()), ..plan() }, "version_mismatch", Some("versions")),
        bad(
            "another-title",
            Plan { title: Some("Agent Server".into()), ..plan() },
            "version_mismatch",
            Some("versions"),
        ),
        bad(
            "two-listeners",
            Plan { second_listener: true, ..plan() },
            "listener_not_inherited",
            Some("inherited_listener"),
        ),
        bad("no-latch", Plan { says_no_latch: true, ..plan() }, "startup_module_missing", module),
        bad("dumpable", Plan { says_dumpable: true, ..plan() }, "startup_module_missing", module),
        bad("plugins-loaded", Plan { says_plugins_loaded: true, ..plan() }, "startup_module_missing", module),
        bad(
            "nonce-in-the-inspection",
            Plan { inspect_answer: ControlAnswer::Lie, ..plan() },
            "startup_module_missing",
            module,
        ),
        bad(
            "no-inspection",
            Plan { inspect_answer: ControlAnswer::Silence, ..plan() },
            "canary_failed",
            Some("inherited_listener"),
        ),
        bad("any-key", Plan { keys: Keys::Open, ..plan() }, "authentication_open", auth),
        bad("no-key-at-all", Plan { keys: Keys::Closed, ..plan() }, "authentication_open", auth),
        bad("init-open", Plan { init_open: true, ..plan() }, "init_open", Some("init_closed")),
        bad("silent", announcing(Announcement::Never), "server_start_failed", None),
        bad("wrong-nonce", announcing(Announcement::WrongNonce), "server_start_failed", None),
        bad("wrong-contract", announcing(Announcement::WrongContract), "server_start_failed", None),
        bad("garbage", announcing(Announcement::Garbage), "server_start_failed", None),
        bad("ends-at-once", Plan { exit_at_once: Some(7), ..plan() }, "server_start_failed", None),
    ]
}

fn start(scene: &Scene, workspace: &Path) -> Reply {
    let body = json!({"workspace": workspace, "prompt": "run: true"});
    scene.client().post("/v1/sessions", &body).unwrap()
}

fn server_of(scene: &Scene, workspace: &Path) -> Server {
    let workspace = workspace.canonicalize().unwrap().to_string_lossy().into_owned();
    let servers = scene.status().servers;
    servers.into_iter().find(|server| server.workspace == workspace).unwrap_or_else(|| panic!("no {workspace}"))
}

/// The server of a workspace failed with this code, and nothing of it is left.
#[track_caller]
fn failed_and_gone(scene: &Scene, workspace: &Path, code: &str, canary: Option<&str>) {
    let server = server_of(scene, workspace);
    assert_eq!((server.state, server.pid), (ServerState::Failed, None), "{server:?}");
    assert_eq!(server.reason.as_ref().map(|reason| reason.code.as_str()), Some(code), "{server:?}");
    let failed = server.canaries.iter().find(|result| result.code.is_some());
    // The others are told of, too: nothing is there that they could be read of.
    for one in &server.canaries {
        let expected = if one.code.is_some() { CanaryState::Blocked } else { CanaryState::Stopped };
        assert!(one.state == expected && one.remedy.is_some(), "{server:?}");
    }
    assert_eq!(failed.map(|result| result.canary.as_str()), canary, "{server:?}");
    assert_eq!(failed.map(|result| result.code.as_deref()), canary.map(|_| Some(code)), "{server:?}");
    assert_eq!(scene.daemon().processes(), [], "a process is left");
}

/// All of an installation and a server, no other, and nothing to be done about any.
fn all_ready(server: &Server) -> bool {
    let ready = |one: &Canary| one.state == CanaryState::Ready && one.passed && one.remedy.is_none();
    server.canaries.len() == 6 && server.canaries.iter().all(ready)
}

#[test]
fn a_server_that_fails_a_canary_is_ended_and_told_of() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene_with(|setup| setup.agent_server = "start_timeout_s = 4".to_owned());
    for Bad { name, plan, code, canary } in table() {
        eprintln!("--- {name}");
        let (asked, changed) = (faked.asked().len(), faked.changes().len());
        faked.follow(plan);
        let workspace = scene.home().new_workspace(name).unwrap();
        let reply = start(&scene, &workspace);
        assert_eq!(refusal_code(&reply), code, "{name}: {}", reply.text);
        failed_and_gone(&scene, &workspace, code, canary);
        assert_eq!(faked.changes().len(), changed, "{name}: something was changed on it");
        if canary.is_none() {
            assert_eq!(faked.asked().len(), asked, "{name}: it was spoken to");
        }
    }
    let ended = server_of(&scene, &scene.home().workspace_root().join("ends-at-once"));
    let detail = ended.reason.unwrap().detail;
    assert!(detail.contains("fake server: ending with 7, as planned") && detail.contains('7'), "{detail}");

    let status = scene.status();
    assert_eq!(status.state, OverallState::Degraded);
    assert!(status.sessions.is_empty(), "a session stands on a server that was refused");
    let told = scene.home().run(&["status", "--json"]).unwrap();
    assert_eq!(told.code, Some(4), "{told:?}");
    for row in table() {
        assert!(told.stdout.contains(row.code), "the command does not name {}: {}", row.code, told.stdout);
    }

    // What was wrong is mended: the same workspace has a server again, and it is a proper one.
    faked.follow(Plan::default());
    let mended = scene.home().workspace_root().join("any-key");
    scene.session_in(&mended).turn("say: hello");
    let server = server_of(&scene, &mended);
    assert!(server.state == ServerState::Ready && all_ready(&server), "{server:?}");
    scene.finish();
}

/// An own executable is what its environment says; it is not run to find out.
#[test]
fn an_executable_of_another_version_is_never_started() {
    let four = ["openhands_agent_server", "openhands_sdk", "openhands_tools", "openhands_workspace"];
    let all_other = four.map(|name| (name, "1.58.2")).to_vec();
    let one_other: Vec<_> =
        four.map(|name| (name, if name == "openhands_tools" { "1.39.0" } else { SERVER_VERSION })).to_vec();
    let one_missing = four[..3].iter().map(|name| (*name, SERVER_VERSION)).collect::<Vec<_>>();
    for (versions, named) in
        [(all_other, "1.58.2"), (one_other, "openhands-tools is 1.39.0"), (one_missing, "openhands-workspace is none")]
    {
        let faked = Faked::of(|directory| install_distributions(directory, &versions));
        let scene = faked.scene();
        let workspace = scene.workspace();
        let reply = start(&scene, &workspace);
        assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "version_mismatch"));
        assert!(reply.text.contains(named), "{}", reply.text);
        failed_and_gone(&scene, &workspace, "version_mismatch", None);
        assert_eq!(faked.asked(), Vec::<String>::new());
        scene.finish();
    }
}

/// Five failures in a row are enough: no further start is tried at once, and the last reason stays in sight.
#[test]
fn a_workspace_whose_server_keeps_failing_is_left_alone_for_a_while() {
    let faked = Faked::new(Plan { exit_at_once: Some(9), ..Plan::default() });
    let scene = faked.scene();
    for _ in 0..5 {
        assert_eq!(refusal_code(&start(&scene, &scene.workspace())), "server_start_failed");
    }
    faked.follow(Plan::default());
    let reply = start(&scene, &scene.workspace());
    assert_eq!(refusal_code(&reply), "server_crash_looping");
    assert!(reply.text.contains("5 times in a row") && reply.text.contains("as planned"), "{}", reply.text);
    assert_eq!(faked.asked(), Vec::<String>::new(), "a sixth start was tried");
    scene.session_in(&scene.home().new_workspace("another").unwrap()).turn("say: hello");
    scene.finish();
}
