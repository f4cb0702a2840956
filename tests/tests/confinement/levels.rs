//! The level is what a process of the agent's showed, and the configuration is held to it.

use gatepost_tests::{Faked, Scene, refusal_code};
use host::hygiene::is_root;
use serde_json::json;
use tempfile::TempDir;
use testkit::daemon::link_programs_without;
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

fn open(probes: &[&str]) -> Plan {
    Plan { open_probes: probes.iter().map(|probe| (*probe).to_owned()).collect(), ..Plan::default() }
}

/// A directory with a link to each program of the system's but this one.
fn programs_without(left_out: &str) -> TempDir {
    let directory = tempfile::Builder::new().prefix("gp-bin-").tempdir().unwrap();
    link_programs_without(left_out, directory.path()).unwrap();
    directory
}

/// What a status, a session, an approval and an attestation say of the confinement: all the same.
fn said(scene: &Scene) -> (String, Vec<String>) {
    let before = scene.status();
    assert_eq!(
        (before.confinement_level.as_str(), before.confinement_missing.len()),
        ("weak", 1),
        "nothing is proved yet"
    );
    let session = scene.session();
    let status = scene.status();
    let (level, missing) = (status.confinement_level, status.confinement_missing);
    assert_eq!(session.snapshot().values["confinement_level"], level.as_str());
    let approval = session.propose("run: echo hello");
    assert_eq!(approval.confinement_level, level);
    assert!(missing.iter().all(|missing| approval.notes.contains(missing)), "{:?}", approval.notes);
    let attested = scene.client().get(&session.path("/attestation")).unwrap().expect_status(200).unwrap();
    assert_eq!(attested["document"]["confinement_level"], level.as_str());
    assert_eq!(attested["document"]["confinement_missing"], json!(missing));
    session.reject(&approval);
    (level, missing)
}

/// On the real server, as an ordinary user, with bubblewrap: nothing of the owner's is within reach of a command.
#[test]
fn an_ordinary_user_has_full_confinement() {
    let scene = Scene::ordinary_with(|setup| setup.confinement = "full");
    assert_eq!(said(&scene), ("full".to_owned(), Vec::new()), "is bubblewrap installed, and may it make namespaces?");
    scene.finish();
}

/// Without it the sockets of other programs are: that is said, with what mends it.
#[test]
fn without_bubblewrap_the_level_is_partial_and_the_package_is_named() {
    let programs = programs_without("bwrap");
    let scene = Scene::ordinary_with(|setup| {
        let path = |value: &str| value.replace("/usr/local/bin:/usr/bin:/bin", &programs.path().to_string_lossy());
        let own = std::env::var("PATH").unwrap();
        let given = setup.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| path(value));
        setup.environment.retain(|(name, _)| name != "PATH");
        let without = format!("{}:{}", programs.path().display(), own);
        setup.environment.push(("PATH".to_owned(), given.unwrap_or(without)));
    });
    let (level, missing) = said(&scene);
    assert_eq!((level.as_str(), missing.len()), ("partial", 3), "{missing:?}");
    let words = ["named sockets", "other terminals", "install the package bubblewrap"];
    assert!(missing.iter().zip(words).all(|(missing, word)| missing.contains(word)), "{missing:?}");
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
        assert_eq!(
            status.confinement_missing.len(),
            probes.len() + usize::from(is_root()),
            "{:?}",
            status.confinement_missing
        );
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
