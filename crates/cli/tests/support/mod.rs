//! A daemon that answers what a test tells it to, and a command line whose streams a test can read.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's own furniture fails the test")]

use std::collections::{HashMap, VecDeque};
use std::io::{Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cli::{ClientContext, Command, Console, ParseOutcome, TokenFile};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::sync::oneshot;

pub const S1: &str = "0b23a082-3c53-4ae3-98a6-3fb16b88db40";
pub const S2: &str = "0b23ffff-3c53-4ae3-98a6-3fb16b88db41";
pub const A1: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
pub const TOKEN: &str = "owner-token-of-the-test";

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub line: String,
    pub body: Value,
    pub bearer: String,
}

/// What is answered.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    body: Bytes,
    delay: Duration,
    hang_up: bool,
}

pub fn ok(body: Value) -> Reply {
    Reply { status: 200, body: Bytes::from(body.to_string()), delay: Duration::ZERO, hang_up: false }
}

pub fn problem(status: u16, code: &str) -> Reply {
    let body = json!({"type": "about:blank", "title": "No", "status": status, "code": code, "detail": format!("words about {code}"), "retryable": false});
    Reply { status, ..ok(body) }
}

pub fn raw(status: u16, body: &str) -> Reply {
    Reply { status, body: Bytes::from(body.to_owned()), ..ok(json!(null)) }
}

pub fn hang_up() -> Reply {
    Reply { hang_up: true, ..ok(json!(null)) }
}

impl Reply {
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

type Routes = HashMap<String, VecDeque<Reply>>;

pub struct Fake {
    pub directory: tempfile::TempDir,
    routes: Arc<Mutex<Routes>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Fake {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let token = directory.path().join("token");
        std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        let routes = Arc::new(Mutex::new(Routes::new()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = oneshot::channel();
        let (listening, ready) = std::sync::mpsc::channel();
        let (socket, shared) = (directory.path().join("s"), (routes.clone(), asked.clone()));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = UnixListener::bind(socket).unwrap();
                listening.send(()).unwrap();
                tokio::select! { () = serve(listener, shared) => {}, _ = stopped => {} }
            });
        });
        ready.recv().unwrap();
        Self { directory, routes, asked, stop: Some(stop), thread: Some(thread) }
    }

    /// Answers a request line with these replies in turn; the last one again and again.
    pub fn on(self, line: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.routes.lock().unwrap().insert(line.to_owned(), replies.into_iter().collect());
        self
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The request lines, in order.
    pub fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    /// The last body sent.
    pub fn sent(&self) -> Value {
        self.asked().iter().rev().map(|asked| asked.body.clone()).find(|body| !body.is_null()).unwrap()
    }

    pub fn context(&self) -> ClientContext {
        ClientContext {
            socket: self.directory.path().join("s"),
            token_file: token_file(self.directory.path().join("token")),
            json: false,
            color: false,
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            live_progress: false,
        }
    }

    pub fn run(&self, words: &[&str]) -> Ran {
        run(words, self.context(), "")
    }

    pub fn run_json(&self, words: &[&str]) -> (u8, Value) {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let ran = self.run(&words);
        assert_eq!(ran.out.lines().count(), 1, "exactly one object: {}", ran.out);
        let value: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(value["ok"], ran.exit == 0, "{value}");
        (ran.exit, value)
    }

    /// As a person at a terminal who answers `typed`.
    pub fn run_at_terminal(&self, words: &[&str], typed: &str) -> Ran {
        let context = ClientContext { stdin_is_terminal: true, stdout_is_terminal: true, ..self.context() };
        run(words, context, typed)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || std::thread::panicking(), "the fake daemon failed");
        }
    }
}

async fn serve(listener: UnixListener, shared: (Arc<Mutex<Routes>>, Arc<Mutex<Vec<Asked>>>)) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, shared.clone()));
            // A client that has what it wanted closes: that is no failure.
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    (routes, asked): (Arc<Mutex<Routes>>, Arc<Mutex<Vec<Asked>>>),
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let line = format!("{} {}", request.method(), request.uri());
    let bearer =
        request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    asked.lock().unwrap().push(Asked { line: line.clone(), body, bearer });
    let reply = {
        let mut routes = routes.lock().unwrap();
        let known = if routes.contains_key(&line) || !line.contains("/events?") { line } else { "*events".to_owned() };
        match routes.get_mut(&known) {
            Some(replies) if replies.len() > 1 => replies.pop_front().unwrap(),
            Some(replies) => replies.front().unwrap().clone(),
            None => problem(404, "not_found"),
        }
    };
    tokio::time::sleep(reply.delay).await;
    if reply.hang_up {
        return Err(std::io::Error::other("hang up"));
    }
    Ok(Response::builder().status(reply.status).body(Full::new(reply.body)).unwrap())
}

/// What a command left behind.
#[derive(Debug)]
pub struct Ran {
    pub exit: u8,
    pub out: String,
    pub err: String,
}

