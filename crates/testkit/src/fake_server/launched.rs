//! The fake server as a process that the daemon launched in place of the real one.
//!
//! The listening socket arrives as standard input and the control channel as standard output: the script that
//! [`super::install`] writes moves them there from the numbers that the environment names.

use super::environment::Environment;
use super::journal::Journal;
use super::latch::Latch;
use super::plan::{Announcement, ControlAnswer, Plan};
use super::serve::serve;
use super::server::{Server, VERSION};
use crate::failure::{Doing, Outcome};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Bounds a line of the control channel.
const MAX_LINE_BYTES: u64 = 1 << 20;
/// Bounds the configuration.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// What a process of the agent's tries, as the daemon asks for it.
const PROBES: [&str; 15] = [
    "server_environment",
    "server_memory",
    "daemon_environment",
    "daemon_memory",
    "state_directory",
    "daemon_answer",
    "home_listing",
    "home_file",
    "new_privileges",
    "signal_server",
    "signal_daemon",
    "signal_guard",
    "outside_socket",
    "abstract_socket",
    "owners_terminal",
];

/// Runs the server to its end, which comes from outside.
///
/// # Errors
/// When it was not started as a daemon starts a server.
pub fn main() -> Outcome<ExitCode> {
    let environment = Environment::of_this_process()?;
    let plan = environment.plan()?;
    if let Some(code) = plan.exit_at_once {
        eprintln!("fake server: ending with {code}, as planned");
        return Ok(ExitCode::from(code));
    }
    let nonce = std::env::var("GATEPOST_NONCE").doing("GATEPOST_NONCE")?;
    let config = read_config()?;
    let listener = std::io::stdin().as_fd().try_clone_to_owned().map(TcpListener::from);
    let listener = listener.doing("standard input is no descriptor")?;
    let address = listener.local_addr().doing("standard input is no listening socket")?;
    listener.set_nonblocking(true).doing("the listener cannot be used")?;
    let control = std::io::stdout().as_fd().try_clone_to_owned().map(UnixStream::from);
    let control = control.doing("standard output is no descriptor")?;
    #[cfg(target_os = "linux")]
    if !plan.says_dumpable {
        let hidden = rustix::process::DumpableBehavior::NotDumpable;
        rustix::process::set_dumpable_behavior(hidden).doing("PR_SET_DUMPABLE was refused")?;
    }
    std::thread::sleep(Duration::from_millis(plan.start_delay_ms));

    let control = Arc::new(Control { writer: Mutex::new(control.try_clone().doing("the control channel")?) });
    let reporter = Arc::clone(&control);
    let held = move |conversation: &str, event_ids: &[String]| {
        reporter.send(&json!({"held": {"conversation_id": conversation, "event_ids": event_ids}}));
    };
    let latch = Arc::new(Latch::new(plan.has_no_latch, Some(Box::new(held))));
    let keys: Vec<String> = serde_json::from_value(config["session_api_keys"].clone()).doing("session_api_keys")?;
    let storage = Server::storage_of(&config);
    let journal = if plan.keeps_journal { environment.journal()? } else { Journal::default() };
    let server = Server::new(plan.clone(), keys, Arc::clone(&latch), storage, Some(environment));
    let server = Arc::new(server.with_journal(journal));
    control.announce(&plan, &nonce);
    let facts =
        Facts { nonce, address, second: OnceLock::new(), server: Arc::clone(&server), told_ends: Mutex::default() };
    std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            facts.answer_all(&control);
            end_process();
        })
        .doing("no thread")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.doing("no runtime")?.block_on(serve(listener, server));
    Ok(ExitCode::SUCCESS)
}

/// Ends this process as a crash does.
pub(super) fn end_process() {
    kill_process(getpid(), Signal::KILL).ok();
}

fn read_config() -> Outcome<Value> {
    let path = std::env::var("OPENHANDS_AGENT_SERVER_CONFIG_PATH").doing("OPENHANDS_AGENT_SERVER_CONFIG_PATH")?;
    let file = std::fs::File::open(path).doing("the configuration cannot be opened")?;
    let mut text = String::new();
    file.take(MAX_CONFIG_BYTES).read_to_string(&mut text).doing("the configuration cannot be read")?;
    serde_json::from_str(&text).doing("the configuration is no JSON")
}

struct Control {
    writer: Mutex<UnixStream>,
}

impl Control {
    fn send(&self, message: &Value) {
        self.send_line(&message.to_string());
    }

    fn send_line(&self, line: &str) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // A daemon that is gone is noticed by the reading side.
        writer.write_all(format!("{line}\n").as_bytes()).ok();
    }

    fn announce(&self, plan: &Plan, nonce: &str) {
        let announce = |nonce: &str, contract: &str| {
            let measures =
                ["listener", "dumpable", "listeners_refused", "ambient_plugins_dropped", "latch", "routes", "door"];
            self.send(&json!({"announce": {"nonce": nonce, "pid": std::process::id(), "contract": contract,
                                           "measures": measures}}));
        };
        match plan.announcement {
            Announcement::Proper => announce(nonce, VERSION),
            Announcement::Never => {}
            Announcement::WrongNonce => announce("0123456789abcdef", VERSION),
            Announcement::WrongContract => announce(nonce, "0.0.1"),
            Announcement::Garbage => self.send_line("this is no JSON"),
        }
    }
}

