//! A fake controller, the real server around it on a temporary socket, and a client that sends any bytes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{Backend, Limits, PeerVerdict, ServeReport};
use rules::catalog::OperationInput;
use rules::refusal::{Refusal, RefusalCode};
use rules::role::{Role, Roles};
use serde_json::{Value, json};
use session::view::{
    ActionRequest, AdvertisedOperation, Approval, AttachSession, Attestation, Caller, CreateSession, EventPage,
    EventView, PendingAction, ProbeView, Readiness, ReceiptView, Resync, RewindChoice, SessionSnapshot, SessionSummary,
    SetupAction, StatusView,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// The one session that the fake knows.
pub(crate) const SESSION: &str = "00000000-0000-4000-8000-000000000001";
/// Generation it is at.
pub(crate) const GENERATION: u64 = 7;
/// The batch that waits.
pub(crate) const APPROVAL: &str = "00000000000000000000000000000000000000000000000000000000000000aa";
pub(crate) const OWNER: &str = "owner-token";

/// Remembers what it was asked; answers simple things.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    calls: Mutex<Vec<String>>,
    events: Mutex<Vec<Value>>,
    news: Notify,
    reading: AtomicUsize,
    revoked: AtomicBool,
}

impl Fake {
    /// What was asked so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.inner.calls.lock().unwrap().clone()
    }

    /// Publishes an event.
    pub(crate) fn publish(&self, payload: Value) {
        self.inner.events.lock().unwrap().push(payload);
        self.inner.news.notify_waiters();
    }

    /// Reads of events under way.
    pub(crate) fn reading(&self) -> usize {
        self.inner.reading.load(Ordering::SeqCst)
    }

    /// No token is known any more.
    pub(crate) fn revoke(&self) {
        self.inner.revoked.store(true, Ordering::SeqCst);
    }

    fn note(&self, call: impl Into<String>) {
        self.inner.calls.lock().unwrap().push(call.into());
    }

    fn page(&self, after: Option<&str>, limit: usize) -> EventPage {
        let (start, resync) = match after.and_then(|cursor| cursor.strip_prefix("c")?.parse::<usize>().ok()) {
            Some(start) => (start, None),
            None if after.is_none() => (0, None),
            None => (0, Some(Resync { reason: "epoch".into(), first_cursor: "c0".into() })),
        };
        let all = self.inner.events.lock().unwrap();
        let events: Vec<EventView> = all
            .iter()
            .enumerate()
            .skip(start)
            .take(limit)
            .map(|(index, payload)| EventView {
                cursor: format!("c{}", index + 1),
                seq: index as u64 + 1,
                session_id: SESSION.into(),
                event_id: format!("e{index}"),
                at: "2026-01-01T00:00:00Z".into(),
                kind: "agent_message".into(),
                payload: payload.clone(),
            })
            .collect();
        let next_cursor = format!("c{}", start + events.len());
        EventPage { events, next_cursor, resync }
    }
}

struct Reading<'a>(&'a AtomicUsize);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn known(session_id: &str) -> Result<(), Refusal> {
    if session_id == SESSION {
        return Ok(());
    }
    Err(Refusal::new(RefusalCode::SessionNotFound, "no such session"))
}

fn summary() -> SessionSummary {
    SessionSummary {
        session_id: SESSION.into(),
        workspace: "/w".into(),
        title: Some("t".into()),
        status: "idle".into(),
        pending_actions: 1,
        blocked_reason: Some(Refusal::new(RefusalCode::SessionBlocked, "look at it")),
        created_at: "2026-01-01T00:00:00Z".into(),
    }
}

fn snapshot() -> SessionSnapshot {
    SessionSnapshot {
        summary: summary(),
        capability_generation: GENERATION,
        observed_at: "2026-01-01T00:00:00Z".into(),
        valid_until: "2026-01-01T00:00:10Z".into(),
        advertised_operations: vec![AdvertisedOperation {
            operation_id: rules::operation::OperationId::PromptSend,
            needs_generation: true,
        }],
        rewind_choices: vec![RewindChoice { turn: 1, event_id: "e".into(), text: "p".into(), at: "a".into() }],
        model_choices: vec!["m".into()],
        values: [("policy".to_owned(), json!("AlwaysConfirm"))].into(),
        cursor: "c0".into(),
    }
}

fn approval() -> Approval {
    Approval {
        approval_id: APPROVAL.into(),
        session_id: SESSION.into(),
        expires_at: "2026-01-01T01:00:00Z".into(),
        actions: vec![PendingAction {
            event_id: "e".into(),
            tool: "terminal".into(),
            arguments: json!({"command": "ls"}),
            agent_risk: Some("LOW".into()),
            agent_summary: None,
            redacted: false,
            truncated: false,
            deceptive_text: false,
            in_doubt: false,
        }],
        holds_secret: false,
        complete: true,
        confinement_level: "weak".into(),
        notes: vec![],
    }
}

