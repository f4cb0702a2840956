use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use host::secure_fs::write_private_new;

use super::*;

const MODEL_KEY: &str = "sk-planted-model-key-0123";
const OWNER_TOKEN: &str = "planted0owner0token0456";
const QUIET: Look = Look { json: true, color: false, live_progress: false };

/// A home with a configuration, a token and a server's log.
struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new(log: &str) -> Self {
        let home = Self { directory: tempfile::tempdir().unwrap() };
        for directory in ["state", "state/bindings", "state/bindings/0011"] {
            let directory = home.path(directory);
            std::fs::create_dir(&directory).unwrap();
            std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).unwrap();
        }
        let key = home.path("model.key");
        let configuration = format!(
            "[workspaces]\nroots = [{root:?}]\n[model]\nname = \"m/m\"\napi_key = {{ file = {key:?} }}\n",
            root = home.path("state")
        );
        for (name, content) in [
            ("config.toml", configuration.as_str()),
            ("model.key", MODEL_KEY),
            ("state/owner.token", OWNER_TOKEN),
            ("state/bindings/0011/server.log", log),
        ] {
            write_private_new(&home.path(name), content.as_bytes()).unwrap();
        }
        home
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    fn places(&self) -> Places {
        let (state, file) = (self.path("state"), self.path("config.toml"));
        let words = ["gatepost", "--state-dir", state.to_str().unwrap(), "--config", file.to_str().unwrap(), "doctor"];
        let cli::ParseOutcome::Run(cli) = cli::parse(words, &mut Vec::new(), &mut Vec::new()) else {
            panic!("not parsed")
        };
        Places::of(&cli).unwrap()
    }

    fn bundle(&self, name: &str) -> Result<String, Failure> {
        let (places, file) = (self.places(), self.path(name));
        let settings = Settings::load(&places.sources);
        let findings = [Finding::ok("kernel", format!("quotes {MODEL_KEY}"))];
        bundle::write(&file, &places, settings.as_ref().ok(), &findings)?;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
        Ok(std::fs::read_to_string(file).unwrap())
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn no_planted_secret_is_in_the_bundle() {
    let log = format!(
        "first\ncalled with {MODEL_KEY}\n{{\"api_key\": \"unknown-value-1\", \"a\": 1}}\nGITHUB_TOKEN=unknown-value-2\nbearer {OWNER_TOKEN}\nlast\n"
    );
    let text = Home::new(&log).bundle("bundle.json").unwrap();
    for secret in [MODEL_KEY, OWNER_TOKEN, "unknown-value"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let bundle = parsed(&text);
    let lines = bundle["logs"]["servers"][0]["lines"].as_array().unwrap();
    assert_eq!((&lines[0], &lines[1]), (&json!("first"), &json!("called with «secret:model_key»")));
    assert_eq!(lines[5], "last");
    assert_eq!(bundle["findings"][0]["detail"], "quotes «secret:model_key»");
    assert_eq!(bundle["versions"]["gatepost"], env!("CARGO_PKG_VERSION"));
    let from = bundle["settings"]["model"]["key_read_from"].as_str().unwrap();
    assert!(from.starts_with("file ") && from.ends_with("model.key"), "{from}");
    assert!(bundle["places"]["secret_key_file"].as_str().unwrap().ends_with("secret.key"));
}

/// Of every kind there is, known to gatepost or not, wherever it could stand.
#[test]
fn no_secret_of_any_kind_is_in_the_bundle() {
    let kinds = [
        "client \"Authorization: Bearer planted-1\"",
        "planted client token: sk-ant-planted-2-0123456789",
        "remote https://user:planted-3@git.example/x.git",
        "export AWS_SECRET_ACCESS_KEY='planted-4'",
        "{\"env\": {\"DB_PASSWORD\": \"planted-5\"}}",
        "jwt eyJhbGciOi.planted-6.planted-6",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "planted-7",
        "-----END OPENSSH PRIVATE KEY-----",
        "session key planted-8-of-secret-key and planted-9-of-token-file",
        "push with ghp_planted10planted10",
    ];
    let home = Home::new(&kinds.join("\n"));
    write_private_new(&home.path("state/secret.key"), b"planted-8-of-secret-key").unwrap();
    write_private_new(&home.path("other.token"), b"planted-9-of-token-file").unwrap();
    let mut places = home.places();
    places.token_file = home.path("other.token");
    let settings = Settings::load(&places.sources);
    let findings =
        [Finding::failed("daemon", "no answer from https://a:planted-11@proxy/", "ask sk-planted-12-0123456789")];
    let file = home.path("bundle.json");
    bundle::write(&file, &places, settings.as_ref().ok(), &findings).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let left: Vec<&str> = text.match_indices("planted-").map(|(at, _)| &text[at..at + 10]).collect();
    assert!(left.is_empty() && !text.contains("planted10"), "{left:?} in {text}");
    assert_eq!(parsed(&text)["logs"]["servers"][0]["lines"].as_array().unwrap().len(), kinds.len());
}

#[test]
fn only_the_last_lines_are_taken_and_no_link_is_followed() {
    let log: String = (0..500).map(|at| format!("line {at}\n")).collect();
    let home = Home::new(&log);
    std::os::unix::fs::symlink(home.path("state/bindings/0011"), home.path("state/bindings/link")).unwrap();
    std::fs::create_dir(home.path("state/bindings/0022")).unwrap();
    write_private_new(&home.path("private"), b"not to be sent").unwrap();
    std::os::unix::fs::symlink(home.path("private"), home.path("state/bindings/0022/server.log")).unwrap();
    let text = home.bundle("bundle.json").unwrap();
    assert!(!text.contains("not to be sent"), "{text}");
    let bundle = parsed(&text);
    let servers = bundle["logs"]["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 2);
    let lines = servers.iter().find_map(|server| server["lines"].as_array()).unwrap();
    assert_eq!((lines.len(), &lines[0], &lines[199]), (200, &json!("line 300"), &json!("line 499")));
}

#[test]
fn logs_are_left_out_when_a_secret_to_take_out_is_not_known() {
    let home = Home::new(&format!("called with {MODEL_KEY}\n"));
    std::fs::set_permissions(home.path("model.key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(home.path("state/bindings/0011/server.log"), "called with sk-planted").unwrap();
    let bundle = parsed(&home.bundle("bundle.json").unwrap());
    assert_eq!(bundle["logs"]["servers"], json!([]));
    assert!(bundle["logs"]["left_out"].as_str().unwrap().contains("model.key"));
}

#[test]
fn nothing_is_overwritten() {
    let home = Home::new("");
    let file = home.path("taken");
    std::fs::write(&file, "mine").unwrap();
    let args = DoctorArgs { bundle: Some(file.clone()) };
    for failure in [home.bundle("taken").unwrap_err(), run(&home.places(), &args, QUIET).unwrap_err()] {
        assert_eq!((failure.exit, failure.code.as_str()), (ExitCode::Usage, "bundle_exists"));
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    std::os::unix::fs::symlink(home.path("nowhere"), home.path("link")).unwrap();
    assert_eq!(bundle::refuse_existing(&home.path("link")).unwrap_err().code, "bundle_exists");
    assert!(home.bundle("link").is_err() && !home.path("nowhere").exists());
}

#[test]
fn a_failed_check_ends_with_four_and_every_finding() {
    let home = Home::new("");
    // Nothing is installed below this state directory, and nothing is made in it.
    let failure = run(&home.places(), &DoctorArgs { bundle: None }, QUIET).unwrap_err();
    assert_eq!((failure.exit, failure.code.as_str()), (ExitCode::Blocked, "checks_failed"));
    assert!(!home.path("state/run").exists() && !home.path("state/secret.key").exists());
    let mut stdout = Vec::new();
    assert_eq!(cli::conclude(&Err(failure), true, None, &mut stdout, &mut Vec::new()), ExitCode::Blocked);
    let object = parsed(std::str::from_utf8(&stdout).unwrap());
    assert_eq!((&object["ok"], &object["exit_code"]), (&json!(false), &json!(4)));
    let state = |check: &str| {
        let findings = object["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["check"] == check).map(|finding| finding["state"].clone())
    };
    for (check, wanted) in [
        ("agent_server", "failed"),
        ("daemon", "warning"),
        ("configuration", "ok"),
        ("model", "ok"),
        ("model_key", "ok"),
        ("owner_token", "ok"),
        ("state_directory", "ok"),
        ("socket_path", "ok"),
    ] {
        assert_eq!(state(check), Some(json!(wanted)), "{check} in {object}");
    }
    // What they say depends on the machine.
    for check in [
        "kernel",
        "user",
        "tmux",
        "git",
        "uv",
        "python",
        "confinement",
        "landlock",
        "user_namespaces",
        "bubblewrap",
        "server_trees",
    ] {
        assert!(state(check).is_some(), "{check} in {object}");
    }
    assert!(!object.to_string().contains(OWNER_TOKEN) && !object.to_string().contains(MODEL_KEY));
}

#[test]
fn warnings_are_no_failure() {
    let findings = [Finding::ok("git", "there"), Finding::warning("daemon", "not running", "start it")];
    let body = concluded(&findings, json!({"findings": finding::list(&findings)})).unwrap();
    let mut stdout = Vec::new();
    assert_eq!(cli::conclude(&Ok(body), true, None, &mut stdout, &mut Vec::new()), ExitCode::Done);
    let object = parsed(std::str::from_utf8(&stdout).unwrap());
    let fields: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((fields, &object["ok"]), (vec!["ok", "findings"], &json!(true)));
}