/// What an inspection tells, lies included.
struct Facts {
    nonce: String,
    address: SocketAddr,
    /// Opened when the plan says so.
    second: OnceLock<Option<TcpListener>>,
    server: Arc<Server>,
    /// Where logs ended when the truth about that was last told.
    told_ends: Mutex<HashMap<String, Option<String>>>,
}

impl Facts {
    /// Answers until the daemon closes its end.
    fn answer_all(&self, control: &Control) {
        let reader = control.writer.lock().unwrap_or_else(PoisonError::into_inner).try_clone();
        let Ok(reader) = reader else { return };
        let mut reader = BufReader::new(reader);
        loop {
            let mut line = String::new();
            match Read::by_ref(&mut reader).take(MAX_LINE_BYTES).read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let Ok(request) = serde_json::from_str::<Value>(&line) else { return };
            if let Some(reply) = self.answer(&request) {
                control.send(&reply);
            }
        }
    }

    /// The answer, unless the plan says that none is given.
    fn answer(&self, request: &Value) -> Option<Value> {
        let plan = self.server.plan();
        let latch = &self.server.latch;
        let ids = |name: &str| serde_json::from_value::<Vec<String>>(request[name].clone()).ok();
        let (name, truth, lie, answer) = if let Some(ids) = ids("grant") {
            latch.grant(&ids);
            ("granted", json!(ids.len()), json!(ids.len() + 1), plan.grant_answer)
        } else if let Some(ids) = ids("revoke") {
            let revoked = json!(latch.revoke(&ids));
            ("revoked", revoked.clone(), revoked, ControlAnswer::Truth)
        } else if let Some(id) = request["settled"].as_str() {
            let running = self.server.conversation(id).is_some_and(|conversation| conversation.is_running());
            ("settled", json!(!running), json!(running), plan.settled_answer)
        } else if let Some(ids) = ids("log_ends") {
            let (truth, lie) = self.log_ends(&ids, plan.log_ends_answer);
            ("log_ends", truth, lie, plan.log_ends_answer)
        } else if request["inspect"] == true {
            let (truth, lie) = (self.inspection(&plan, &self.nonce), self.inspection(&plan, "another"));
            ("inspect", truth, lie, plan.inspect_answer)
        } else if request["probe"].is_string() {
            let outcome =
                |probe: &str| if plan.open_probes.iter().any(|open| open == probe) { "open" } else { "closed" };
            let outcomes: Value = PROBES.iter().map(|probe| ((*probe).to_owned(), json!(outcome(probe)))).collect();
            ("probe", json!(outcomes.to_string()), json!("not understood"), plan.probe_answer)
        } else {
            ("error", json!("unknown request"), Value::Null, ControlAnswer::Truth)
        };
        let said = match answer {
            ControlAnswer::Truth => truth,
            ControlAnswer::Lie => lie,
            ControlAnswer::Silence => return None,
        };
        let mut reply = json!({"id": request["id"]});
        reply[name] = said;
        Some(reply)
    }

    /// Where these logs end, and where they ended when that was last told.
    fn log_ends(&self, ids: &[String], answer: ControlAnswer) -> (Value, Value) {
        let end = |id: &String| {
            let conversation = self.server.conversation(id)?;
            conversation.record().log.last_id().map(str::to_owned)
        };
        let mut told = self.told_ends.lock().unwrap_or_else(PoisonError::into_inner);
        if answer == ControlAnswer::Truth {
            told.extend(ids.iter().map(|id| (id.clone(), end(id))));
        }
        let lie: Vec<Option<&String>> = ids.iter().map(|id| told.get(id).and_then(Option::as_ref)).collect();
        (json!(ids.iter().map(end).collect::<Vec<_>>()), json!(lie))
    }

    fn inspection(&self, plan: &Plan, nonce: &str) -> Value {
        let second = plan.second_listener.then(|| self.second_address()).flatten();
        let listeners: Vec<Value> = [Some(self.address), second]
            .into_iter()
            .flatten()
            .map(|at| json!({"family": "inet", "address": kernel_address(at)}))
            .collect();
        json!({
            "nonce": nonce,
            "pid": std::process::id(),
            "dumpable": i32::from(plan.says_dumpable),
            "listeners": listeners,
            "latch": !plan.says_no_latch,
            "door": !plan.says_no_door,
            "ambient_plugins": if plan.says_plugins_loaded { "loaded" } else { "dropped" },
        })
    }

    /// The second listening socket, opened at the first look.
    fn second_address(&self) -> Option<SocketAddr> {
        let open = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok();
        self.second.get_or_init(open).as_ref().and_then(|second| second.local_addr().ok())
    }
}

/// An address as the kernel's tables write it: the bytes of the machine's own order in hexadecimal.
fn kernel_address(address: SocketAddr) -> String {
    let host = match address {
        SocketAddr::V4(address) => u32::from_ne_bytes(address.ip().octets()),
        SocketAddr::V6(_) => 0,
    };
    format!("{host:08X}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_the_kernel_does() {
        let expected = if cfg!(target_endian = "little") { "0100007F:4787" } else { "7F000001:4787" };
        assert_eq!(kernel_address(SocketAddr::from(([127, 0, 0, 1], 0x4787))), expected);
    }
}