fn receipt(request: &ActionRequest, state: &str) -> ReceiptView {
    ReceiptView {
        client_action_id: request.client_action_id.clone(),
        session_id: request.session_id.clone(),
        operation_id: request.input.operation().as_str().into(),
        state: state.into(),
        code: None,
        detail: None,
        steps: vec![],
        result: Value::Null,
        created_at: "2026-01-01T00:00:00Z".into(),
        updated_at: "2026-01-01T00:00:00Z".into(),
        replayed: false,
    }
}

impl Backend for Fake {
    fn authenticate(&self, bearer: &str) -> Option<Caller> {
        if self.inner.revoked.load(Ordering::SeqCst) {
            return None;
        }
        let roles = match bearer {
            OWNER => Roles::OWNER,
            "observer-token" => Roles::of(&[Role::Observer]),
            "operator-token" => Roles::of(&[Role::Operator]),
            "approver-token" => Roles::of(&[Role::Approver]),
            _ => return None,
        };
        Some(Caller { name: bearer.trim_end_matches("-token").to_owned(), roles })
    }

    fn readiness(&self) -> Readiness {
        Readiness { ready: false, reasons: vec![Refusal::new(RefusalCode::ServerNotInstalled, "install it")] }
    }

    fn generation(&self, session_id: &str) -> Option<u64> {
        known(session_id).ok().map(|()| GENERATION)
    }

    async fn status(&self) -> StatusView {
        self.note("status");
        StatusView {
            state: "degraded".into(),
            gatepost_version: "0".into(),
            pid: 1,
            contract_version: "1.40.0".into(),
            installed: None,
            servers: vec![],
            sessions: vec![summary()],
            confinement_level: "weak".into(),
            confinement_missing: vec![],
            findings: vec![],
        }
    }

    async fn probe(&self) -> ProbeView {
        self.note("probe");
        let action = SetupAction { id: "install".into(), command: "gatepost server install".into(), needed: true };
        ProbeView { available: false, reasons: vec![], setup_actions: vec![action] }
    }

    async fn sessions(&self) -> Vec<SessionSummary> {
        self.note("sessions");
        vec![summary()]
    }

    async fn create_session(
        &self,
        caller: &Caller,
        request: CreateSession,
    ) -> Result<(SessionSnapshot, bool), Refusal> {
        self.note(format!("create {} {}", caller.name, request.workspace));
        Ok((snapshot(), request.session_id.is_none()))
    }

    async fn attach_session(&self, caller: &Caller, request: AttachSession) -> Result<SessionSnapshot, Refusal> {
        self.note(format!("attach {} {}", caller.name, request.conversation_id));
        Ok(snapshot())
    }

    async fn close_session(&self, caller: &Caller, session_id: &str, delete: bool) -> Result<(), Refusal> {
        self.note(format!("close {} {session_id} {delete}", caller.name));
        known(session_id)
    }

    async fn snapshot(&self, session_id: &str) -> Result<SessionSnapshot, Refusal> {
        self.note("snapshot");
        known(session_id).map(|()| snapshot())
    }

    async fn approvals(&self, session_id: &str) -> Result<Vec<Approval>, Refusal> {
        self.note("approvals");
        known(session_id).map(|()| vec![approval()])
    }

    async fn approval(
        &self,
        caller: &Caller,
        session_id: &str,
        approval_id: &str,
        full: bool,
    ) -> Result<Approval, Refusal> {
        self.note(format!("approval {} {full}", caller.name));
        known(session_id)?;
        if approval_id == APPROVAL {
            return Ok(approval());
        }
        Err(Refusal::new(RefusalCode::ApprovalNotFound, "never offered"))
    }

    async fn act(&self, caller: &Caller, request: ActionRequest) -> Result<ReceiptView, Refusal> {
        self.note(format!("act {} {}", caller.name, request.input.operation().as_str()));
        if let OperationInput::PromptSend { text, .. } = &request.input {
            match text.as_str() {
                "panic" => panic!("the controller fails"),
                "slow" => {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    self.note("act finished");
                }
                "queued" => return Ok(receipt(&request, "queued")),
                "stale" => return Err(Refusal::new(RefusalCode::GenerationStale, "look again")),
                _ => {}
            }
        }
        Ok(receipt(&request, "applied"))
    }

    async fn receipt(&self, client_action_id: &str) -> Result<ReceiptView, Refusal> {
        self.note(format!("receipt {client_action_id}"));
        Err(Refusal::new(RefusalCode::ActionNotFound, "no such receipt"))
    }

