//! `gatepost doctor`, as an ordinary user, on a machine and a home where what it looks at is broken.

use rustix::process::geteuid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use testkit::daemon::{Home, Setup, UNPRIVILEGED_USER, workspace_root};

/// Not broken here: the machine's own, or tried where a disk is full. Each is tried alone beside its check.
const NOT_BROKEN_HERE: [&str; 9] =
    ["kernel", "user", "uv", "landlock", "user_namespaces", "confinement", "server_trees", "disk_space", "port_range"];

fn home() -> Home {
    let mut setup = Setup::without_server();
    setup.user = geteuid().is_root().then_some(UNPRIVILEGED_USER);
    Home::new(setup).unwrap()
}

/// What doctor finds, without programs on PATH and without locked memory.
fn examined(home: &Home, words: &[&str]) -> (Option<i32>, Vec<Value>) {
    let own = home.command();
    let arguments: Vec<_> = own.get_args().collect();
    let mut command = Command::new("prlimit");
    command.args(["--memlock=0:0", "--"]);
    if let Some((gatepost, user)) = arguments.split_last() {
        command.arg(own.get_program()).args(user).args(["/usr/bin/env", "PATH=/nonexistent"]).arg(gatepost);
    } else {
        command.args(["/usr/bin/env", "PATH=/nonexistent"]).arg(own.get_program());
    }
    command.args(["doctor", "--json"]).args(words).current_dir(home.path());
    command.env_clear().envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let object: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code(), object["findings"].as_array().unwrap().clone())
}

fn broken(findings: &[Value]) -> BTreeSet<String> {
    let wrong = findings.iter().filter(|finding| finding["state"] != "ok");
    wrong
        .map(|finding| {
            assert!(finding["remedy"].as_str().is_some_and(|remedy| remedy.len() > 5), "no remedy: {finding}");
            assert!(finding["detail"].as_str().is_some_and(|detail| detail.len() > 5), "no words: {finding}");
            finding["check"].as_str().unwrap().to_owned()
        })
        .collect()
}

fn with_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn directory(path: &Path, mode: u32) {
    fs::create_dir_all(path).unwrap();
    with_mode(path, mode);
}

fn file(path: &Path, mode: u32) {
    fs::write(path, "planted").unwrap();
    with_mode(path, mode);
}

fn break_everything(home: &Home) {
    let state = home.state();
    for below in ["", "run", "servers", "bindings", "bindings/one"] {
        directory(&state.join(below), 0o755);
    }
    for name in ["secret.key", "owner.token", "signing.key", "other.token"] {
        file(&state.join(name), 0o644);
    }
    file(&state.join("ledger.sqlite3.damaged-20260101T000000Z"), 0o600);
    let ledger = state.join("ledger.sqlite3");
    file(&ledger, 0o600);
    let ahead = SystemTime::now() + Duration::from_secs(7_200);
    File::options().write(true).open(ledger).unwrap().set_modified(ahead).unwrap();
    directory(&home.path().join("home/.config/gatepost"), 0o777);
    directory(&home.path().join("home/.config/systemd/user"), 0o755);
    file(&home.path().join("home/.config/systemd/user/gatepost.service"), 0o644);
    fs::remove_file(home.path().join("model.key")).unwrap();
    fs::remove_dir_all(home.workspace_root()).unwrap();
}

fn documented() -> BTreeSet<String> {
    let page = fs::read_to_string(workspace_root().join("docs/operations.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| check |")).skip(2);
    let cells = rows.take_while(|line| line.starts_with('|')).filter_map(|line| line.split('|').nth(1));
    cells.flat_map(|cell| cell.split(',').map(|word| word.trim().trim_matches('`').to_owned())).collect()
}

#[test]
fn what_is_broken_is_found_and_what_mends_it_is_said() {
    let home = home();
    let (config, state) = (home.path().join("config.toml"), home.state());
    let socket = format!("/{}/gatepost.sock", "x".repeat(120));
    let token = state.join("other.token");
    let places = ["--state-dir", state.to_str().unwrap(), "--config", config.to_str().unwrap()];
    break_everything(&home);
    home.give_away().unwrap();
    let words = [places.as_slice(), &["--socket", &socket, "--token-file", token.to_str().unwrap()]].concat();
    let (code, all) = examined(&home, &words);
    assert_eq!(code, Some(4));
    let mut found = broken(&all);
    let mut looked_at: BTreeSet<String> = all.iter().map(|one| one["check"].as_str().unwrap().to_owned()).collect();

    // A configuration with mistakes: all at once, each with its place.
    fs::write(&config, "[agent_server]\nmax_servers = 99\n  foo = 1\n").unwrap();
    let (code, all) = examined(&home, &places);
    assert_eq!(code, Some(4));
    let mistakes: Vec<&str> =
        all.iter().filter(|one| one["check"] == "configuration").map(|one| one["detail"].as_str().unwrap()).collect();
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    assert!(mistakes[0].contains("line 2") && mistakes[1].contains("line 3, column 3"), "{mistakes:?}");
    found.extend(broken(&all));

    // None, and so no model.
    fs::write(&config, "").unwrap();
    found.extend(broken(&examined(&home, &places).1));

    looked_at.extend(found.iter().cloned());
    let documented = documented();
    assert_eq!(looked_at, documented, "docs/operations.md does not list the checks there are");
    let not_found: Vec<&String> = documented
        .iter()
        .filter(|check| !found.contains(*check) && !NOT_BROKEN_HERE.contains(&check.as_str()))
        .collect();
    assert!(not_found.is_empty(), "broken, and not found: {not_found:?}");
}
