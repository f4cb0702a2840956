//! No live key where the agent, a reader or another user could find it: searched for from the inside, by an approved
//! command of the agent, and from the outside, by root.
//!
//! The agent's processes run as the owner, and are confined: no key is in a file, an environment, an argument list or a
//! memory that they can read, and the daemon's socket does not answer them. No reply and no log holds one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be looked at ends the test")]

mod keys;
mod log;
mod memory;
mod outside;
mod replies;
mod spare;

use api_types::ReceiptState;
use gatepost_tests::{Scene, Session};
use host::hygiene::is_root;
use keys::{Keys, python};
use outside::Secrets;
use replies::Replies;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use testkit::daemon::{as_user, processes_of, server_port};

const SEARCH: &str = include_str!("search.py");
/// Something like a key in a file of the workspace.
const PLANTED: &str = "decoy in a file";
/// How the search program names what it could not do: what its namespace hides is not there.
const REFUSED: [&str; 3] = ["Permission denied", "Operation not permitted", "No such file or directory"];
/// A value like a key in the environment of another process of the agent's user, which is none of the agent's.
const OUTSIDE: &str = "decoy of another process";

#[test]
fn no_key_is_found_by_an_approved_command_or_from_the_outside() {
    let scene = Scene::ordinary();
    let session = scene.session();
    let mut replies = Replies::default();
    let (server, daemon) = (scene.server_pid().unwrap(), scene.daemon().pid());
    let port = server_port(server).unwrap();

    let decoy = Decoy::start(&scene);
    let found = search(&scene, &session, &mut replies);
    drop(decoy);
    check_ways_in(&found, server, daemon);
    check_search_sees(&found);
    let keys = Keys::learn(&scene, daemon, port);
    check_found(&found, &keys);

    // A prompt and a pending batch, so that every kind of reply is looked at.
    let approval = session.propose("run: echo pending");
    replies.collect(&session);
    let secrets = keys.secrets();
    check_outside(&scene, &secrets, server, daemon, &keys);
    session.reject(&approval);
    replies.collect(&session);
    assert_eq!(replies.holding(&secrets), [] as [String; 0]);

    // From here on the server's own log holds them, because a command printed them: no reader may see them all the same.
    print_keys(&scene, &session, &keys);
    replies.collect(&session);
    assert_eq!(replies.holding(&secrets), [] as [String; 0]);
    assert_eq!(secrets.in_bytes(scene.daemon().log().unwrap().as_bytes()), BTreeSet::new());
    scene.finish();
}

/// The next daemon knows a server that was left by its arguments: its environment is closed to its own user as well.
#[test]
fn the_real_servers_arguments_name_its_start_and_can_be_read_by_its_owner() {
    let scene = Scene::ordinary();
    let _session = scene.session();
    let server = scene.server_pid().unwrap();
    let owner = fs::read_to_string(format!("/proc/{server}/status")).unwrap();
    let owner: u32 =
        owner.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok()).unwrap();
    let read = |file: &str| {
        let mut command = Command::new("/bin/cat");
        command.arg(format!("/proc/{server}/{file}"));
        if is_root() {
            command.uid(owner).gid(owner);
        }
        command.output().unwrap()
    };
    let bindings = fs::read_dir(scene.home().state().join("bindings")).unwrap();
    let record = bindings.flatten().find_map(|binding| fs::read(binding.path().join("server.json")).ok()).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["pid"], server);
    assert!(!read("environ").status.success(), "its environment can be read");
    let arguments = String::from_utf8(read("cmdline").stdout).unwrap();
    let name = format!("/startup/{}\0", record["start_name"].as_str().unwrap());
    assert!(arguments.contains(&name), "{arguments:?} names no {name:?}");
    scene.finish();
}

