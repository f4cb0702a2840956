//! The scripted model: an OpenAI-compatible endpoint on loopback that plays a script instead of thinking.
//!
//! Replies come from a queue that the test fills, else from the last user message (see [`script`]).

mod chat;
pub mod script;
mod serve;

pub use script::{Reply, ToolCall};

use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// How many request bodies are kept; the oldest are forgotten first.
pub const MAX_RECORDED_REQUESTS: usize = 512;
/// How many replies can be queued; further ones are refused.
pub const MAX_QUEUED_REPLIES: usize = 512;

/// What the endpoint and its owner share.
#[derive(Debug, Default)]
struct Shared {
    queue: VecDeque<Reply>,
    requests: VecDeque<Value>,
    authorizations: VecDeque<String>,
}

type State = Arc<Mutex<Shared>>;

/// A panic while the lock was held leaves plain data behind: it is used as it is.
fn lock(state: &State) -> MutexGuard<'_, Shared> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running scripted model. It has a thread of its own, and ends when it is stopped or dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    state: State,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedModel {
    /// Starts the endpoint on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port or no thread is to be had.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let state = State::default();
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("scripted-model".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve::serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
            // Connections still open are dropped here, slow replies with them.
            runtime.shutdown_background();
        })?;
        Ok(Self { address, state, stop: Some(stop), thread: Some(thread) })
    }

    /// What a client configures as its base URL, `/v1` included.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Queues a reply for the next request that carries tools. False when [`MAX_QUEUED_REPLIES`] are queued.
    pub fn push(&self, reply: Reply) -> bool {
        let mut shared = lock(&self.state);
        let room = shared.queue.len() < MAX_QUEUED_REPLIES;
        if room {
            shared.queue.push_back(reply);
        }
        room
    }

    /// The bodies of the completion requests so far, oldest first, at most [`MAX_RECORDED_REQUESTS`].
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        lock(&self.state).requests.iter().cloned().collect()
    }

    /// The `Authorization` header of each recorded request, empty where there was none.
    #[must_use]
    pub fn authorizations(&self) -> Vec<String> {
        lock(&self.state).authorizations.iter().cloned().collect()
    }

    /// Ends the endpoint and its open connections, and waits for its thread.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // A failure means that the thread has ended by itself.
            stop.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.end();
    }
}
