//! The fake server keeps to what was observed of the real one, and misbehaves as planned.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::fake_server::{FakeServer, Fault, Keys, Plan, install, set_plan};

const KEY: &str = "session-key";

/// One exchange; the status is 0 when the connection ended without a whole reply.
fn call_with(port: u16, key: Option<&str>, method: &str, path: &str, body: &Value) -> (u16, Value, usize) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let key = key.map(|key| format!("X-Session-API-Key: {key}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{key}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).ok();
    let text = String::from_utf8_lossy(&reply).into_owned();
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body).unwrap_or(Value::Null));
    (status, body.unwrap_or(Value::Null), reply.len())
}

struct Fixture {
    port: u16,
    id: String,
}

impl Fixture {
    fn new(port: u16, workspace: &str) -> Self {
        let id = uuid::Uuid::new_v4().to_string();
        let own = Self { port, id };
        assert_eq!(
            own.call("POST", "/api/profiles/gatepost", &json!({"llm": {"model": "openai/scripted", "api_key": "k"}})).0,
            201
        );
        let profile =
            json!({"agent_kind": "openhands", "llm_profile_ref": "gatepost", "tools": [{"name": "terminal"}]});
        assert_eq!(own.call("POST", "/api/agent-profiles/gatepost", &profile).0, 201);
        let profile = own.call("GET", "/api/agent-profiles/gatepost", &Value::Null).1;
        let request = json!({"conversation_id": own.id, "agent_profile_id": profile["profile"]["id"],
            "workspace": {"kind": "LocalWorkspace", "working_dir": workspace},
            "confirmation_policy": {"kind": "AlwaysConfirm"}, "autotitle": false});
        assert_eq!(own.call("POST", "/api/conversations", &request).0, 201);
        assert_eq!(own.call("POST", "/api/conversations", &request).0, 200, "creating is idempotent by id");
        own
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (status, body, _) = call_with(self.port, Some(KEY), method, path, body);
        (status, body)
    }

    fn on(&self, path: &str, body: &Value) -> u16 {
        self.call("POST", &format!("/api/conversations/{}/{path}", self.id), body).0
    }

    fn say(&self, text: &str) {
        assert_eq!(
            self.on("events", &json!({"role": "user", "content": [{"type": "text", "text": text}], "run": true})),
            200
        );
    }

    fn info(&self) -> Value {
        self.call("GET", &format!("/api/conversations/{}", self.id), &Value::Null).1
    }

    fn events(&self) -> Vec<Value> {
        let path = format!("/api/conversations/{}/events/search?limit=100&sort_order=TIMESTAMP", self.id);
        self.call("GET", &path, &Value::Null).1["items"].as_array().cloned().unwrap_or_default()
    }