/// Lets the agent run the search, approved like any command, and reads what it wrote.
fn search(scene: &Scene, session: &Session, replies: &mut Replies) -> Value {
    let workspace = scene.workspace();
    let (program, output) = (workspace.join("search.py"), workspace.join("found.json"));
    fs::write(&program, SEARCH).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    plant(&workspace.join("planted"), &key_like(PLANTED));
    let home = scene.home();
    let directories =
        [home.state(), workspace.clone(), home.workspace_root(), home.path().join("home"), "/dev/shm".into()];
    let model_key = home.path().join("model.key");
    let words = [&python(scene), Path::new("-I"), Path::new("-B"), &program, &output, &model_key];
    let mut command = words.map(|word| word.display().to_string()).join(" ");
    for directory in directories {
        command.push_str(&format!(" {}", directory.display()));
    }
    let approval = session.propose(&format!("run: {command}"));
    replies.collect(session);
    assert_eq!(approval.actions[0].arguments["command"], command.as_str());
    // It takes longer than a reply waits, on a slow machine.
    let reply = session.accept_as(&approval.approval_id, "search");
    assert!(reply.status < 300, "{}", reply.text);
    assert_eq!(session.wait_final("search").state, ReceiptState::Applied);
    session.wait_quiet();
    let results = session.results_of(&approval.actions[0].event_id);
    let found =
        fs::read_to_string(&output).unwrap_or_else(|why| panic!("the search wrote nothing ({why}): {results:?}"));
    serde_json::from_str(&found).unwrap()
}

/// Server, guards and daemon are closed to the agent in every way, whichever it tries.
fn check_ways_in(found: &Value, server: u32, daemon: u32) {
    assert_eq!((&found["server"], &found["daemon"]), (&server.into(), &daemon.into()), "it tried the wrong processes");
    assert_ne!(found["user"], 0, "root sees everything: this shows nothing");
    for process in ["server", "inner guard", "outer guard", "daemon"] {
        let ways = found["ways"][process].as_object().unwrap();
        assert!(ways.len() >= 14, "{ways:?}");
        let open: Vec<_> =
            ways.iter().filter(|(_, said)| !REFUSED.contains(&said.as_str().unwrap_or_default())).collect();
        assert!(open.is_empty(), "ways into the {process}: {open:?}");
    }
}

/// The search itself works: it found what was planted for it, in the places where it may look.
fn check_search_sees(found: &Value) {
    for what in ["cmdline", "environ", "mem"] {
        assert!(found["processes"][what].as_u64().unwrap() > 0, "the search read no {what}: {}", found["processes"]);
    }
    assert!(found["files"].as_u64().unwrap() >= 2, "the search read {} files", found["files"]);
    assert!(found["tried"].as_u64().unwrap() > 2, "the search tried {} keys", found["tried"]);
    let place_of = |text: &str| found["found"][rules::jcs::sha256_hex(key_like(text).as_bytes())].clone();
    for (decoy, place) in [("decoy in an environment", "environ"), ("decoy in memory", "mem"), (PLANTED, "file")] {
        assert!(holds(&place_of(decoy), place), "the {decoy} was not found");
    }
    assert_eq!(place_of(OUTSIDE), Value::Null, "the environment of a process that is none of the agent's was read");
    assert_eq!(found["own_environment"], 0, "the agent's environment holds something like a key");
}

fn holds(places: &Value, wanted: &str) -> bool {
    places.as_array().is_some_and(|places| places.iter().any(|place| place == wanted))
}

/// What the agent found of the real keys.
fn check_found(found: &Value, keys: &Keys) {
    let places = |key: &str| found["found"][rules::jcs::sha256_hex(key.as_bytes())].clone();
    for key in keys.session.iter().chain([&keys.secret, &keys.owner, &keys.model]) {
        assert_eq!(places(key), Value::Null, "the agent found a key");
    }
    let files = found["key_files"].as_object().unwrap();
    assert_eq!(files.len(), 3);
    for (place, said) in files.iter().chain([(&"the state directory".to_owned(), &found["state_directory"])]) {
        assert!(REFUSED.contains(&said.as_str().unwrap()), "{place}: {said}");
    }
    assert_eq!(found["taken_by_server"], Value::Array(Vec::new()), "the server took something that the agent found");
    assert_eq!(found["answer_bytes_of_daemon"], 0, "the daemon answered a process that descends from its server");
}

