//! Every process that the server starts is confined, and so are the tools that work within it.

use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use api_types::ReceiptState;
use gatepost_tests::{Scene, Session};
use rules::confinement::{Plan, Policy};
use serde_json::{Value, json};
use testkit::daemon::{SERVER_VERSION, gatepost_binary, shared_install, workspace_root};

#[test]
fn every_way_to_start_a_process_is_confined_or_refused() {
    let installed = process::install::find(&shared_install().unwrap(), SERVER_VERSION).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let [workspace, home, outside] = ["work", "home", "outside"].map(|name| root.join(name));
    std::fs::create_dir(&workspace).unwrap();
    std::fs::create_dir(&home).unwrap();
    std::fs::write(&outside, "secret").unwrap();
    let plan = Plan::new(workspace.clone(), workspace.clone(), workspace.clone());
    let wrapper = root.join("gatepost");
    std::fs::copy(gatepost_binary().unwrap(), &wrapper).unwrap();
    let domain = process::confine::prepare(&Policy::reviewed().unwrap(), &plan).unwrap().into_domain().unwrap();
    rustix::io::fcntl_setfd(&domain, rustix::io::FdFlags::empty()).unwrap();
    let output = Command::new(installed.executable)
        .arg(workspace_root().join("tests/tests/confinement/door.py"))
        .args([&wrapper, &workspace, &home, &outside])
        .arg(domain.as_raw_fd().to_string())
        .env("PYTHONPATH", workspace_root().join("config/contracts").join(SERVER_VERSION).join("startup"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HOME", &workspace)
        .current_dir(&workspace)
        .output()
        .unwrap();
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.trim_end().ends_with("one door"), "{said}{complained}");
}

/// The agent's own shell and editor, on the real server.
#[test]
fn the_agents_shell_and_editor_reach_the_workspace_and_nothing_of_the_owners() {
    let scene = Scene::ordinary();
    let session = scene.session();
    let workspace = scene.workspace();
    let said = run(
        &session,
        "grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd):' /proc/self/status; env | cut -d= -f1; echo HOME=$HOME",
    );
    let words: Vec<&str> = said.split_whitespace().collect();
    for [name, value] in [["NoNewPrivs:", "1"], ["Seccomp:", "2"], ["CapEff:", "0000000000000000"]] {
        assert!(words.windows(2).any(|pair| pair == [name, value]), "{said}");
    }
    assert!(!said.contains("OH_") && !said.contains("GATEPOST_"), "{said}");
    assert!(said.contains("/agent-home"), "{said}");

    let (state, home) = (scene.home().state(), scene.home().path().join("home"));
    let key = state.join("secret.key");
    let rc = home.join(".bashrc");
    let words = format!("cat {}; echo x >> {}; echo ok > inside && cat inside", key.display(), rc.display());
    let said = run(&session, &words);
    // In an outer namespace they are not even there.
    let refused =
        |said: &str| ["Permission denied", "No such file"].map(|why| said.matches(why).count()).iter().sum::<usize>();
    assert_eq!(refused(&said), 2, "{said}");
    assert!(said.contains("ok"), "{said}");
    assert!(!rc.exists());

    let edited = workspace.join("edited");
    let environment = Path::new("/proc/self/environ").to_path_buf();
    for (path, command, is_refused) in
        [(&key, "view", true), (&rc, "create", true), (&environment, "view", true), (&edited, "create", false)]
    {
        let result = edit(&session, command, path);
        assert_eq!(result["text"].as_str().unwrap().contains("Permission denied"), is_refused, "{command}: {result}");
    }
    assert!(!rc.exists() && edited.exists());
    scene.finish();
}

/// After an upgrade another program stands in gatepost's place: what was proved is what confines, until the daemon is
/// started anew.
#[test]
fn what_stands_in_gatepost_s_place_later_confines_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("gatepost");
    std::fs::copy(gatepost_binary().unwrap(), &copy).unwrap();
    let scene = Scene::ordinary_with(|setup| {
        setup.binary = Some(copy.clone());
        setup.confinement = "full";
    });
    let session = scene.session();
    let own = scene.home().path().join("gatepost");
    let program = if own.exists() { own } else { copy };
    let mark = scene.workspace().join("replaced");
    let other = program.with_file_name("other");
    std::fs::write(&other, format!("#!/bin/sh\necho > {}\n", mark.display())).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&other, &program).unwrap();
    let confined = |session: &Session| {
        let said = run(session, "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status");
        assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["NoNewPrivs:", "1", "Seccomp:", "2"]);
    };
    confined(&session);
    // A server that is started now is proved and confined by the same program.
    let second = scene.home().new_workspace("second").unwrap();
    confined(&scene.session_in(&second));
    assert_eq!(scene.status().confinement_level, "full");
    assert!(!mark.exists(), "it was executed");
    scene.finish();
}

/// What the server reads of the workspace by itself may lead no farther than its commands: a link there could name a key.
#[test]
fn what_lies_in_the_workspace_leads_nowhere_else() {
    let scene = Scene::ordinary();
    let workspace = scene.workspace();
    let outside = scene.home().path().join("home/private");
    std::fs::write(&outside, "words of the owner's own").unwrap();
    std::fs::set_permissions(&outside, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::create_dir_all(workspace.join("sub")).unwrap();
    std::fs::write(workspace.join("AGENTS.md"), "words of the workspace").unwrap();
    std::os::unix::fs::symlink(&outside, workspace.join("sub/AGENTS.md")).unwrap();
    std::os::unix::fs::symlink(&outside, workspace.join("CLAUDE.md")).unwrap();
    let session = scene.session();
    session.turn("say: hello");
    let asked = serde_json::to_string(&scene.model().requests()).unwrap();
    assert!(asked.contains("words of the workspace"), "nothing of the workspace was read");
    assert!(!asked.contains("words of the owner"), "a link in the workspace was followed");
    scene.finish();
}

/// What an approved command said.
pub(crate) fn run(session: &Session, command: &str) -> String {
    let shown = session.propose(&format!("run: {command}"));
    session.approve_to_end(&shown);
    text(session, &shown.actions[0].event_id)["text"].as_str().unwrap().to_owned()
}

fn edit(session: &Session, command: &str, path: &Path) -> Value {
    let mut arguments = json!({"command": command, "path": path, "security_risk": "LOW"});
    if command == "create" {
        arguments["file_text"] = json!("text\n");
    }
    let shown = session.propose(&format!("call: file_editor {arguments}"));
    let key = format!("{command}-{}", path.display()).replace('/', ".");
    let reply = session.accept_as(&shown.approval_id, &key);
    assert!(reply.status < 300, "{}", reply.text);
    assert_ne!(session.wait_final(&key).state, ReceiptState::Rejected);
    session.wait_quiet();
    // What a tool could not do stands there as an error, without the action's id.
    let mut events = session.events().into_iter();
    events.rfind(|event| event.kind.as_str() == "tool_result").unwrap().payload
}

fn text(session: &Session, event_id: &str) -> Value {
    session.results_of(event_id).into_iter().next().unwrap()
}
