//! Launching small shell scripts that stand in for the server on the control channel.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;

mod binding;
mod spare;

use super::*;
use crate::own::OwnInstall;

const SESSION_KEY: &str = "5e551000000000000000000000000000";
const SECRET_KEY: &str = "5ec2e700000000000000000000000000";
const MEASURED: &str = r#"["listener","dumpable","listeners_refused","ambient_plugins_dropped","latch","routes"]"#;

/// One spawner for all tests: its thread must outlive every child.
fn spawner() -> Spawner {
    static SPAWNER: OnceLock<Spawner> = OnceLock::new();
    SPAWNER
        .get_or_init(|| {
            host::hygiene::become_subreaper().expect("subreaper");
            Spawner::start().expect("spawner")
        })
        .clone()
}

struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("dir") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn spec(&self, script: &str) -> LaunchSpec {
        let executable = self.path("agent-server");
        fs::write(&executable, format!("#!/bin/sh\n{script}\n")).expect("script");
        fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).expect("mode");
        let own = OwnInstall {
            executable,
            executable_sha256: "0".repeat(64),
            root: self.dir.path().to_path_buf(),
            distributions: BTreeMap::new(),
        };
        let secrets = vec![("session_key".to_owned(), SESSION_KEY.to_owned())];
        LaunchSpec {
            program: Program::Own(own),
            version: "1.2.3".to_owned(),
            startup_files: vec![("gatepost_startup.py".to_owned(), "# nothing\n".to_owned())],
            data_dir: self.path("data"),
            runtime_dir: None,
            path: "/usr/bin:/bin".into(),
            session_key: Arc::new(Secret::new(SESSION_KEY.to_owned())),
            secret_key: Arc::new(Secret::new(SECRET_KEY.to_owned())),
            redactor: Arc::new(Redactor::new(secrets)),
            start_timeout: Duration::from_secs(20),
            guard: None,
            confining: None,
        }
    }

    async fn launch(&self, script: &str) -> Result<OwnedServer, LaunchError> {
        launch(&spawner(), self.spec(script)).await
    }
}

fn announce(nonce: &str, pid: &str, contract: &str, measures: &str) -> String {
    format!(
        r#"printf '{{"announce":{{"nonce":"%s","pid":%d,"contract":"{contract}","measures":{measures}}}}}\n' "{nonce}" {pid} >&5"#
    )
}

fn announced() -> String {
    announce("$GATEPOST_NONCE", "$$", "1.2.3", MEASURED)
}

/// Answers grants, revocations and inspections, as the start-up module does.
fn serving() -> String {
    format!(
        r#"{}
while IFS= read -r line <&5; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
    *'"grant"'*) printf '{{"id":%d,"granted":2}}\n' "$id" >&5 ;;
    *'"revoke"'*) printf '{{"id":%d,"revoked":1}}\n{{"held":{{"conversation_id":"c","event_ids":["e"]}}}}\n' "$id" >&5 ;;
    *'"log_ends":["short"'*) printf '{{"id":%d,"log_ends":["e"]}}\n' "$id" >&5 ;;
    *'"log_ends":["shape"'*) printf '{{"id":%d,"log_ends":[7]}}\n' "$id" >&5 ;;
    *'"log_ends":["mute"'*) printf '{{"id":%d}}\n' "$id" >&5 ;;
    *'"log_ends"'*) printf '{{"id":%d,"log_ends":["e",null]}}\n' "$id" >&5 ;;
    *'"settled"'*) printf '{{"id":%d,"error":"unknown request"}}\n' "$id" >&5 ;;
    *'"inspect"'*) printf '{{"id":%d,"inspect":{{"nonce":"%s","pid":%d,"dumpable":0,"listeners":[{{"family":"inet","address":"0100007F:0050"}}],"latch":true,"ambient_plugins":"dropped"}}}}\n' "$id" "$GATEPOST_NONCE" $$ >&5 ;;
  esac
done"#,
        announced()
    )
}

fn alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z "))
}

/// The directory of the only start's modules, by which the record of the server knows it.
fn startup_of(stage: &Stage) -> PathBuf {
    let startup = stage.path("data/startup");
    let starts: Vec<_> = fs::read_dir(&startup).expect("dir").map(|entry| entry.expect("entry").path()).collect();
    let [start] = starts.as_slice() else { panic!("not one start: {starts:?}") };
    let record: serde_json::Value =
        serde_json::from_slice(&fs::read(stage.path("data/server.json")).expect("record")).expect("JSON");
    assert_eq!(start.file_name().and_then(|name| name.to_str()), record["start_name"].as_str());
    start.clone()
}

