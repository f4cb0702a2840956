//! Spares that small shell scripts stand in for: what they are given, when, and what becomes of those that fail.

use super::*;

fn waits(nonce: &str, pid: &str, contract: &str) -> String {
    format!(
        r#"printf '{{"waiting":{{"nonce":"%s","pid":%d,"contract":"{contract}"}}}}\n' "{nonce}" {pid} >&5; IFS= read -r go <&5"#
    )
}

/// Waits, takes the order, and goes on as a server.
fn becomes(after_order: &str) -> String {
    format!(
        "env | sort > $HOME/../seen; {}\n[ \"$go\" = go ] || exit 9\nIFS= read -r order <&5\n{after_order}\n{}",
        waits("$GATEPOST_NONCE", "$$", "1.2.3"),
        serving()
    )
}

impl Stage {
    fn spare_spec(&self, script: &str) -> SpareSpec {
        let LaunchSpec { program, version, startup_files, path, start_timeout, .. } = self.spec(script);
        SpareSpec {
            program,
            version,
            startup_files,
            data_dir: spare_dir(&self.path("state")).expect("name"),
            runtime_dir: None,
            path,
            // There is no session key yet.
            redactor: Arc::new(Redactor::new(Vec::new())),
            start_timeout,
            guard: None,
            confining: false,
            has_outer: false,
        }
    }

    async fn spare(&self, script: &str) -> Result<WaitingSpare, LaunchError> {
        fs::create_dir_all(self.path("state/bindings")).expect("dir");
        start_spare(&spawner(), self.spare_spec(script), std::future::pending()).await
    }

    /// The data directories of spares.
    fn spares(&self) -> Vec<PathBuf> {
        fs::read_dir(self.path("state/bindings")).expect("dir").map(|entry| entry.expect("entry").path()).collect()
    }
}

