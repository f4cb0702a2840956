//! What is read when all is right: defaults, places, the example, the key.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{Home, right};
use rules::confinement::Level;
use rules::refusal::RefusalCode;
use settings::{ApiKey, Model, ModelSource, Paths, Settings, SettingsError, Sources};

const EXAMPLE: &str = include_str!("../../../../config/example.toml");

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn without_a_file_all_is_default() {
    let home = Home::new();
    let mut settings = Settings::load(&home.sources()).unwrap();
    assert!(!settings.from_file);
    let server = &settings.agent_server;
    assert_eq!(server.version, "1.40.0");
    assert_eq!((&server.executable, &server.python), (&None, &None));
    assert_eq!((server.start_timeout_s, server.standby, server.max_servers, server.idle_stop_min), (120, false, 4, 30));
    assert_eq!(server.probe_interval_s, 120);
    assert_eq!(server.idle_stop(), Some(Duration::from_secs(1800)));
    assert_eq!(settings.workspaces.roots, [home.path().join("src")]);
    assert_eq!(settings.model, None);
    assert_eq!((settings.approval.expires_min, settings.approval.reviewed_content.len()), (60, 0));
    assert_eq!(settings.confinement.level, Level::Full);
    let events = &settings.events;
    assert_eq!((events.retention_days, events.rest_after_s, events.rest_read_s), (30, 60, 60));
    assert!(settings.read_model_key().unwrap().is_none());
    let empty = home.load("").unwrap();
    settings.from_file = true;
    assert_eq!(empty, settings);
}

#[test]
fn the_example_is_the_defaults() {
    let home = Home::new();
    let mut default = Settings::load(&home.sources()).unwrap();
    let example = home.load(EXAMPLE).unwrap();
    default.from_file = true;
    assert_eq!(example, default);
}

#[test]
fn the_example_names_every_key_and_its_settings_without_default_are_right() {
    let uncommented: Vec<&str> = EXAMPLE
        .lines()
        .map(|line| {
            line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| !c.is_whitespace())).unwrap_or(line)
        })
        .collect();
    let text = uncommented.join("\n");
    for key in [
        "version",
        "executable",
        "python",
        "start_timeout_s",
        "standby",
        "max_servers",
        "idle_stop_min",
        "probe_interval_s",
        "roots",
        "name",
        "base_url",
        "api_key",
        "choices",
        "tools",
        "expires_min",
        "reviewed_content",
        "level",
        "retention_days",
        "rest_after_s",
        "rest_read_s",
    ] {
        assert!(uncommented.iter().any(|line| line.starts_with(&format!("{key} = "))), "{key}");
    }
    let home = Home::new();
    let settings = home.load(text).unwrap();
    let model = settings.model.unwrap();
    assert_eq!(model.tools, settings::DEFAULT_TOOLS);
    let key = ApiKey::File(home.path().join(".config/gatepost/model.key"));
    assert!(matches!(model.source, ModelSource::Named { api_key: Some(found), .. } if found == key));
    assert!(settings.agent_server.executable.is_some() && settings.agent_server.python.is_some());
    // The one key that cannot stand beside the others.
    let profile = EXAMPLE.lines().find_map(|line| line.strip_prefix("# profile_id")).unwrap();
    right(&format!("[model]\nprofile_id{profile}"));
}

#[test]
fn what_is_set_is_taken() {
    let home = Home::new();
    let settings = home
        .load(format!(
            "[agent_server]\nversion = '2.0.10'\nexecutable = '/opt/x'\npython = '~/py'\nstart_timeout_s = 1\n\
             standby = true\nmax_servers = 16\nidle_stop_min = 0\n[workspaces]\nroots = ['~', '/srv//work/']\n\
             [model]\nname = 'a/b'\nbase_url = 'http://127.0.0.1:9/v1'\nchoices = ['c']\ntools = ['grep']\n\
             [approval]\nexpires_min = 5\nreviewed_content = ['{0}']\n[confinement]\nlevel = 'full'\n\
             [events]\nretention_days = 1\nrest_after_s = 2\nrest_read_s = 3\n",
            "0".repeat(64)
        ))
        .unwrap();
    let server = &settings.agent_server;
    assert_eq!(server.version, "2.0.10");
    assert_eq!(server.executable.as_deref(), Some(Path::new("/opt/x")));
    assert_eq!(server.python, Some(home.path().join("py")));
    assert_eq!((server.start_timeout_s, server.standby, server.max_servers), (1, true, 16));
    assert_eq!(server.idle_stop(), None);
    assert_eq!(settings.workspaces.roots, [home.path().to_path_buf(), PathBuf::from("/srv/work")]);
    let source =
        ModelSource::Named { name: "a/b".into(), base_url: Some("http://127.0.0.1:9/v1".into()), api_key: None };
    assert_eq!(settings.model, Some(Model { source, choices: vec!["c".into()], tools: vec!["grep".into()] }));
    assert_eq!(settings.approval.reviewed_content, ["0".repeat(64)]);
    assert!(settings.confinement.level > Level::Partial);
    assert_eq!(settings.confinement.level.as_str(), "full");
    let events = &settings.events;
    assert_eq!((events.retention_days, events.rest_after_s, events.rest_read_s), (1, 2, 3));
    assert_eq!(right("workspaces.roots = []").workspaces.roots, Vec::<PathBuf>::new());
}