async fn written(path: &Path) -> String {
    for _ in 0..500 {
        if let Ok(text) = fs::read_to_string(path)
            && text.ends_with('\n')
        {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} was not written", path.display());
}

#[tokio::test]
async fn a_server_that_announces_itself_answers_on_its_channel_and_stops_whole() {
    let stage = Stage::new();
    let server = stage.launch(&serving()).await.expect("launches");
    let control = server.control();
    let mut held = control.held();
    control.grant(&["a".to_owned(), "b".to_owned()]).await.expect("granted");
    assert!(matches!(control.grant(&["a".to_owned()]).await, Err(ControlError::Refused(_))), "another count");
    assert_eq!(control.revoke(&["e".to_owned()]).await.expect("revoked"), 1);
    assert_eq!(held.recv().await.expect("held"), Held { conversation_id: "c".into(), event_ids: vec!["e".into()] });
    assert!(matches!(control.settled("c").await, Err(ControlError::Refused(text)) if text == "unknown request"));
    let inspection = control.inspect().await.expect("inspected");
    assert!(inspection.nonce_matches && inspection.latch && inspection.ambient_plugins_dropped && !inspection.dumpable);
    assert_eq!(inspection.pid, server.pid());
    assert!(inspection.listens_only_on(80) && !inspection.listens_only_on(81));
    let report = server.stop(Duration::from_secs(5)).await;
    assert_eq!(report.leftover_processes, 0);
    assert_eq!(report.exit.expect("exit").status, Some(ExitStatus::Signal(15)));
    assert!(matches!(control.revoke(&["e".to_owned()]).await, Err(ControlError::Closed(_))));
    assert_eq!(server.stop(Duration::ZERO).await.leftover_processes, 0, "a second stop changes nothing");
}

#[tokio::test]
async fn the_ends_of_logs_are_told_one_for_each_or_not_at_all() {
    let stage = Stage::new();
    let server = stage.launch(&serving()).await.expect("launches");
    let control = server.control();
    assert_eq!(control.log_ends(&["a", "b"]).await.expect("told"), [Some("e".to_owned()), None]);
    for wrong in [&["short", "b"][..], &["shape"], &["mute"], &["a"]] {
        assert!(matches!(control.log_ends(wrong).await, Err(ControlError::Refused(_))), "{wrong:?}");
    }
    assert!(matches!(control.log_ends(&["a"; MAX_LOG_ENDS + 1]).await, Err(ControlError::TooMuch(_))));
    server.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn the_child_gets_its_environment_keys_and_socket_as_agreed_and_nothing_else() {
    let stage = Stage::new();
    let script = format!(
        "env | sort > $HOME/env; cat /dev/fd/3 > $HOME/config; cat /dev/fd/3 > $HOME/config2; printf '%s\\n' \"$@\" > \
         $HOME/args; ls -l /proc/self/fd > $HOME/fds; pwd > $HOME/cwd; stat -c '%a %n' $HOME/.. $HOME $TMPDIR \
         $TMUX_TMPDIR $OH_PERSISTENCE_DIR > $HOME/modes; cat {}/data/startup/*/* > $HOME/module; {}",
        stage.dir.path().display(),
        serving()
    );
    let server = stage.launch(&script).await.expect("launches");
    let read = |name: &str| fs::read_to_string(stage.path("data/home").join(name)).expect(name);
    let names: Vec<String> =
        read("env").lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.to_owned()).collect();
    let allowed = [
        "GATEPOST_CONTROL_FD",
        "GATEPOST_LISTEN_FD",
        "GATEPOST_NONCE",
        "HOME",
        "LANG",
        "LITELLM_LOCAL_MODEL_COST_MAP",
        "LOG_RICH_TRACEBACKS",
        "OH_PERSISTENCE_DIR",
        "OPENHANDS_AGENT_SERVER_CONFIG_PATH",
        "OPENHANDS_SUPPRESS_BANNER",
        "PATH",
        "PWD", // the shell's own
        "TMPDIR",
        "TMUX_TMPDIR",
    ];
    assert_eq!(names, allowed);
    assert!(!read("env").contains(SESSION_KEY) && !read("args").contains(SESSION_KEY));
    let config: serde_json::Value = serde_json::from_str(&read("config")).expect("JSON");
    assert_eq!(read("config"), read("config2"), "it is read twice");
    assert_eq!(config["session_api_keys"], serde_json::json!([SESSION_KEY]));
    assert_eq!(config["secret_key"], SECRET_KEY);
    assert_eq!(config["enable_vscode"], false);
    assert_eq!(config["conversation_idle_ttl_seconds"], serde_json::Value::Null);
    let port = server.port().to_string();
    let startup = startup_of(&stage);
    let arguments: Vec<String> = read("args").lines().map(str::to_owned).collect();
    let expected = ["--host", "127.0.0.1", "--port", &port, "--extra-python-path", &startup.to_string_lossy()];
    assert_eq!(arguments[..6], expected);
    assert_eq!(arguments[6..], ["--import-modules", "gatepost_startup"]);
    assert_eq!(read("module"), "# nothing\n");
    assert_eq!(read("cwd").trim_end(), stage.path("data/cwd").to_string_lossy());
    assert!(read("modes").lines().all(|line| line.starts_with("700 ")), "{}", read("modes"));
    let numbers = read("fds").lines().filter(|line| line.contains("->")).count();
    // Three standard ones, ours, and the directory that `ls` itself reads.
    assert_eq!(numbers, 7, "{}", read("fds"));
    TcpStream::connect(("127.0.0.1", server.port())).expect("the socket listens");
    assert_eq!(server.stop(Duration::from_secs(5)).await.leftover_processes, 0);
    TcpStream::connect(("127.0.0.1", server.port())).expect("the port stays ours after the server's end");
}

#[tokio::test]
async fn whoever_announces_something_else_is_ended_and_never_spoken_to() {
    let measures = r#"["listener","dumpable","listeners_refused","latch","routes"]"#;
    for (line, expected) in [
        (announce("guessed", "$$", "1.2.3", MEASURED), "another nonce"),
        (announce("$GATEPOST_NONCE", "1", "1.2.3", MEASURED), "process 1 announced itself"),
        (announce("$GATEPOST_NONCE", "$$", "9.9.9", MEASURED), "for version 9.9.9"),
        (announce("$GATEPOST_NONCE", "$$", "1.2.3", measures), "ambient_plugins_dropped"),
        ("echo nonsense >&5".to_owned(), "something else"),
        ("echo '{\"held\":{}}' >&5".to_owned(), "something else"),
        ("exec 5>&-".to_owned(), "closed its control channel"),
        ("head -c 2000000 /dev/zero | tr '\\0' x >&5".to_owned(), "something else"),
    ] {
        let stage = Stage::new();
        let script = format!("echo $$ > $HOME/pid; echo last words; {line}; cat <&4; sleep 60");
        let error = stage.launch(&script).await.err().expect("refused");
        assert!(matches!(error, LaunchError::NotAsReviewed { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(expected), "{expected} not in {text}");
        assert!(text.contains("last words"), "{text}");
        let pid = fs::read_to_string(stage.path("data/home/pid")).expect("pid");
        assert!(!alive(&pid), "it still runs");
    }
}

#[tokio::test]
async fn an_early_exit_is_reported_at_once_with_status_and_last_words() {
    let stage = Stage::new();
    let began = Instant::now();
    let script = format!("echo key {SESSION_KEY}; echo 'No module named x' >&2; exit 7");
    let error = stage.launch(&script).await.err().expect("fails");
    assert!(began.elapsed() < Duration::from_secs(5));
    let LaunchError::Exited { status, log_tail } = error else { panic!("{error}") };
    assert_eq!(status, Some(ExitStatus::Code(7)));
    assert_eq!(log_tail, ["key «secret:session_key»", "No module named x"]);
}

#[tokio::test]
async fn an_exit_shows_even_while_a_process_it_left_holds_the_channel() {
    let stage = Stage::new();
    let error = stage.launch("setsid sleep 60 & exit 3").await.err().expect("fails");
    assert!(matches!(error, LaunchError::Exited { status: Some(ExitStatus::Code(3)), .. }), "{error}");
}

#[tokio::test]
async fn who_never_announces_is_ended_when_the_time_is_up() {
    let stage = Stage::new();
    let mut spec = stage.spec("echo $$ > $HOME/pid; trap '' TERM; while :; do sleep 1; done");
    spec.start_timeout = Duration::from_millis(700);
    let error = launch(&spawner(), spec).await.err().expect("fails");
    assert!(matches!(error, LaunchError::TimedOut { .. }), "{error}");
    assert!(!alive(&fs::read_to_string(stage.path("data/home/pid")).expect("pid")));
}

#[tokio::test]
async fn a_flood_of_output_neither_blocks_nor_fills_the_disk() {
    let stage = Stage::new();
    let flood = "yes 0123456789012345678901234567890123456789012345678901234567890123 | head -c 30000000";
    let server = stage.launch(&format!("{flood}; {}", serving())).await.expect("launches");
    let size: u64 = ["server.log", "server.log.1"]
        .iter()
        .map(|name| fs::metadata(stage.path("data").join(name)).expect("log").len())
        .sum();
    assert!(size <= 2 * output::LOG_BYTES, "{size}");
    assert_eq!(server.stop(Duration::from_secs(5)).await.leftover_processes, 0);
    assert!(server.log_tail().len() <= 40);
}

/// A tree that tries to stay: a session of its own, a double fork, a deaf process.
fn leaving() -> String {
    format!(
        "setsid sh -c 'trap \"\" TERM HUP; echo $$ > $HOME/left; while :; do sleep 1; done' & \
         (setsid sh -c 'sleep 77 & echo $! > $HOME/orphan' &) ; {}",
        serving()
    )
}

#[tokio::test]
async fn a_stop_ends_what_left_the_group_too() {
    let stage = Stage::new();
    let server = stage.launch(&leaving()).await.expect("launches");
    let left = written(&stage.path("data/home/left")).await;
    let orphan = written(&stage.path("data/home/orphan")).await;
    assert!(alive(&left) && alive(&orphan));
    let report = server.stop(Duration::from_secs(5)).await;
    assert_eq!(report.leftover_processes, 0, "{report:?}");
    assert!(report.exit.expect("exit").ended_processes >= 2);
    assert!(!alive(&left) && !alive(&orphan));
}

#[tokio::test]
async fn a_server_killed_by_someone_else_takes_its_tree_along_and_no_other_servers() {
    let (first, second) = (Stage::new(), Stage::new());
    let killed = first.launch(&leaving()).await.expect("launches");
    let other = second.launch(&leaving()).await.expect("launches");
    let (mut pids, mut others) = (Vec::new(), Vec::new());
    for name in ["left", "orphan"] {
        pids.push(written(&first.path("data/home").join(name)).await);
        others.push(written(&second.path("data/home").join(name)).await);
    }
    let raw = rustix::process::Pid::from_raw(i32::try_from(killed.pid()).expect("pid")).expect("pid");
    rustix::process::kill_process(raw, rustix::process::Signal::KILL).expect("kill");
    let mut exited = killed.exited();
    let wait = exited.wait_for(Option::is_some);
    let report = tokio::time::timeout(Duration::from_secs(20), wait).await.expect("in time").expect("open").clone();
    let report = report.expect("report");
    assert_eq!((report.status, report.left_processes.len()), (Some(ExitStatus::Signal(9)), 0));
    assert!(pids.iter().all(|pid| !alive(pid)));
    assert!(others.iter().all(|pid| alive(pid)), "the other server's tree was touched");
    other.control().revoke(&[]).await.expect("the other server still answers");
    assert_eq!(killed.stop(Duration::from_secs(1)).await.leftover_processes, 0);
    assert_eq!(other.stop(Duration::from_secs(5)).await.leftover_processes, 0);
    assert!(others.iter().all(|pid| !alive(pid)));
}

#[tokio::test]
async fn dropping_a_server_or_a_launch_ends_the_process() {
    let stage = Stage::new();
    let server = stage.launch(&leaving()).await.expect("launches");
    let pid = server.pid().to_string();
    let left = written(&stage.path("data/home/left")).await;
    let mut exited = server.exited();
    drop(server);
    tokio::time::timeout(Duration::from_secs(20), exited.wait_for(Option::is_some)).await.expect("ends").expect("open");
    assert!(!alive(&pid) && !alive(&left));

    let stage = Stage::new();
    let spec = stage.spec("echo $$ > $HOME/pid; sleep 60");
    let launching = tokio::spawn(async move { launch(&spawner(), spec).await.map(|_| ()) });
    let pid = written(&stage.path("data/home/pid")).await;
    launching.abort();
    for _ in 0..500 {
        if !alive(&pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the process of a dropped launch still runs");
}