#[tokio::test]
async fn a_spare_holds_no_key_and_is_given_all_that_a_server_has_when_it_becomes_one() {
    let stage = Stage::new();
    let order_at = stage.path("order");
    let script = becomes(&format!("printf '%s\\n' \"$order\" > {}; echo key {SESSION_KEY}", order_at.display()));
    let spare = stage.spare(&script).await.expect("waits");
    let [data] = stage.spares().try_into().expect("one");
    let seen = written(&data.join("seen")).await;
    assert!(seen.contains("GATEPOST_SPARE=1") && !seen.contains("OPENHANDS_AGENT_SERVER_CONFIG_PATH"), "{seen}");
    assert!(!seen.contains(SESSION_KEY) && !seen.contains(SECRET_KEY));
    let arguments = fs::read(format!("/proc/{}/cmdline", spare.pid())).expect("arguments");
    let arguments = String::from_utf8(arguments).expect("text");
    let mut words = arguments.split('\0').skip_while(|word| *word != "--port");
    let port: u16 = words.nth(1).expect("a port").parse().expect("a number");
    let connect = || std::net::TcpStream::connect(("127.0.0.1", port)).map(drop).map_err(|error| error.kind());
    assert_eq!(connect(), Err(io::ErrorKind::ConnectionRefused), "something listens already");
    assert_eq!(fs::read(format!("/proc/{}/fd/3", spare.pid())).expect("placeholder"), b"");
    let pid = spare.pid();

    let server = become_server(spare, stage.spec(&script)).await.expect("becomes");
    assert_eq!((server.pid(), server.port(), connect()), (pid, port, Ok(())));
    assert!(server.control().inspect().await.expect("answers").nonce_matches);
    let order: serde_json::Value = serde_json::from_str(&written(&order_at).await).expect("JSON");
    assert_eq!(order["descriptors"], serde_json::json!([3]));
    assert_eq!(order["directory"], stage.path("data/cwd").to_string_lossy().as_ref());
    assert_eq!(order["environment"]["HOME"], stage.path("data/home").to_string_lossy().as_ref());
    assert_eq!(order["environment"]["OPENHANDS_AGENT_SERVER_CONFIG_PATH"], "/dev/fd/3");
    assert!(!order.to_string().contains(SESSION_KEY) && order["environment"].get("GATEPOST_SPARE").is_none());
    // What was read of its directories at import leads to the workspace's.
    for name in ["home", "cwd", "tmp", "tmux"] {
        let leads = fs::canonicalize(data.join(name)).expect(name);
        assert_eq!(leads, fs::canonicalize(stage.path("data").join(name)).expect(name));
    }
    // It is known as the server of that workspace, whose directories nobody else gets and whose log is its own.
    let record: serde_json::Value =
        serde_json::from_slice(&fs::read(stage.path("data/server.json")).expect("record")).expect("JSON");
    assert_eq!(record["pid"], pid);
    assert!(matches!(stage.launch(&serving()).await, Err(LaunchError::InUse(_))));

    let ordinary = Stage::new();
    let other = ordinary.launch(&serving()).await.expect("launches");
    // The scripts differ in nothing that is digested.
    assert_eq!(other.launch_config_digest(), server.launch_config_digest());
    other.stop(Duration::ZERO).await;

    assert_eq!(server.stop(Duration::ZERO).await.leftover_processes, 0);
    assert_eq!(server.log_tail(), ["key «secret:session_key»"]);
    assert_eq!(fs::read_to_string(stage.path("data/server.log")).expect("log"), "key «secret:session_key»\n");
    assert!(stage.spares().is_empty() && !stage.path("data/server.json").exists() && !stage.path("data/tmp").exists());
    stage.launch(&serving()).await.expect("the workspace is free").stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_spare_that_says_something_else_is_ended() {
    for (said, what) in [
        (waits("another", "$$", "1.2.3"), "another nonce"),
        (waits("$GATEPOST_NONCE", "1", "1.2.3"), "process 1 waits"),
        (waits("$GATEPOST_NONCE", "$$", "1.2.4"), "version 1.2.4"),
        (announced(), "closed its control channel"),
        ("printf 'nothing\\n' >&5; sleep 60".to_owned(), "closed its control channel"),
        ("head -c 9000 /dev/zero >&5; sleep 60".to_owned(), "closed its control channel"),
        ("exec 5>&-; sleep 60".to_owned(), "closed its control channel"),
    ] {
        let stage = Stage::new();
        let error = stage.spare(&format!("{said}; sleep 60")).await.err().expect(what);
        assert!(matches!(&error, LaunchError::NotAsReviewed { what: said, .. } if said.contains(what)), "{error}");
        assert!(stage.spares().is_empty(), "{what}");
    }
    let stage = Stage::new();
    let error = stage.spare("echo last words; exit 3").await.err().expect("ended");
    assert!(matches!(&error, LaunchError::Exited { log_tail, .. } if log_tail == &["last words"]), "{error}");
    let spec = SpareSpec { start_timeout: Duration::from_millis(300), ..stage.spare_spec("sleep 60") };
    let error = start_spare(&spawner(), spec, std::future::pending()).await.err().expect("late");
    assert!(matches!(error, LaunchError::TimedOut { .. }), "{error}");
    assert!(stage.spares().is_empty());
}

#[tokio::test]
async fn a_spare_that_is_not_needed_any_more_is_ended_before_it_waits() {
    let stage = Stage::new();
    fs::create_dir_all(stage.path("state/bindings")).expect("dir");
    let begun = stage.path("begun");
    let script = format!("echo $$ > {}; sleep 60", begun.display());
    let unneeded = async { drop(written(&begun).await) };
    let error = start_spare(&spawner(), stage.spare_spec(&script), unneeded).await.err().expect("not needed");
    assert!(matches!(error, LaunchError::Unneeded), "{error}");
    assert!(!alive(fs::read_to_string(&begun).expect("pid").trim()) && stage.spares().is_empty());
}

/// Whatever is wrong, the spare is ended and the workspace is free for an ordinary start.
#[tokio::test]
async fn a_spare_that_does_not_become_a_server_is_ended_and_leaves_the_workspace_free() {
    let held = waits("$GATEPOST_NONCE", "$$", "1.2.3");
    for (script, what) in [
        (held.replace("IFS= read -r go <&5", "exit 7"), "Exited or Spare"),
        (held.replace("IFS= read -r go <&5", "exec 5>&-; sleep 60"), "closed"),
        (format!("{held}; sleep 60"), "late"),
        (format!("{held}; exit 4"), "ended after the order"),
        (format!("{held}; {}; sleep 60", announce("another", "$$", "1.2.3", MEASURED)), "another nonce"),
        (format!("{held}; {}; sleep 60", announce("$GATEPOST_NONCE", "$$", "1.2.3", "[]")), "no measures"),
    ] {
        let stage = Stage::new();
        let spare = stage.spare(&script).await.expect(what);
        if what == "Exited or Spare" {
            let mut exited = spare.exited();
            exited.wait_for(Option::is_some).await.expect("ends");
        }
        let spec = LaunchSpec { start_timeout: Duration::from_secs(3), ..stage.spec(&serving()) };
        assert!(become_server(spare, spec).await.is_err(), "{what}");
        assert!(stage.spares().is_empty(), "{what}");
        stage.launch(&serving()).await.expect(what).stop(Duration::ZERO).await;
    }
    // Another confinement than it was started for: nothing is said to it.
    let stage = Stage::new();
    fs::create_dir_all(stage.path("state/bindings")).expect("dir");
    let spec = SpareSpec { confining: true, ..stage.spare_spec(&becomes("")) };
    let spare = start_spare(&spawner(), spec, std::future::pending()).await.expect("waits");
    let error = become_server(spare, stage.spec(&serving())).await.err().expect("refused");
    assert!(matches!(error, LaunchError::Spare(_)), "{error}");
    // And one that nobody needs.
    let spare = stage.spare(&becomes("")).await.expect("waits");
    let pid = spare.pid();
    assert_eq!(spare.end().await.leftover_processes, 0);
    assert!(!alive(&pid.to_string()) && stage.spares().is_empty());
}
