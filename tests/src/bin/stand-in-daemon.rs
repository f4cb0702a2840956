//! What a daemon does about one server, and nothing else: launches it below its guards, ends it, tells what was left. The
//! server is a script. For tests of how trees end, many times over.
//!
//! `stand-in-daemon <gatepost> <directory> [--layered]` launches `<directory>/agent-server`, says
//! `{"ready": …}` on standard output, then answers one word a line: `stop` ends the server, `gone` waits for its end. With
//! `--layered` it first uses up the domains that the kernel lets it nest, so that the guards get none.

use host::{Secret, Spawner};
use process::launch::{ExitReport, LaunchSpec, OwnedServer, Program, data_dir, launch};
use process::own::OwnInstall;
use rules::redact::Redactor;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use testkit::{Doing, Failure, Outcome};
use tokio::runtime::Runtime;

const START_LIMIT: Duration = Duration::from_secs(60);
/// For a script that ends at once when it is asked to.
const STOP_GRACE: Duration = Duration::from_millis(300);
const GONE_LIMIT: Duration = Duration::from_secs(60);
/// As many as the kernel nests.
const LAYERS: usize = 16;
const KEY: &str = "5e551000000000000000000000000000";

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&json!({"error": why.to_string()}));
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (guard, directory, layered) = match words.as_slice() {
        [guard, directory] => (guard, directory, false),
        [guard, directory, option] if option == "--layered" => (guard, directory, true),
        _ => return Err(Failure::new("stand-in-daemon <gatepost> <directory> [--layered]")),
    };
    for _layer in 0..if layered { LAYERS } else { 0 } {
        host::guard::enter_signal_domain(false).doing("no domain to nest")?;
    }
    host::hygiene::become_subreaper().doing("orphans would not fall to this process")?;
    let runtime = Runtime::new().doing("no asynchronous runtime")?;
    let spawner = Spawner::start().doing("no thread to start servers from")?;
    let spec = spec(Path::new(directory), PathBuf::from(guard));
    let server = runtime.block_on(launch(&spawner, spec?)).doing("the server was not launched")?;
    say(&ready(&server));
    for line in stdin().lock().lines().map_while(Result::ok) {
        let answer = match line.as_str() {
            "stop" => told(runtime.block_on(server.stop(STOP_GRACE)).exit),
            "gone" => told(runtime.block_on(gone(&server))),
            _ => json!({"error": "no such request"}),
        };
        say(&answer);
    }
    runtime.block_on(server.stop(Duration::ZERO));
    Ok(())
}

fn spec(directory: &Path, guard: PathBuf) -> Outcome<LaunchSpec> {
    let state = directory.join("state");
    for path in [state.clone(), state.join("bindings")] {
        host::secure_fs::ensure_private_dir(&path).doing("no state directory")?;
    }
    let own = OwnInstall {
        executable: directory.join("agent-server"),
        executable_sha256: "0".repeat(64),
        root: directory.to_path_buf(),
        distributions: BTreeMap::new(),
    };
    let key = Arc::new(Secret::new(KEY.to_owned()));
    Ok(LaunchSpec {
        program: Program::Own(own),
        version: "1.2.3".to_owned(),
        startup_files: Vec::new(),
        data_dir: data_dir(&state, Path::new("/workspace")),
        // Goes with the round's directory, whoever is killed.
        runtime_dir: Some(directory.to_path_buf()),
        path: "/usr/local/bin:/usr/bin:/bin".into(),
        session_key: Arc::clone(&key),
        secret_key: key,
        redactor: Arc::new(Redactor::new(Vec::new())),
        start_timeout: START_LIMIT,
        guard: Some(guard),
        confining: None,
    })
}

fn ready(server: &OwnedServer) -> Value {
    let armament = server.armament();
    json!({"ready": {
        "server": server.pid(), "guards": server.guard_pids(), "means": armament.map(|armament| armament.means.as_str()),
    }})
}

async fn gone(server: &OwnedServer) -> Option<ExitReport> {
    let mut exited = server.exited();
    let ended = tokio::time::timeout(GONE_LIMIT, exited.wait_for(Option::is_some)).await;
    ended.ok()?.ok()?.clone()
}

fn told(report: Option<ExitReport>) -> Value {
    match report {
        Some(report) => json!({"ended": {
            "status": report.status.map(|status| status.to_string()), "processes": report.ended_processes,
            "left": report.left_processes, "unknown": report.cleanup_error,
        }}),
        None => json!({"error": "the server did not end"}),
    }
}

fn say(answer: &Value) {
    let mut out = stdout().lock();
    // Whoever does not listen has closed the input too.
    writeln!(out, "{answer}").and_then(|()| out.flush()).ok();
}
