//! From a request for a new workspace, and from a server's crash, until a proved server is ready, over a bare server's start.

use super::figure::median;
use super::{Figure, Options, Tell};
use crate::daemon::{Client, Home, Setup, shared_install, sweep};
use crate::failure::{Doing, Failure, Outcome};
use crate::guards::Raw;
use crate::model::ScriptedModel;
use crate::talk::Talk;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const BOUND: f64 = 1.1;
/// How long a server may take.
pub(super) const LIMIT: Duration = Duration::from_secs(180);
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// So many servers run at once at most.
const MAX_TRIES: usize = 5;

pub(super) fn measure(options: &Options, tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let model = ScriptedModel::start().doing("no model")?;
    let mut setup = Setup::new(&model.base_url());
    setup.agent_server = format!("max_servers = {MAX_TRIES}");
    let home = Home::new(setup)?;
    let daemon = home.serve()?;
    let (mut bare, mut new, mut crashed) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..options.size(MAX_TRIES, 1) {
        bare.push(bare_start()?);
        let workspace = home.new_workspace(&format!("bench-{number}"))?.canonicalize().doing("no workspace")?;
        let workspace = workspace.to_string_lossy().into_owned();
        let begun = Instant::now();
        Talk::start(daemon.client(), &workspace)?;
        new.push(begun.elapsed().as_secs_f64());
        crashed.push(crash(daemon.client(), &workspace)?);
        tell(&format!("  bare {:.1} s, new {:.1} s, crashed {:.1} s", bare[number], new[number], crashed[number]));
    }
    daemon.stop()?;
    let bare_s = median(&bare);
    let figure = |name, measured: &[f64]| {
        let made_of = json!({"p50_s": median(measured), "bare_start_p50_s": bare_s, "tries": measured.len()});
        Figure::new(name, median(measured) / bare_s, "ratio", BOUND, &made_of)
    };
    Ok(vec![figure("new_workspace_to_ready", &new), figure("crash_to_ready", &crashed)])
}

/// Kills a workspace's server; how long it takes until another one is ready, in seconds.
pub(super) fn crash(client: &Client, workspace: &str) -> Outcome<f64> {
    let ready = || -> Outcome<Option<u32>> {
        let status = client.get("/v1/status")?.expect_status(200)?;
        let servers = status["servers"].as_array().into_iter().flatten();
        let server = servers.into_iter().find(|server| server["workspace"] == workspace && server["state"] == "ready");
        Ok(server.and_then(|server| server["pid"].as_u64()).and_then(|pid| u32::try_from(pid).ok()))
    };
    let first = ready()?.ok_or_else(|| Failure::new("the server is not ready"))?;
    let pid = Pid::from_raw(first.cast_signed()).ok_or_else(|| Failure::new("the server has no process"))?;
    let begun = Instant::now();
    kill_process(pid, Signal::KILL).doing("the server could not be killed")?;
    loop {
        if ready()?.is_some_and(|pid| pid != first) {
            return Ok(begun.elapsed().as_secs_f64());
        }
        if begun.elapsed() > LIMIT {
            return Err(Failure::new("the server does not come back"));
        }
        thread::sleep(LOOK);
    }
}

/// How long the server itself takes until it answers, in seconds: nothing of ours in it, nothing before it.
fn bare_start() -> Outcome<f64> {
    let directory = tempfile::Builder::new().prefix("gp-").tempdir().doing("no temporary directory")?;
    let python = python()?;
    let port = free_port()?;
    let mut command = bare_command(&python, &directory, port);
    let begun = Instant::now();
    let mut server = command.spawn().doing("the server could not be started")?;
    let raw = Raw::new(port, "none");
    let took = loop {
        if raw.get("/server_info").is_ok_and(|reply| reply.status == 200) {
            break Ok(begun.elapsed().as_secs_f64());
        }
        if begun.elapsed() > LIMIT || server.try_wait().doing("the server could not be waited for")?.is_some() {
            break Err(Failure::new("the server does not answer"));
        }
        thread::sleep(LOOK);
    };
    server.kill().doing("the server could not be ended")?;
    server.wait().doing("the server could not be waited for")?;
    sweep(directory.path());
    took
}

fn bare_command(python: &Path, directory: &TempDir, port: u16) -> Command {
    let mut command = Command::new(python);
    command.args(["-I", "-B", "-m", "openhands.agent_server", "--host", "127.0.0.1", "--port", &port.to_string()]);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", directory.path());
    command.envs([
        ("LANG", "C.UTF-8"),
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
        ("OPENHANDS_SUPPRESS_BANNER", "1"),
        ("OH_ENABLE_VSCODE", "false"),
        ("OH_ENABLE_VNC", "false"),
        ("OH_PRELOAD_TOOLS", "false"),
    ]);
    command.env("TMPDIR", directory.path()).env("TMUX_TMPDIR", directory.path());
    command.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn python() -> Outcome<PathBuf> {
    let servers = fs::read_dir(shared_install()?.join("servers")).doing("no server is installed")?;
    let mut pythons = servers.flatten().map(|server| server.path().join("bin/python")).filter(|path| path.exists());
    pythons.next().ok_or_else(|| Failure::new("no server is installed"))
}

/// A port that was free a moment ago.
fn free_port() -> Outcome<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing("no port is free")?;
    Ok(listener.local_addr().doing("a port without an address")?.port())
}
