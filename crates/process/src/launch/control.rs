//! The private channel into the server: grants go in, reports come out, one JSON object a line.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rules::confinement::{Outcome, Probe};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{broadcast, oneshot};
use tokio::task::AbortHandle;

use super::confining::ProbeTargets;
use super::inspection::{Inspection, RawInspection};

/// One line, either way.
const MAX_LINE_BYTES: usize = 1024 * 1024;
/// Conversations whose logs' ends one request may ask for.
pub const MAX_LOG_ENDS: usize = 100;
/// Requests that may wait for their answer.
const MAX_PENDING: usize = 64;
/// Reports that a slow listener may be behind.
const HELD_BEHIND: usize = 64;
/// One request, with its answer.
const REQUEST_LIMIT_MS: u64 = 5_000;
/// One trial of the confinement: a process is started for it.
const PROBE_LIMIT_MS: u64 = 30_000;

/// Why a request on the control channel has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ControlError {
    /// The server is gone or broke the protocol.
    #[error("the server's control channel is closed ({0}); the server is ended and must be started again")]
    Closed(String),
    /// No answer in time. What was asked for may have been done.
    #[error("the server did not answer on its control channel within {limit_ms} ms")]
    TimedOut {
        /// The time it had.
        limit_ms: u64,
    },
    /// The server answered that it cannot.
    #[error("the server refused a request on its control channel: {0}")]
    Refused(String),
    /// The request is too large, or too many wait already.
    #[error("too much asked of the control channel: {0}")]
    TooMuch(&'static str),
}

/// An action without a grant that was stopped inside the server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Held {
    /// The server's conversation id.
    pub conversation_id: String,
    /// The actions of the batch.
    pub event_ids: Vec<String>,
}

/// What a server says of itself before anything else.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Announcement {
    pub(crate) nonce: String,
    pub(crate) pid: u32,
    pub(crate) contract: String,
    pub(crate) measures: Vec<String>,
}

struct Waiting {
    next_id: u64,
    answers: HashMap<u64, oneshot::Sender<Value>>,
    /// Set once, when the channel is unusable.
    closed: Option<String>,
}

struct Board(Mutex<Waiting>);

impl Board {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No answer will come any more: whoever waits hears it at once.
    fn close(&self, why: &str) {
        let mut waiting = self.lock();
        waiting.closed.get_or_insert_with(|| why.to_owned());
        waiting.answers.clear();
    }

    fn why_closed(&self) -> ControlError {
        ControlError::Closed(self.lock().closed.clone().unwrap_or_else(|| "ended".to_owned()))
    }

    fn register(&self) -> Result<(u64, oneshot::Receiver<Value>), ControlError> {
        let mut waiting = self.lock();
        if let Some(why) = &waiting.closed {
            return Err(ControlError::Closed(why.clone()));
        }
        if waiting.answers.len() >= MAX_PENDING {
            return Err(ControlError::TooMuch("too many requests wait for an answer"));
        }
        waiting.next_id += 1;
        let id = waiting.next_id;
        let (sender, receiver) = oneshot::channel();
        waiting.answers.insert(id, sender);
        Ok((id, receiver))
    }
}

/// Forgets a request that nobody waits for any more.
struct Registered<'a>(&'a Board, u64);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.lock().answers.remove(&self.1);
    }
}

struct Shared {
    write: tokio::sync::Mutex<OwnedWriteHalf>,
    board: Arc<Board>,
    held: broadcast::Sender<Held>,
    reader: AbortHandle,
    nonce: String,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Closes the socket, upon which the server ends itself.
        self.reader.abort();
    }
}

/// The daemon's end of the channel. Cheap to clone; when the last clone is gone, the server ends itself.
#[derive(Clone)]
pub struct Control {
    shared: Arc<Shared>,
}