#[test]
fn the_named_file_must_exist_and_the_default_one_need_not() {
    let home = Home::new();
    let sources = Sources { config_file: Some(home.path().join("other.toml")), ..home.sources() };
    assert!(matches!(Settings::load(&sources), Err(SettingsError::Missing { .. })));
    home.write(".config/gatepost/config.toml", "events.retention_days = 1");
    home.write("other.toml", "events.retention_days = 2");
    let settings = Settings::load(&sources).unwrap();
    assert_eq!(settings.events.retention_days, 2);
    assert_eq!(settings.paths.config_file, home.path().join("other.toml"));
    assert_eq!(Settings::load(&home.sources()).unwrap().events.retention_days, 1);
    let xdg = Sources { xdg_config_home: Some(home.path().join("xdg")), ..home.sources() };
    home.write("xdg/gatepost/config.toml", "events.retention_days = 3");
    assert_eq!(Settings::load(&xdg).unwrap().events.retention_days, 3);
}

#[test]
fn a_file_that_others_could_change_or_that_is_none_is_refused() {
    let home = Home::new();
    let path = home.write(".config/gatepost/config.toml", "");
    let refused = || matches!(Settings::load(&home.sources()), Err(SettingsError::Unreadable { .. }));
    for bad in [0o604, 0o602, 0o640, 0o620, 0o644] {
        mode(&path, bad);
        assert!(refused(), "{bad:o}");
    }
    mode(&path, 0o600);
    assert!(!refused());
    home.write(".config/gatepost/config.toml", " ".repeat(settings::MAX_CONFIG_BYTES as usize + 1));
    assert!(refused(), "too large");
    fs::remove_file(&path).unwrap();
    symlink(home.write("elsewhere.toml", ""), &path).unwrap();
    assert!(refused(), "a link");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(refused(), "a directory");
}