    async fn events(
        &self,
        session_id: &str,
        after: Option<&str>,
        limit: usize,
        wait_ms: u64,
    ) -> Result<EventPage, Refusal> {
        self.note(format!("events {after:?} {limit} {wait_ms}"));
        known(session_id)?;
        self.inner.reading.fetch_add(1, Ordering::SeqCst);
        let reading = Reading(&self.inner.reading);
        let deadline = tokio::time::Instant::now() + Duration::from_millis(wait_ms);
        loop {
            let news = self.inner.news.notified();
            let page = self.page(after, limit);
            if !page.events.is_empty()
                || page.resync.is_some()
                || tokio::time::timeout_at(deadline, news).await.is_err()
            {
                drop(reading);
                return Ok(page);
            }
        }
    }

    async fn attestation(&self, session_id: &str) -> Result<Attestation, Refusal> {
        self.note("attestation");
        known(session_id)?;
        Ok(Attestation { document: json!({"v": 1}), signature: "s".into(), public_key: "k".into() })
    }
}

/// The real server around a fake controller.
pub(crate) struct Running {
    pub(crate) fake: Fake,
    socket: std::path::PathBuf,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<ServeReport>,
    _directory: tempfile::TempDir,
}

impl Running {
    pub(crate) fn start(limits: Limits) -> Self {
        Self::start_with(limits, |_: std::os::fd::BorrowedFd<'_>| PeerVerdict::Admit)
    }

    pub(crate) fn start_with(limits: Limits, peers: impl api::PeerPolicy) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let fake = Fake::default();
        let backend = fake.clone();
        let task = tokio::spawn(api::serve(listener, backend, peers, limits, async move {
            drop(stopped.await);
        }));
        Self { fake, socket, stop: Some(stop), task, _directory: directory }
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection { stream: UnixStream::connect(&self.socket).await.unwrap(), buffer: Vec::new() }
    }

    /// One request on a connection of its own.
    pub(crate) async fn send(&self, request: &Request<'_>) -> Reply {
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        connection.reply(request.method == "HEAD").await.expect("a reply")
    }

    pub(crate) fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) async fn stop(mut self) -> ServeReport {
        self.begin_stop();
        tokio::time::timeout(Duration::from_secs(20), self.task).await.expect("stops in time").unwrap()
    }
}

/// A well-formed request.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) token: Option<&'a str>,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<&'a str>,
}

impl<'a> Request<'a> {
    pub(crate) fn get(target: &'a str) -> Self {
        Self { method: "GET", target, token: Some(OWNER), headers: &[], body: None }
    }

    pub(crate) fn post(target: &'a str, body: &'a str) -> Self {
        Self { method: "POST", target, token: Some(OWNER), headers: &[], body: Some(body) }
    }

    pub(crate) fn token(mut self, token: Option<&'a str>) -> Self {
        self.token = token;
        self
    }

    pub(crate) fn headers(mut self, headers: &'a [(&'a str, &'a str)]) -> Self {
        self.headers = headers;
        self
    }

    pub(crate) fn method(mut self, method: &'a str) -> Self {
        self.method = method;
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method, self.target);
        if let Some(token) = self.token {
            text.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for (name, value) in self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = self.body {
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(self.body.unwrap_or_default());
        text.into_bytes()
    }
}

/// A reply, read whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn code(&self) -> Option<String> {
        (!self.body.is_empty()).then(|| self.json()["code"].as_str().unwrap_or_default().to_owned())
    }
}

/// A raw connection.
pub(crate) struct Connection {
    pub(crate) stream: UnixStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        // A server that refuses early may close while the body is still being sent; the reply tells.
        drop(self.stream.write_all(bytes).await);
    }

    /// Reads until `end` stands in what was read, and takes it out; `None` when the connection ends first.
    pub(crate) async fn until(&mut self, end: &str) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|window| window == end.as_bytes()) {
                let taken: Vec<u8> = self.buffer.drain(..at + end.len()).collect();
                return Some(String::from_utf8(taken).unwrap());
            }
            if self.more().await == 0 {
                return None;
            }
        }
    }

    /// Bytes read by one read; 0 at the end.
    pub(crate) async fn more(&mut self) -> usize {
        let mut chunk = [0; 16 * 1024];
        let read = tokio::time::timeout(Duration::from_secs(20), self.stream.read(&mut chunk));
        let count = read.await.expect("the server answers in time").unwrap_or(0);
        self.buffer.extend_from_slice(&chunk[..count]);
        count
    }

    /// One reply with a length; `None` when the connection ends without one.
    pub(crate) async fn reply(&mut self, head_only: bool) -> Option<Reply> {
        let head = self.until("\r\n\r\n").await?;
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value);
        let length: usize = if head_only { 0 } else { length.parse().unwrap() };
        while self.buffer.len() < length {
            assert_ne!(self.more().await, 0, "the reply breaks off");
        }
        let body = self.buffer.drain(..length).collect();
        Some(Reply { status, headers, body })
    }
}