#[derive(Clone, Default)]
pub struct Kept(pub Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Kept {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Kept as it is read.
pub fn token_file(path: PathBuf) -> TokenFile {
    TokenFile::new(path, Bytes::from)
}

/// Parses and runs as the binary does. `--json` of the words counts; socket and token are the context's.
pub fn run(words: &[&str], mut context: ClientContext, typed: &str) -> Ran {
    let (out, err) = (Kept::default(), Kept::default());
    let arguments = std::iter::once("gatepost").chain(words.iter().copied());
    let exit = match cli::parse(arguments, &mut out.clone(), &mut err.clone()) {
        ParseOutcome::Exit(exit) => exit,
        ParseOutcome::Run(parsed) => {
            context.json = parsed.json;
            context.color = context.color && parsed.color(true, None, None);
            let Command::Client(command) = &parsed.command else { panic!("{words:?} is not for the daemon") };
            let console = Console::new(
                Box::new(Cursor::new(typed.as_bytes().to_vec())),
                Box::new(out.clone()),
                Box::new(err.clone()),
            );
            cli::client::run_with(command, &context, console)
        }
    };
    Ran { exit, out: out.text(), err: err.text() }
}

pub fn nowhere() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    (directory, socket)
}

pub fn summary(id: &str, title: &str) -> Value {
    json!({"session_id": id, "workspace": "/home/u/src/app", "title": title, "state": "ready", "remedy": null, "status": "idle", "pending_actions": 0,
        "blocked_reason": null, "created_at": "2026-01-01T00:00:00Z"})
}

pub fn sessions() -> Reply {
    ok(json!({"sessions": [summary(S1, "first"), summary(S2, "second")]}))
}

pub fn snapshot_value() -> Value {
    json!({"session_id": S1, "workspace": "/home/u/src/app", "title": "first", "state": "ready", "remedy": null, "status": "idle", "pending_actions": 0,
        "created_at": "2026-01-01T00:00:00Z", "capability_generation": 7, "observed_at": "2026-01-01T00:00:01Z",
        "valid_until": "2026-01-01T00:00:31Z",
        "advertised_operations": [{"operation_id": "session.prompt.send", "needs_generation": true}],
        "choices": {"rewind": [{"turn": 1, "event_id": "e-one", "text": "make it", "at": "2026-01-01T00:00:00Z"},
            {"turn": 2, "event_id": "e-two", "text": "ma\u{202e}ke", "at": "2026-01-01T00:00:00Z"}], "model": ["m/one", "m/two"]},
        "values": {"model": "m/one", "confinement_level": "weak"}, "blocked_reason": null, "cursor": "1-0"})
}

pub fn receipt(state: &str, code: Option<&str>) -> Value {
    json!({"client_action_id": "act-1", "session_id": S1, "operation_id": "session.x", "state": state, "code": code,
        "detail": code.map(|code| format!("words about {code}")), "steps": [{"name": "run", "state": "done", "code": null}],
        "result": {}, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "replayed": false})
}

pub fn approval_value() -> Value {
    json!({"approval_id": A1, "session_id": S1, "expires_at": "2026-01-01T01:00:00Z", "holds_secret": false, "complete": true,
        "confinement_level": "weak", "named_files": [{"path": "build.sh", "sha256": "ab12", "changed": true}],
        "background_processes": [{"pid": 41, "name": "sleep"}], "notes": ["a shell keeps its state"],
        "actions": [{"event_id": "e1", "tool": "terminal", "arguments": {"command": "echo one\necho \u{1b}[2Jtwo", "timeout": 3},
            "agent_risk": "LOW", "agent_summary": "harmless \u{202e}really", "redacted": false, "truncated": false,
            "deceptive_text": true, "in_doubt": false},
            {"event_id": "e2", "tool": "file_editor", "arguments": {"path": "/etc/passwd"}, "agent_risk": null,
            "agent_summary": null, "redacted": false, "truncated": false, "deceptive_text": false, "in_doubt": false}]})
}

pub fn event(seq: u64, kind: &str, payload: Value) -> Value {
    json!({"cursor": format!("1-{seq}"), "seq": seq, "session_id": S1, "event_id": format!("e{seq}"),
        "at": "2026-01-01T00:00:00Z", "kind": kind, "payload": payload})
}

pub fn page(events: &[Value], next: &str) -> Reply {
    ok(json!({"events": events, "next_cursor": next, "resync": null}))
}

pub fn events_line(wait_ms: u64, after: Option<&str>) -> String {
    let after = after.map(|cursor| format!("&after={cursor}")).unwrap_or_default();
    format!("GET /v1/sessions/{S1}/events?limit=500&wait_ms={wait_ms}{after}")
}

pub fn status(seq: u64, word: &str) -> Value {
    event(seq, "status", json!({"status": word}))
}

pub fn said(seq: u64, text: &str) -> Value {
    event(seq, "user_message", json!({"text": text}))
}

pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