    fn kinds(&self) -> Vec<String> {
        let plain = self.events().into_iter().filter(|event| event["kind"] != "ConversationStateUpdateEvent");
        plain.map(|event| event["kind"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn wait(&self, status: &str) {
        let begun = Instant::now();
        while self.info()["execution_status"] != status {
            assert!(begun.elapsed() < Duration::from_secs(10), "no {status}: {}", self.info()["execution_status"]);
            std::thread::sleep(Duration::from_millis(10));
        }
        // The step loop ends just after the status has moved.
        std::thread::sleep(Duration::from_millis(30));
    }

    fn last(&self, kind: &str) -> String {
        let events = self.events();
        events.iter().rev().find(|event| event["kind"] == kind).unwrap()["id"].as_str().unwrap().to_owned()
    }
}

fn started(plan: Plan) -> FakeServer {
    FakeServer::start(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), plan, KEY).unwrap()
}

/// What is done while an action waits, with its name.
type Way = (&'static str, fn(&Fixture));

#[test]
fn without_a_latch_every_known_way_runs_what_nobody_approved() {
    let ways: [Way; 5] = [
        ("a message", |fixture| fixture.say("Wait, do NOT run that")),
        ("run", |fixture| assert_eq!(fixture.on("run", &Value::Null), 200)),
        ("condense", |fixture| assert_eq!(fixture.on("condense", &Value::Null), 200)),
        ("reject, rewind, message", |fixture| {
            let action = fixture.last("ActionEvent");
            assert_eq!(fixture.on("events/respond_to_confirmation", &json!({"accept": false, "reason": "no"})), 200);
            assert_eq!(fixture.info()["execution_status"], "idle");
            assert_eq!(fixture.on("navigate", &json!({"event_id": action})), 200);
            fixture.say("say: go on");
        }),
        ("fork, run", |fixture| {
            let fork = uuid::Uuid::new_v4().to_string();
            assert_eq!(fixture.on("fork", &json!({"id": fork})), 201);
            assert_eq!(fixture.on("fork", &json!({"id": fork})), 409);
            assert_eq!(Fixture { port: fixture.port, id: fork }.on("run", &Value::Null), 200);
        }),
    ];
    for (name, way) in ways {
        for latch in [false, true] {
            let workspace = tempfile::tempdir().unwrap();
            let server = started(Plan { has_no_latch: !latch, runs_commands: true, ..Plan::default() });
            let fixture = Fixture::new(server.port(), &workspace.path().to_string_lossy());
            fixture.say("run: touch marker");
            fixture.wait("waiting_for_confirmation");
            assert!(!workspace.path().join("marker").exists());
            way(&fixture);
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(workspace.path().join("marker").exists(), !latch, "{name}");
            assert_eq!(server.executed().len(), usize::from(!latch), "{name}");
        }
    }
}

#[test]
fn a_granted_action_runs_once_and_the_turn_goes_on() {
    let workspace = tempfile::tempdir().unwrap();
    let server = started(Plan { runs_commands: true, ..Plan::default() });
    let fixture = Fixture::new(server.port(), &workspace.path().to_string_lossy());
    fixture.say("run: echo one >> marker\nthen say: finished now");
    fixture.wait("waiting_for_confirmation");
    let action = fixture.last("ActionEvent");
    server.grant(std::slice::from_ref(&action));
    assert_eq!(fixture.on("events/respond_to_confirmation", &json!({"accept": true})), 200);
    fixture.wait("finished");
    assert_eq!(fixture.kinds(), ["MessageEvent", "ActionEvent", "ObservationEvent", "MessageEvent"]);
    fixture.on("navigate", &json!({"event_id": action}));
    fixture.say("say: again");
    fixture.wait("waiting_for_confirmation");
    assert_eq!(std::fs::read_to_string(workspace.path().join("marker")).unwrap(), "one\n");
}

#[test]
fn errors_exempt_actions_interrupts_and_stuck_agents_look_as_observed() {
    let workspace = tempfile::tempdir().unwrap();
    let server = started(Plan { has_no_latch: true, runs_commands: true, ..Plan::default() });
    let fixture = Fixture::new(server.port(), &workspace.path().to_string_lossy());
    fixture.say("bad-args");
    fixture.wait("finished");
    assert_eq!(fixture.kinds(), ["MessageEvent", "ActionEvent", "AgentErrorEvent", "MessageEvent"]);
    fixture.say("think: hm");
    fixture.wait("finished");
    fixture.say("finish: bye");
    fixture.wait("finished");
    assert_eq!(fixture.kinds().iter().filter(|kind| *kind == "ObservationEvent").count(), 2);
    fixture.say("empty");
    fixture.wait("stuck");
    fixture.say("run: sleep 60");
    fixture.wait("waiting_for_confirmation");
    assert_eq!(fixture.on("run", &Value::Null), 200);
    fixture.wait("running");
    assert_eq!(fixture.on("run", &Value::Null), 409);
    assert_eq!(fixture.on("interrupt", &Value::Null), 200);
    assert_eq!(fixture.info()["execution_status"], "paused");
    assert_eq!(fixture.kinds().iter().rev().take(2).collect::<Vec<_>>(), ["InterruptEvent", "AgentErrorEvent"]);
    let unknown = Fixture { port: fixture.port, id: uuid::Uuid::new_v4().to_string() };
    assert_eq!((unknown.on("interrupt", &Value::Null), unknown.on("run", &Value::Null)), (400, 404));
}

#[test]
fn a_message_that_arrives_in_the_last_step_is_not_read() {
    let server = started(Plan::default());
    let fixture = Fixture::new(server.port(), "/tmp");
    fixture.say("slow 300: say: first");
    fixture.wait("running");
    fixture.say("say: second");
    fixture.wait("finished");
    assert_eq!(fixture.on("run", &Value::Null), 200);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(fixture.kinds(), ["MessageEvent", "MessageEvent", "MessageEvent"]);
    fixture.say("say: third");
    fixture.wait("finished");
    assert_eq!(fixture.kinds().len(), 5);
}

#[test]
fn keys_and_faults_are_as_planned() {
    let server = started(Plan::default());
    let port = server.port();
    let count = |key| call_with(port, key, "GET", "/api/conversations/count", &Value::Null);
    let statuses = |server: &FakeServer, keys| {
        server.set_plan(Plan { keys, ..Plan::default() });
        [count(Some(KEY)).0, count(Some("wrong")).0, count(None).0]
    };
    assert_eq!(statuses(&server, Keys::Configured), [200, 401, 401]);
    assert_eq!(statuses(&server, Keys::Open), [200, 200, 200]);
    assert_eq!(statuses(&server, Keys::Closed), [401, 401, 401]);
    assert_eq!(call_with(port, None, "POST", "/api/init", &Value::Null).0, 401);

    let info = |fault: Fault| {
        server.set_plan(Plan::default().with_fault("server_info", fault));
        call_with(port, None, "GET", "/server_info", &Value::Null)
    };
    assert_eq!(info(Fault::StatusInstead(500)).0, 500);
    assert_eq!(info(Fault::Redirect("http://127.0.0.1:1/".into())).0, 307);
    assert!(info(Fault::OversizeBytes(9 << 20)).2 > 9 << 20);
    assert_eq!(info(Fault::NotJson).1, Value::Null);
    assert_eq!(info(Fault::CutAtByte(30)).2, 30);
    assert_eq!(info(Fault::Drop).2, 0);
    let begun = Instant::now();
    assert_eq!(info(Fault::StallMs(300)).0, 200);
    assert!(begun.elapsed() >= Duration::from_millis(300));

    server.set_plan(Plan::default().with_fault_times("server_info", 1, Some(1), Fault::StatusInstead(503)));
    let three = [(); 3].map(|()| call_with(port, None, "GET", "/server_info", &Value::Null).0);
    assert_eq!(three, [200, 503, 200]);
}

#[test]
fn a_launched_server_speaks_the_start_up_protocol_and_keeps_its_conversations() {
    let directory = tempfile::tempdir().unwrap();
    let executable = install(&directory.path().join("env"), "1.40.0").unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let first = Launched::start(&executable, directory.path());
    let announcement = first.announcement.clone().unwrap();
    assert_eq!(announcement["announce"]["nonce"], "nonce-1");
    assert_eq!(announcement["announce"]["pid"], first.pid);
    let fixture = Fixture::new(first.port, &workspace.path().to_string_lossy());
    fixture.say("run: touch marker");
    fixture.wait("waiting_for_confirmation");
    assert_eq!(fixture.on("run", &Value::Null), 200);
    assert_eq!(first.read()["held"]["event_ids"][0], fixture.last("ActionEvent").as_str());
    let inspected = first.ask(&json!({"id": 1, "inspect": true}));
    assert_eq!(inspected["inspect"]["latch"], true);
    assert_eq!(inspected["inspect"]["dumpable"], 0);
    assert_eq!(inspected["inspect"]["listeners"].as_array().unwrap().len(), 1);
    first.kill();

    set_plan(&directory.path().join("env"), &Plan { second_listener: true, runs_commands: true, ..Plan::default() })
        .unwrap();
    let second = Launched::start(&executable, directory.path());
    let fixture = Fixture { port: second.port, id: fixture.id };
    assert_eq!(fixture.info()["execution_status"], "waiting_for_confirmation");
    let inspected = second.ask(&json!({"id": 2, "inspect": true}));
    assert_eq!(inspected["inspect"]["listeners"].as_array().unwrap().len(), 2);
    assert_eq!(second.ask(&json!({"id": 3, "grant": [fixture.last("ActionEvent")]}))["granted"], 1);
    assert_eq!(fixture.on("events/respond_to_confirmation", &json!({"accept": true})), 200);
    fixture.wait("finished");
    assert!(workspace.path().join("marker").exists());
    assert_eq!(second.ask(&json!({"id": 4, "settled": fixture.id}))["settled"], true);
    second.kill();
}

#[test]
fn a_launched_server_ends_with_its_daemon_and_can_keep_silent() {
    let directory = tempfile::tempdir().unwrap();
    let executable = install(&directory.path().join("env"), "1.40.0").unwrap();
    let silent: Plan = serde_json::from_value(json!({"announcement": "never"})).unwrap();
    set_plan(&directory.path().join("env"), &silent).unwrap();
    let mut launched = Launched::start(&executable, directory.path());
    assert!(launched.announcement.is_none());
    launched.control = None;
    let begun = Instant::now();
    while launched.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the server outlives its daemon");
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Launched {
    child: std::process::Child,
    pid: u32,
    port: u16,
    control: Option<BufReader<UnixStream>>,
    announcement: Option<Value>,
}

impl Launched {
    /// Starts it as a daemon does, through a shell that gives the descriptors their numbers.
    fn start(executable: &std::path::Path, directory: &std::path::Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (own, theirs) = UnixStream::pair().unwrap();
        own.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let config = directory.join("config.json");
        let path = directory.join("conversations");
        std::fs::write(&config, json!({"session_api_keys": [KEY], "conversations_path": path}).to_string()).unwrap();
        let script = "exec 7<&0 8>&1 9<\"$1\" 0</dev/null 1>&2; exec \"$2\" --host 127.0.0.1 --port 1";
        let child = Command::new("bash")
            .args(["-c", script, "launch"])
            .args([&config, &executable.to_path_buf()])
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("GATEPOST_LISTEN_FD", "7"), ("GATEPOST_CONTROL_FD", "8")])
            .envs([("GATEPOST_NONCE", "nonce-1"), ("OPENHANDS_AGENT_SERVER_CONFIG_PATH", "/dev/fd/9")])
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .unwrap();
        assert!(own.as_raw_fd() > 2);
        let pid = child.id();
        let mut launched = Self { child, pid, port, control: Some(BufReader::new(own)), announcement: None };
        launched.announcement = launched.try_read();
        launched
    }

    fn try_read(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.control.as_mut()?.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    fn read(&self) -> Value {
        let mut line = Vec::new();
        let mut stream = self.control.as_ref().unwrap().get_ref();
        let mut byte = [0];
        while stream.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        serde_json::from_slice(&line).unwrap()
    }

    fn ask(&self, request: &Value) -> Value {
        let mut stream = self.control.as_ref().unwrap().get_ref();
        stream.write_all(format!("{request}\n").as_bytes()).unwrap();
        self.read()
    }

    fn kill(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
