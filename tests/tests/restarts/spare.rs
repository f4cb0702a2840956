//! With `[agent_server] standby`, a process that has imported everything waits, and becomes the next server that is needed.

use super::{kill, line, pid, server_in, wait_other_server};
use api_types::{OverallState, ServerState, Spare, SpareState};
use gatepost_tests::{Faked, LIMIT, SETTLE, Scene, refusal_code, wait_until};
use std::collections::BTreeSet;
use std::fs;
use testkit::fake_server::Plan;

fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// The directories of spares, of one that became a server too.
fn directories(scene: &Scene) -> BTreeSet<String> {
    let entries = fs::read_dir(scene.home().state().join("bindings")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("spare-")).collect()
}

fn spare(scene: &Scene) -> Spare {
    scene.status().spare.unwrap()
}

/// On the real server.
#[test]
fn a_spare_becomes_the_killed_server_and_the_next_one_that_of_a_new_workspace() {
    let mut scene = Scene::with(|setup| setup.agent_server = "standby = true\n".to_owned());
    assert_eq!(spare(&scene).state, SpareState::None);
    let session = scene.session();
    let (first, workspace) = (pid(&scene), scene.workspace());
    let (level, lacks) = (scene.status().confinement_level, scene.status().confinement_missing);
    let digest = server_in(&scene, &workspace).unwrap().launch_config_digest;
    let made = scene.wait_spare(&[]);
    let marker = scene.marker("waits");
    let shown = session.propose(&marker.directive());

    kill(first);
    let after = wait_other_server(&scene, first);
    assert_eq!((after.state, after.pid, after.reason), (ServerState::Ready, Some(made), None));
    assert!(after.canaries.iter().all(|canary| canary.passed), "{:?}", after.canaries);
    assert_eq!((after.launch_config_digest, scene.status().confinement_missing), (digest, lacks.clone()));
    wait_until("the batch to be shown again", LIMIT, || (line(&scene, &session).pending_actions == 1).then_some(()));
    marker.assert_absent();
    assert_eq!(refusal_code(&session.ask_accept(&shown.approval_id)), "approval_superseded");
    session.approve_to_end(&session.wait_pending());
    marker.assert_runs(1);

    // The next one has another workspace's directories, and what it runs is confined and asked for as ever.
    let next = scene.wait_spare(&[made]);
    let other = scene.home().new_workspace("other").unwrap().canonicalize().unwrap();
    let elsewhere = scene.session_in(&other);
    let server = server_in(&scene, &other).unwrap();
    assert_eq!((server.state, server.pid), (ServerState::Ready, Some(next)));
    assert_eq!((scene.status().confinement_level, scene.status().confinement_missing), (level, lacks));
    let there =
        elsewhere.propose("run: echo $HOME $TMPDIR > where && echo x > ../other/own; echo x > ../workspace/foreign");
    assert!(!other.join("where").exists());
    elsewhere.approve_to_end(&there);
    let data = process::launch::data_dir(&scene.home().state(), &other);
    let said = fs::read_to_string(other.join("where")).unwrap();
    assert!(said.starts_with(&*data.join("agent-home").to_string_lossy()), "{said}");
    assert!(other.join("own").exists() && !workspace.join("foreign").exists());

    // A daemon that is killed while one waits leaves nothing of it, nor of those that became servers.
    let waiting = scene.wait_spare(&[made, next]);
    scene.kill_daemon();
    wait_until("all to be gone", LIMIT, || [made, next, waiting].iter().all(|pid| !is_alive(*pid)).then_some(()));
    scene.serve_again();
    assert_eq!(directories(&scene), BTreeSet::new());
    scene.finish();
}

/// On the real server.
#[test]
fn a_spare_that_ends_is_made_anew_and_one_that_is_being_made_gives_way_to_a_server_and_to_the_daemons_end() {
    let mut scene = Scene::with(|setup| setup.agent_server = "standby = true\n".to_owned());
    let _session = scene.session();
    let first = scene.wait_spare(&[]);
    kill(first);
    // Status says so for half a second at most: then another one is made.
    let log = || scene.daemon().log().unwrap();
    wait_until("the end of the spare to be told", LIMIT, || {
        log().contains("the spare ended while it waited").then_some(())
    });
    assert_eq!(scene.status().state, OverallState::Ready, "no session depends on it");

    let begun = wait_until("another one to be made", LIMIT, || {
        directories(&scene).into_iter().next().filter(|_| spare(&scene).state == SpareState::Starting)
    });
    let other = scene.home().new_workspace("other").unwrap().canonicalize().unwrap();
    let _elsewhere = scene.session_in(&other);
    assert!(!directories(&scene).contains(&begun), "it went on beside the start of a server");
    assert_eq!(server_in(&scene, &other).unwrap().state, ServerState::Ready);
    assert_eq!(log().matches("the spare failed").count(), 1, "to give way is no failure");

    // Stopped while one is being made, and while one waits.
    wait_until("another one to be made", LIMIT, || (spare(&scene).state == SpareState::Starting).then_some(()));
    scene.stop_daemon();
    assert_eq!(directories(&scene), BTreeSet::new());
    scene.serve_again();
    let _again = scene.session();
    let waiting = scene.wait_spare(&[]);
    scene.stop_daemon();
    assert!(!is_alive(waiting));
    assert_eq!(directories(&scene), BTreeSet::new());
}

/// The fake server knows nothing of spares: each of them fails, again and again.
#[test]
fn spares_that_fail_are_told_and_tried_ever_later_and_disturb_no_session() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene_with(|setup| setup.agent_server = "standby = true\n".to_owned());
    let session = scene.session();
    let failed = |tries: usize| {
        wait_until("spares to fail", LIMIT, || {
            let counted = scene.daemon().log().unwrap().matches("the spare failed").count();
            let told = spare(&scene);
            (counted >= tries && told.state == SpareState::Failed).then_some(told)
        })
    };
    let told = failed(2);
    assert_eq!(told.reason.unwrap().code, "server_start_failed");
    assert!(told.next_try_at.is_some() && told.remedy.is_some() && told.pid.is_none());
    session.turn("say: hello");
    let before = pid(&scene);
    kill(before);
    let after = wait_other_server(&scene, before);
    assert_eq!((after.state, scene.status().state), (ServerState::Ready, OverallState::Ready));
    session.turn("say: again");
    scene.finish();
}

#[test]
fn without_standby_no_spare_is_made() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let session = scene.session();
    session.turn("say: hello");
    // A spare is made three seconds after a server became ready.
    std::thread::sleep(SETTLE * 4);
    assert_eq!((scene.status().spare, directories(&scene)), (None, BTreeSet::new()));
    assert!(!scene.daemon().log().unwrap().contains("spare"), "{}", scene.daemon().log().unwrap());
    scene.finish();
}