impl Control {
    /// Start reading. The receiver gets the announcement, or is dropped when the channel closes without one.
    pub(crate) fn open(ours: OwnedFd, nonce: String) -> io::Result<(Self, oneshot::Receiver<Announcement>)> {
        let stream = StdUnixStream::from(ours);
        stream.set_nonblocking(true)?;
        let (read, write) = UnixStream::from_std(stream)?.into_split();
        let board = Arc::new(Board(Mutex::new(Waiting { next_id: 0, answers: HashMap::new(), closed: None })));
        let (held, _) = broadcast::channel(HELD_BEHIND);
        let (announce, announced) = oneshot::channel();
        let reader = Reader { board: Arc::clone(&board), held: held.clone(), announce: Some(announce) };
        let reader = tokio::spawn(reader.run(read)).abort_handle();
        let shared = Shared { write: tokio::sync::Mutex::new(write), board, held, reader, nonce };
        Ok((Self { shared: Arc::new(shared) }, announced))
    }

    /// Let each of these actions run once. After any error the grant may be in force: revoke, or end the server.
    ///
    /// # Errors
    /// As [`ControlError`] says; without an acknowledgement it is never `Ok`.
    pub async fn grant(&self, event_ids: &[String]) -> Result<(), ControlError> {
        let answer = self.request(|id| json!({"id": id, "grant": event_ids})).await?;
        if answer.get("granted").and_then(Value::as_u64) == u64::try_from(event_ids.len()).ok() {
            return Ok(());
        }
        Err(refused(&answer))
    }

    /// Take back the grants of these actions; says how many of them were not used.
    ///
    /// # Errors
    /// As [`ControlError`] says.
    pub async fn revoke(&self, event_ids: &[String]) -> Result<u64, ControlError> {
        let answer = self.request(|id| json!({"id": id, "revoke": event_ids})).await?;
        answer.get("revoked").and_then(Value::as_u64).ok_or_else(|| refused(&answer))
    }

    /// No run of that conversation is under way or ending.
    ///
    /// # Errors
    /// As [`ControlError`] says.
    pub async fn settled(&self, conversation_id: &str) -> Result<bool, ControlError> {
        let answer = self.request(|id| json!({"id": id, "settled": conversation_id})).await?;
        answer.get("settled").and_then(Value::as_bool).ok_or_else(|| refused(&answer))
    }

    /// The last event of each conversation's log, in the order asked; none where the server cannot tell. At most
    /// [`MAX_LOG_ENDS`] conversations.
    ///
    /// # Errors
    /// As [`ControlError`] says; also when it tells of more or fewer.
    pub async fn log_ends(&self, conversation_ids: &[&str]) -> Result<Vec<Option<String>>, ControlError> {
        if conversation_ids.len() > MAX_LOG_ENDS {
            return Err(ControlError::TooMuch("more logs than one request may ask about"));
        }
        let mut answer = self.request(|id| json!({"id": id, "log_ends": conversation_ids})).await?;
        let ends = answer.get_mut("log_ends").map(Value::take).unwrap_or_default();
        let ends: Vec<Option<String>> = serde_json::from_value(ends).map_err(|_| refused(&answer))?;
        if ends.len() == conversation_ids.len() { Ok(ends) } else { Err(refused(&answer)) }
    }

    /// Facts about the server process, taken now.
    ///
    /// # Errors
    /// As [`ControlError`] says.
    pub async fn inspect(&self) -> Result<Inspection, ControlError> {
        let answer = self.request(|id| json!({"id": id, "inspect": true})).await?;
        let raw = answer.get("inspect").cloned().unwrap_or_default();
        let raw: RawInspection = serde_json::from_value(raw).map_err(|_| refused(&answer))?;
        Ok(raw.read(&self.shared.nonce))
    }

    /// What a process of the agent's can still do, tried by one that the server starts now.
    ///
    /// # Errors
    /// As [`ControlError`] says; also when the process says nothing that is understood.
    pub async fn probe(&self, targets: &ProbeTargets) -> Result<BTreeMap<Probe, Outcome>, ControlError> {
        let targets = serde_json::to_string(targets).map_err(|error| ControlError::Refused(error.to_string()))?;
        let answer = self.request_within(PROBE_LIMIT_MS, |id| json!({"id": id, "probe": targets})).await?;
        let said = answer.get("probe").and_then(Value::as_str).ok_or_else(|| refused(&answer))?;
        serde_json::from_str(said).map_err(|_| {
            ControlError::Refused(format!(
                "the process that tries it said: {}",
                said.chars().take(200).collect::<String>()
            ))
        })
    }

