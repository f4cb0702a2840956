//! One session: what is known of its conversation, and the lock under which it is changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_contract::SessionId;
use rules::log::ExecutionStatus;
use rules::refusal::Refusal;
use store::SessionRecord;
use tokio::sync::{Notify, watch};

use crate::frames::{Frames, Link};
use crate::intake::Tail;
use crate::log::{Kept, WithLog, WithoutLog};
use crate::rest::Watchers;
use crate::server::VerifiedServer;
use crate::shared::Shared;
use crate::state::{Returning, State};

/// A session. Mutations hold [`Session::lock`]; reads of the log hold [`Session::reading`].
pub(crate) struct Session {
    id: SessionId,
    workspace: PathBuf,
    shared: Arc<Shared>,
    /// The same for every life of the conversation: a session that is closed and attached again waits for what is under way.
    pub(crate) lock: Arc<tokio::sync::Mutex<()>>,
    pub(crate) reading: tokio::sync::Mutex<()>,
    /// Held while the consequences of a read are drawn.
    pub(crate) consequences: tokio::sync::Mutex<()>,
    /// Held while the session is put on a server.
    pub(crate) binding: tokio::sync::Mutex<()>,
    /// Held while the journal is written.
    pub(crate) intake: tokio::sync::Mutex<Tail>,
    frames: Arc<Frames>,
    watchers: Arc<Watchers>,
    kept: Mutex<Kept>,
    /// Counts changes that a waiting reader may want to see.
    changes: watch::Sender<u64>,
    stale: Arc<Notify>,
    is_stale: AtomicBool,
    /// A queued prompt is being delivered.
    pub(crate) delivering: AtomicBool,
}

impl Session {
    pub(crate) fn new(shared: &Arc<Shared>, id: SessionId, record: SessionRecord, sent: BTreeSet<String>) -> Arc<Self> {
        let lock = shared.operation_lock(id.as_str());
        Arc::new(Self {
            id,
            workspace: PathBuf::from(&record.workspace),
            shared: Arc::clone(shared),
            lock,
            reading: tokio::sync::Mutex::new(()),
            consequences: tokio::sync::Mutex::new(()),
            binding: tokio::sync::Mutex::new(()),
            intake: tokio::sync::Mutex::new(Tail::new()),
            frames: Arc::new(Frames::new()),
            watchers: Arc::new(Watchers::new()),
            kept: Mutex::new(Kept::new(State::new(shared, record, sent))),
            changes: watch::Sender::new(0),
            stale: Arc::new(Notify::new()),
            is_stale: AtomicBool::new(false),
            delivering: AtomicBool::new(false),
        })
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// What the live stream brought.
    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    pub(crate) fn shared_frames(&self) -> Arc<Frames> {
        Arc::clone(&self.frames)
    }

    /// Who looks.
    pub(crate) fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    pub(crate) fn shared_watchers(&self) -> Arc<Watchers> {
        Arc::clone(&self.watchers)
    }

    /// The state, for a moment. Takes the log up again when it is set aside, which reads a file.
    pub(crate) fn state(&self) -> WithLog<'_> {
        self.current().take_up(&self.shared, self.id.as_str())
    }

    /// The state but for the log, for a moment.
    pub(crate) fn current(&self) -> WithoutLog<'_> {
        WithoutLog::of(self.kept())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits for something new.
    pub(crate) fn announce_change(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// For waiting until something changes.
    pub(crate) fn watch_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The log has more than was read.
    pub(crate) fn mark_stale(&self) {
        self.is_stale.store(true, Ordering::Release);
        self.stale.notify_one();
    }

    /// Whether the stream told of something that was not read yet; a read that begins now answers for it.
    pub(crate) fn take_stale(&self) -> bool {
        self.is_stale.swap(false, Ordering::AcqRel)
    }

    /// For a view of the session: reads when the stream told of something, or cannot tell. A failed read leaves the view
    /// as it is.
    pub(crate) async fn catch_up(self: &Arc<Self>) {
        let server = self.state().server.clone();
        if let Some(server) = server
            && (self.take_stale() || self.frames.link() != Link::Open)
            && let Err(refusal) = self.pull(&server).await
        {
            tracing::debug!(session = self.id().as_str(), %refusal, "the log could not be read");
        }
    }

    pub(crate) fn stale_signal(&self) -> Arc<Notify> {
        Arc::clone(&self.stale)
    }

    /// Whether this is still the server the session is on, and the session is open.
    pub(crate) fn follows(&self, server: &Arc<VerifiedServer>) -> bool {
        let state = self.current();
        !state.closed && state.server.as_ref().is_some_and(|current| Arc::ptr_eq(current, server))
    }

    /// Whether the session is to come back by itself.
    pub(crate) fn returning(&self) -> Option<Returning> {
        let state = self.current();
        state.returning.filter(|_| !state.closed)
    }

    /// Why the session is on no server, or that nothing stands in the way any more. One that is on a server stays as it is.
    pub(crate) fn note_unreachable(&self, refusal: Option<Refusal>) {
        {
            let state = self.current();
            if state.closed || state.server.is_some() {
                return;
            }
            let mut state = state.take_up(&self.shared, self.id.as_str());
            state.unreachable = refusal;
            state.refresh_generation(self.id().as_str());
        }
        self.announce_change();
    }

    /// Whether an operation is carried out, a turn goes on, a decision is open or a prompt waits.
    pub(crate) fn is_busy(&self) -> bool {
        // Whoever holds the lock is about to use the server, or does.
        if self.lock.try_lock().is_err() {
            return true;
        }
        let state = self.current();
        !state.quiet.is_quiet()
            || state.status == ExecutionStatus::Running
            || !state.open_decisions.is_empty()
            || !state.unresolved.is_empty()
            || !state.queue.is_empty()
    }
}
