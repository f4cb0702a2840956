//! Daemons that do not start, and leave what they found as it was.

use super::stage::Stage;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use testkit::daemon::{Home, Setup};

fn home() -> Home {
    Home::new(Setup::without_server()).unwrap()
}

fn file_of(home: &Home, start: &str) -> PathBuf {
    let names = fs::read_dir(home.state()).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with(start) && !name.contains("-wal") && !name.contains("-shm")
    };
    names.into_iter().find(is_it).unwrap_or_else(|| panic!("no {start} in the state directory"))
}

#[test]
fn a_second_daemon_on_the_same_state_is_refused_and_the_first_goes_on() {
    let stage = Stage::new();
    let before = stage.standing();
    let home = stage.scene.home();
    let told = home.run(&["serve", "--json"]).unwrap();
    let object = told.json();
    assert_eq!((told.code, object["error"]["code"].as_str()), (Some(6), Some("already_running")), "{told:?}");
    let pid = stage.scene.daemon().pid().to_string();
    assert!(object["error"]["detail"].as_str().unwrap().contains(&pid), "it does not say which: {told:?}");
    // Not even with a socket of its own.
    let elsewhere = home.path().join("elsewhere.sock").to_string_lossy().into_owned();
    let told = home.run(&["serve", "--json", "--socket", &elsewhere]).unwrap();
    assert_eq!((told.code, told.json()["error"]["code"].as_str()), (Some(6), Some("already_running")), "{told:?}");
    assert!(!Path::new(&elsewhere).exists());
    stage.nothing_came_of_it(&before);
    stage.finish();
}

#[test]
fn state_that_others_could_read_or_change_is_refused() {
    for name in ["owner", "ledger", ""] {
        let home = home();
        assert!(home.serve().unwrap().stop().unwrap().status.success());
        let (path, mode) = if name.is_empty() { (home.state(), 0o755) } else { (file_of(&home, name), 0o644) };
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let told = home.run(&["serve", "--json"]).unwrap();
        assert_eq!(told.code, Some(1), "{}: {told:?}", path.display());
        let detail = told.json()["error"]["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains(&*path.to_string_lossy()), "which file: {told:?}");
        let after = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(after, mode, "{} was quietly changed", path.display());
    }
}

#[test]
fn every_mistake_of_a_configuration_is_told_at_once() {
    let home = home();
    let config = home.path().join("config.toml");
    let text = "\
[agent_server]\nversion = \"1.40\"\nstart_timeout_s = 0\nmax_servers = \"four\"\nstand_by = true\n\
[workspaces]\nroots = [\"relative\"]\n\
[model]\nname = \"\"\ntools = [\"terminal\", \"task\"]\napi_key = { file = \"/nonexistent/key\", credential = \"x\" }\n\
[approval]\nexpires_min = -1\npolicy = \"NeverConfirm\"\n\
[confinement]\nlevel = \"none\"\n\
[surprise]\nx = 1\n";
    fs::write(&config, text).unwrap();
    let told = home.run(&["serve", "--json"]).unwrap();
    assert_eq!(told.code, Some(2), "{told:?}");
    let object = told.json().to_string();
    let mistakes = [
        "version",
        "start_timeout_s",
        "max_servers",
        "stand_by",
        "roots",
        "name",
        "tools[1]",
        "api_key",
        "expires_min",
        "policy",
        "level",
        "surprise",
    ];
    let missing: Vec<&&str> = mistakes.iter().filter(|mistake| !object.contains(**mistake)).collect();
    assert!(missing.is_empty(), "not told of {missing:?}: {object}");
    assert!(!home.socket().exists());
    // A text that is no TOML is one mistake.
    fs::write(&config, "[agent_server\n").unwrap();
    assert_eq!(home.run(&["serve", "--json"]).unwrap().code, Some(2));
}
