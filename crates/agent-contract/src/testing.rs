//! For the tests: a server that says exactly what a test tells it to, and remembers what it was sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use host::Secret;
use rules::approval::{AcceptRequest, ApprovalBasis, ApprovalBook, Binding};
use rules::branch::active_branch;
use rules::canary::{CanaryId, CanaryResult};
use rules::gate::{GateInput, StepCause, StepGrant, StepRequest, gate};
use rules::log::{ActionRecord, ExecutionStatus, LogEvent, LogEventKind};
use rules::quiet::QuietState;
use rules::redact::Redactor;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::contract::{FOLDERS, Folder};
use crate::{Client, Contract, SessionId, SetupClient};

pub(crate) const KEY: &str = "session-key-0123456789abcdef";
pub(crate) const SESSION: &str = "0a1b2c3d-1111-4111-8111-00000000000f";

/// What the server does with one request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends these bytes and keeps the connection.
    Send(Vec<u8>),
    /// Sends these bytes and closes.
    SendAndClose(Vec<u8>),
    /// Sends these bytes and then nothing, keeping the connection open.
    Stall(Vec<u8>),
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// Counted from zero over all connections.
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Received {
    /// Method and target.
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1")
    }

    pub(crate) fn headers(&self) -> BTreeMap<String, String> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    pub(crate) fn json(&self) -> Option<Value> {
        if self.body.is_empty() { None } else { Some(serde_json::from_slice(&self.body).unwrap()) }
    }
}

pub(crate) struct Server {
    pub(crate) port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let record = received.clone();
        let answer = Arc::new(answer);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            for connection in 0.. {
                let Ok((stream, _peer)) = listener.accept().await else { return };
                connections.spawn(serve(stream, connection, record.clone(), answer.clone()));
            }
        });
        Self { port, received, task }
    }

    pub(crate) async fn always(act: Act) -> Self {
        Self::start(move |_request| act.clone()).await
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.received().iter().map(|request| request.line().to_owned()).collect()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(contract(2_000), self.port, key())
    }

    pub(crate) fn impatient_client(&self) -> Client {
        Client::new(contract(300), self.port, key())
    }

    pub(crate) fn setup_client(&self) -> SetupClient {
        SetupClient::new(contract(2_000), self.port, key())
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    record: Arc<Mutex<Vec<Received>>>,
    answer: Arc<impl Fn(&Received) -> Act>,
) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer, connection).await {
        record.lock().unwrap().push(request.clone());
        let (bytes, after) = match answer(&request) {
            Act::Send(bytes) => (bytes, 0),
            Act::SendAndClose(bytes) => (bytes, 1),
            Act::Stall(bytes) => (bytes, 2),
        };
        if stream.write_all(&bytes).await.is_err() || after == 1 {
            return;
        }
        if after == 2 {
            std::future::pending::<()>().await;
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>, connection: usize) -> Option<Received> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |text| text.parse().unwrap());
            if buffer.len() >= end + 4 + length {
                let body = buffer[end + 4..end + 4 + length].to_vec();
                buffer.drain(..end + 4 + length);
                return Some(Received { connection, head, body });
            }
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(count) if count > 0 => buffer.extend_from_slice(&chunk[..count]),
            _ => return None,
        }
    }
}

/// A whole answer.
pub(crate) fn answer(status: u16, content_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} Word\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nserver: x\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub(crate) fn json_answer(status: u16, value: &Value) -> Vec<u8> {
    answer(status, "application/json", value.to_string().as_bytes())
}

pub(crate) fn success() -> Vec<u8> {
    json_answer(200, &json!({"success": true}))
}

pub(crate) fn session() -> SessionId {
    SessionId::parse(SESSION).unwrap()
}

pub(crate) fn key() -> Arc<Secret> {
    Arc::new(Secret::new(KEY.to_owned()))
}

/// The reviewed contract with its timeouts shortened to this.
pub(crate) fn contract(timeout_ms: u64) -> &'static Contract {
    changed(|data| {
        for limit in data["timeouts_ms"].as_object_mut().unwrap().values_mut() {
            *limit = json!(timeout_ms);
        }
    })
    .unwrap()
}

/// The reviewed contract after a change of its data, read as any other.
pub(crate) fn changed(change: impl FnOnce(&mut Value)) -> Result<&'static Contract, crate::ContractDataError> {
    let mut data: Value = serde_json::from_str(FOLDERS[0].contract).unwrap();
    change(&mut data);
    let version: &'static str = data["version"].as_str().unwrap_or_default().to_owned().leak();
    let folder = Folder { version, contract: data.to_string().leak(), ..FOLDERS[0] };
    Ok(Box::leak(Box::new(Contract::parse(folder)?)))
}

/// A grant that the real gate gave, for a conversation in which everything is as it should be.
pub(crate) fn grant(session_id: &str, cause: StepCause) -> StepGrant {
    let accepting = cause == StepCause::Accept;
    let mut events = vec![log_event("e-1", None, LogEventKind::UserMessage { text: "go".to_owned() })];
    if accepting {
        let record = ActionRecord {
            tool: "terminal".to_owned(),
            tool_call_id: "c-1".to_owned(),
            action: Some(json!({"kind": "TerminalAction", "command": "true"})),
            exempt_kind: None,
            claimed_risk: None,
            claimed_summary: None,
        };
        events.push(log_event("e-2", Some("e-1"), LogEventKind::Action(record)));
    }
    let branch = active_branch(&events, events.last().map(|event| event.event_id.as_str())).unwrap();
    let binding = Binding { session_id, server_start_id: "start", workdir: "/w", policy: "AlwaysConfirm" };
    let mut book = ApprovalBook::new(1_000);
    let mut approval_id = String::new();
    if let Some(basis) = ApprovalBasis::of(binding, &branch) {
        approval_id = book.offer(&basis, 0).approval_id;
        book.note_shown_in_full(&approval_id, "owner");
    }
    let redactor = Redactor::new(Vec::new());
    let request = match cause {
        StepCause::Message => StepRequest::Message,
        StepCause::Run => StepRequest::Run,
        StepCause::Condense => StepRequest::Condense,
        StepCause::Accept => StepRequest::Accept(AcceptRequest {
            approval_id: &approval_id,
            token_name: "owner",
            server_start_id: binding.server_start_id,
            workdir: binding.workdir,
            policy: binding.policy,
            now_ms: 1,
            book: &book,
            redactor: &redactor,
        }),
    };
    let canaries = CanaryId::ALL.map(|canary| CanaryResult {
        canary,
        passed: true,
        code: None,
        detail: String::new(),
        evidence: Value::Null,
    });
    let status = if accepting { ExecutionStatus::WaitingForConfirmation } else { ExecutionStatus::Idle };
    let sent = BTreeSet::new();
    let input = GateInput {
        session_id,
        request,
        branch: &branch,
        status,
        quiet: QuietState::Quiet,
        sent: &sent,
        blocked: None,
        canaries: &canaries,
    };
    gate(&input).unwrap()
}

fn log_event(id: &str, parent: Option<&str>, kind: LogEventKind) -> LogEvent {
    LogEvent { event_id: id.to_owned(), parent_id: parent.map(str::to_owned), kind }
}