#[test]
fn places() {
    let base = Sources { home: "/home/u".into(), ..Sources::default() };
    let plain = Paths::resolve(&base).unwrap();
    assert_eq!(plain.config_file, Path::new("/home/u/.config/gatepost/config.toml"));
    assert_eq!(plain.state_dir, Path::new("/home/u/.local/state/gatepost"));
    for (path, name) in [
        (&plain.secret_key, "secret.key"),
        (&plain.owner_token, "owner.token"),
        (&plain.signing_key, "signing.key"),
        (&plain.ledger, "ledger.sqlite3"),
        (&plain.journal, "journal.sqlite3"),
        (&plain.servers_dir, "servers"),
        (&plain.bindings_dir, "bindings"),
    ] {
        assert_eq!(path, &plain.state_dir.join(name));
    }
    let xdg = Sources {
        xdg_config_home: Some("/c".into()),
        xdg_state_home: Some("/s".into()),
        xdg_runtime_dir: Some("/run/user/1".into()),
        ..base.clone()
    };
    let found = Paths::resolve(&xdg).unwrap();
    assert_eq!(found.config_dir, Path::new("/c/gatepost"));
    assert_eq!(found.state_dir, Path::new("/s/gatepost"));
    let moved = Paths::resolve(&Sources { state_dir: Some("/d".into()), ..xdg }).unwrap();
    assert_eq!(moved.config_dir, Path::new("/c/gatepost"));
    assert_eq!(moved.state_dir, Path::new("/d"));
    assert_eq!(moved.socket, Path::new("/d/run/gatepost.sock"));
    let relative = Sources {
        xdg_config_home: Some("c".into()),
        xdg_state_home: Some("".into()),
        xdg_runtime_dir: Some("r".into()),
        ..base.clone()
    };
    assert_eq!(Paths::resolve(&relative).unwrap(), plain);
    for wrong in [
        Sources { home: "home".into(), ..base.clone() },
        Sources { home: "".into(), ..base.clone() },
        Sources { state_dir: Some("state".into()), ..base.clone() },
        Sources { config_file: Some("c.toml".into()), ..base.clone() },
    ] {
        assert!(matches!(Paths::resolve(&wrong), Err(SettingsError::NotAbsolute { .. })), "{wrong:?}");
        assert!(Settings::load(&wrong).is_err());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_socket_is_in_the_users_runtime_directory_or_below_the_state() {
    let base = Sources { home: "/home/u".into(), ..Sources::default() };
    let without = Paths::resolve(&base).unwrap();
    assert_eq!(without.runtime_dir, Path::new("/home/u/.local/state/gatepost/run"));
    let with = Paths::resolve(&Sources { xdg_runtime_dir: Some("/run/user/1".into()), ..base }).unwrap();
    assert_eq!(with.socket, Path::new("/run/user/1/gatepost/gatepost.sock"));
}

#[test]
fn roots_are_looked_at_when_asked_for() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("real")).unwrap();
    symlink(home.path().join("real"), home.path().join("link")).unwrap();
    home.write("file", "");
    let settings = home.load("workspaces.roots = ['~/link', '~/later', '~/file']").unwrap();
    let real = home.path().join("real").canonicalize().unwrap();
    let roots = settings.workspaces.resolve();
    assert_eq!(roots[0].configured, home.path().join("link"));
    assert_eq!(roots[0].resolved, Ok(real));
    for (root, part) in [(&roots[1], "create it"), (&roots[2], "is no directory")] {
        let refusal = root.resolved.clone().unwrap_err();
        assert_eq!(refusal.code, RefusalCode::WorkspaceNotFound);
        assert!(refusal.detail.contains(part), "{refusal}");
    }
    fs::create_dir(home.path().join("later")).unwrap();
    assert!(settings.workspaces.resolve()[1].resolved.is_ok());
}

#[test]
fn the_key_is_read_from_a_private_file_when_asked_for() {
    let home = Home::new();
    let settings = home.load("[model]\nname = 'a'\napi_key = {file = '~/model.key'}").unwrap();
    let refused = || matches!(settings.read_model_key(), Err(SettingsError::ModelKey { .. }));
    assert!(refused(), "it is not there");
    let path = home.write("model.key", "sk-hunter2\n");
    assert_eq!(settings.read_model_key().unwrap().unwrap().expose(), "sk-hunter2");
    assert!(!format!("{settings:?}").contains("hunter2"));
    mode(&path, 0o644);
    let told = settings.read_model_key().unwrap_err();
    assert!(told.to_string().contains("chmod 600") && !told.to_string().contains("hunter2"), "{told}");
    for content in ["", " \n", &"x".repeat(20_000)] {
        home.write("model.key", content);
        assert!(refused(), "{} bytes", content.len());
    }
}

#[test]
fn the_key_is_read_from_the_units_credentials() {
    let home = Home::new();
    home.write(".config/gatepost/config.toml", "[model]\nname = 'a'\napi_key = {credential = 'model-key'}");
    let without = Settings::load(&home.sources()).unwrap();
    assert!(matches!(without.read_model_key(), Err(SettingsError::NoCredentials { name }) if name == "model-key"));
    let file = home.write("credentials/model-key", "sk-hunter2");
    mode(&file, 0o400);
    let sources = Sources { credentials_directory: Some(home.path().join("credentials")), ..home.sources() };
    let with = Settings::load(&sources).unwrap();
    assert_eq!(with.read_model_key().unwrap().unwrap().expose(), "sk-hunter2");
}

#[test]
fn a_profile_needs_no_key() {
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let settings = right(&format!("[model]\nprofile_id = '{id}'\ntools = ['terminal']"));
    assert!(settings.read_model_key().unwrap().is_none());
    assert_eq!(settings.model.unwrap().source, ModelSource::Profile { profile_id: id.into() });
}
