//! The level is what a process of the agent's showed, and the configuration is held to it.

use gatepost_tests::{Faked, Scene, refusal_code};
use serde_json::json;
use testkit::daemon::unprivileged_install;
use testkit::fake_server::{ControlAnswer, Plan};

const WEAK: [&str; 8] = [
    "server_environment",
    "server_memory",
    "daemon_environment",
    "daemon_memory",
    "state_directory",
    "daemon_answer",
    "home_file",
    "new_privileges",
];

fn is_root() -> bool {
    host::hygiene::is_root()
}

fn open(probes: &[&str]) -> Plan {
    Plan { open_probes: probes.iter().map(|probe| (*probe).to_owned()).collect(), ..Plan::default() }
}

/// The real server, as an ordinary user: root sees more than the agent does.
pub(crate) fn ordinary() -> Scene {
    if !is_root() {
        return Scene::start();
    }
    let install = unprivileged_install().unwrap();
    Scene::with(|setup| *setup = setup.clone().as_unprivileged(&install))
}

/// On the real server, as an ordinary user: nothing of the daemon's is within reach of a command.
#[test]
fn an_ordinary_user_has_more_than_weak_confinement_and_is_told_what_is_missing() {
    let scene = ordinary();
    let before = scene.status();
    assert_eq!(
        (before.confinement_level.as_str(), before.confinement_missing.len()),
        ("weak", 1),
        "nothing is proved yet"
    );
    let session = scene.session();
    let status = scene.status();
    let whole = host::confine::missing(host::kernel::landlock_abi()).is_empty();
    let (level, missing) = if whole { ("full", 0) } else { ("partial", 1) };
    assert_eq!(status.confinement_level, level, "{:?}", status.confinement_missing);
    assert_eq!(status.confinement_missing.len(), missing, "{:?}", status.confinement_missing);
    assert_eq!(session.snapshot().values["confinement_level"], level);
    let approval = session.propose("run: echo hello");
    assert_eq!(approval.confinement_level, level);
    for missing in &status.confinement_missing {
        assert!(missing.contains("named sockets") && approval.notes.contains(missing), "{missing}");
    }
    let attested = scene.client().get(&session.path("/attestation")).unwrap().expect_status(200).unwrap();
    assert_eq!(attested["document"]["confinement_level"], level);
    assert_eq!(attested["document"]["confinement_missing"], json!(status.confinement_missing));
    session.reject(&approval);
    scene.finish();
}

/// What a trial shows decides, and each thing that got through is named.
#[test]
fn what_gets_through_lowers_the_level_and_is_named() {
    let faked = Faked::new(Plan::default());
    for (probes, level) in [(&WEAK[..], "weak"), (&["outside_socket", "signal_daemon"][..], "partial"), (&[], "full")] {
        faked.follow(open(probes));
        let scene = faked.scene();
        let _started = scene.session();
        let status = scene.status();
        // Root is beyond the model.
        let expected = if is_root() { "weak" } else { level };
        assert_eq!(status.confinement_level, expected, "{probes:?}");
        assert_eq!(status.confinement_missing.len(), probes.len() + usize::from(is_root()));
        scene.finish();
    }
}

/// Less than the configuration accepts is no server.
#[test]
fn less_than_is_accepted_starts_no_session_and_says_what_is_missing() {
    for (plan, word) in [
        (open(&["outside_socket"]), "named sockets"),
        (Plan { probe_answer: ControlAnswer::Lie, ..Plan::default() }, "not understood"),
        (Plan { probe_answer: ControlAnswer::Lie, open_probes: Vec::new(), ..Plan::default() }, "could not be tried"),
    ] {
        let faked = Faked::new(plan);
        let scene = faked.scene_with(|setup| setup.confinement = "full");
        let reply = scene.client().post("/v1/sessions", &json!({"workspace": scene.workspace()})).unwrap();
        assert_eq!(refusal_code(&reply), "confinement_too_weak", "{}", reply.text);
        assert!(reply.text.contains(word), "{}", reply.text);
        assert_eq!(scene.server_pid(), None, "it was left running");
        assert_eq!(faked.changes(), Vec::<String>::new());
        scene.finish();
    }
}

/// A server that does not confine what it starts, or says so later, is not used.
#[test]
fn a_server_without_the_door_is_not_used() {
    let faked = Faked::new(Plan { says_no_door: true, ..Plan::default() });
    let scene = faked.scene();
    let reply = scene.client().post("/v1/sessions", &json!({"workspace": scene.workspace()})).unwrap();
    assert_eq!(refusal_code(&reply), "startup_module_missing", "{}", reply.text);
    assert!(reply.text.contains("would not be confined"), "{}", reply.text);
    scene.finish();
}