/// Root looks everywhere.
fn check_outside(scene: &Scene, secrets: &Secrets, server: u32, daemon: u32, keys: &Keys) {
    if is_root() {
        // That memory shows a key at all, to whoever may read it.
        let session = keys.session.as_ref().unwrap();
        assert!(memory::key_like(server).contains(session), "root does not see the session key in the server");
        for pid in [server, daemon] {
            let open: Vec<PathBuf> = descriptors(pid);
            let carriers: Vec<_> =
                open.iter().filter(|path| path.to_string_lossy().contains("gatepost-config")).collect();
            assert!(carriers.is_empty(), "process {pid} still holds what carried the keys: {carriers:?}");
        }
    }
    assert_eq!(secrets.in_processes(), [] as [String; 0]);

    let home = scene.home();
    let own_files = [keys.secret_file.clone(), keys.owner_file.clone(), home.path().join("model.key")];
    for file in &own_files {
        assert_eq!(secrets.in_bytes(&fs::read(file).unwrap()).len(), 1, "{}", file.display());
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o7777, 0o600, "{}", file.display());
    }
    let mut left_out = own_files.to_vec();
    // The binary was there before the keys.
    left_out.push(home.path().join("gatepost"));
    assert!(outside::count_files(home.path()) > 50);
    assert_eq!(secrets.in_files(home.path(), &left_out), [] as [String; 0]);
    if is_root() {
        // The agent's user is nobody else.
        let user = processes_user(server);
        for directory in ["/tmp", "/dev/shm", "/var/tmp", "/run"] {
            // Directories of other scenes hold the same model key in its own file.
            let is_scene = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("gp-"));
            for path in outside::owned_by(user, Path::new(directory)).into_iter().filter(|path| !is_scene(path)) {
                assert_eq!(secrets.in_files(&path, &[]), [] as [String; 0]);
            }
        }
    }

    let agents: Vec<_> =
        processes_of(home.path(), &[daemon]).into_iter().filter(|p| ![server, daemon].contains(&p.pid)).collect();
    assert!(agents.iter().any(|process| process.command.contains("tmux")), "no process of the agent: {agents:?}");
    for process in agents {
        assert_eq!(secrets.in_memory(process.pid), BTreeSet::new(), "in the memory of {process:?}");
    }
}

fn descriptors(pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let open: Vec<PathBuf> = entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
    assert!(open.len() > 3, "the descriptors of {pid} cannot be read");
    open
}

fn processes_user(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Lets a command print every key: somebody put them where it can read.
fn print_keys(scene: &Scene, session: &Session, keys: &Keys) {
    let leak = scene.workspace().join("leak");
    plant(&leak, &[&keys.secret, &keys.owner, &keys.model].map(String::as_str).join("\n"));
    let command = format!("cat {} && echo && echo printed", leak.display());
    let approval = session.propose(&format!("run: {command}"));
    session.approve_to_end(&approval);
    let results = session.results_of(&approval.actions[0].event_id);
    let text = results[0]["text"].as_str().unwrap();
    for mark in ["«secret:secret_key»", "«secret:owner_token»", "«secret:model_key»", "printed"] {
        assert!(text.contains(mark), "{text}");
    }
}

/// Puts a file where the agent's commands can read it.
fn plant(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

fn key_like(text: &str) -> String {
    rules::jcs::sha256_hex(text.as_bytes())
}

/// A process of the agent's user that nobody hides, with something like a key in its environment.
struct Decoy(Child);

impl Decoy {
    fn start(scene: &Scene) -> Self {
        let (user, sleep) = (processes_user(scene.daemon().pid()), Path::new("sleep"));
        let mut command = if is_root() { as_user(user, sleep) } else { Command::new(sleep) };
        Self(
            command
                .arg("300")
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .env("DECOY", key_like(OUTSIDE))
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for Decoy {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