    /// Hear of actions that were stopped. A listener that falls more than 64 behind is told how many it missed.
    #[must_use]
    pub fn held(&self) -> broadcast::Receiver<Held> {
        self.shared.held.subscribe()
    }

    async fn request(&self, message: impl FnOnce(u64) -> Value) -> Result<Value, ControlError> {
        self.request_within(REQUEST_LIMIT_MS, message).await
    }

    async fn request_within(&self, limit_ms: u64, message: impl FnOnce(u64) -> Value) -> Result<Value, ControlError> {
        let board = &self.shared.board;
        let (id, answer) = board.register()?;
        let _registered = Registered(board, id);
        let mut line = message(id).to_string().into_bytes();
        line.push(b'\n');
        if line.len() > MAX_LINE_BYTES {
            return Err(ControlError::TooMuch("one request is longer than a line may be"));
        }
        let exchange = async {
            self.write(&line).await?;
            answer.await.map_err(|_| board.why_closed())
        };
        let limit = Duration::from_millis(limit_ms);
        tokio::time::timeout(limit, exchange).await.unwrap_or(Err(ControlError::TimedOut { limit_ms }))
    }

    async fn write(&self, line: &[u8]) -> Result<(), ControlError> {
        let mut write = self.shared.write.lock().await;
        // A line given up in the middle would spoil the next one.
        let mut whole = CloseUnlessDone { board: &self.shared.board, done: false };
        let written = write.write_all(line).await;
        whole.done = written.is_ok();
        written.map_err(|error| ControlError::Closed(error.to_string()))
    }
}

struct CloseUnlessDone<'a> {
    board: &'a Board,
    done: bool,
}

impl Drop for CloseUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.board.close("a request could not be written whole");
        }
    }
}

fn refused(answer: &Value) -> ControlError {
    let said = answer.get("error").and_then(Value::as_str).unwrap_or("an answer of another shape");
    ControlError::Refused(said.chars().take(200).collect())
}

struct Reader {
    board: Arc<Board>,
    held: broadcast::Sender<Held>,
    announce: Option<oneshot::Sender<Announcement>>,
}

impl Reader {
    async fn run(mut self, read: OwnedReadHalf) {
        let mut lines = BufReader::new(read);
        let why = loop {
            match read_line(&mut lines).await {
                Ok(Some(line)) => {
                    if let Err(why) = self.take(&line) {
                        break why.to_owned();
                    }
                }
                Ok(None) => break "the server closed it".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        self.board.close(&why);
    }

    fn take(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let mut message: Value = serde_json::from_slice(line).map_err(|_| "a line that is no JSON")?;
        if let Some(id) = message.get("id").and_then(Value::as_u64) {
            if let Some(waiting) = self.board.lock().answers.remove(&id) {
                // Nobody may be waiting any more; that is theirs to know.
                drop(waiting.send(message));
            }
            return Ok(());
        }
        if let Some(held) = message.get_mut("held").map(Value::take) {
            let held = serde_json::from_value(held).map_err(|_| "a report of another shape")?;
            // Nobody has to listen.
            drop(self.held.send(held));
            return Ok(());
        }
        let announcement =
            message.get_mut("announce").map(Value::take).ok_or("a message that is not in the protocol")?;
        let announcement = serde_json::from_value(announcement).map_err(|_| "an announcement of another shape")?;
        let waiting = self.announce.take().ok_or("a second announcement")?;
        waiting.send(announcement).map_err(|_| "an announcement that came too late")
    }
}

/// One line without its end, bounded; None at the end of the stream.
async fn read_line(source: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let available = source.fill_buf().await?;
        if available.is_empty() {
            return Ok(None);
        }
        let end = available.iter().position(|&byte| byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if line.len() + taken > MAX_LINE_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line that is too long"));
        }
        line.extend_from_slice(&available[..taken]);
        source.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}
