//! One session: what is known of its conversation, and the lock under which it is changed.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_contract::{ConversationInfo, SessionId};
use rules::approval::ApprovalBook;
use rules::canary::CanaryResult;
use rules::log::ExecutionStatus;
use rules::quiet::QuietTracker;
use rules::refusal::Refusal;
use rules::tripwire::KnownExempt;
use serde_json::Value;
use store::{NewEvent, ReceiptRecord, SessionRecord};
use tokio::sync::{Notify, watch};

use crate::frames::{Frames, Link};
use crate::generations::Generations;
use crate::intake::Tail;
use crate::mirror::Mirror;
use crate::named_files::PinnedFiles;
use crate::offer::Waiting;
use crate::rest::Watchers;
use crate::server::VerifiedServer;
use crate::shared::Shared;
use crate::tripped::Tripped;

/// Prompts that may wait in one session.
pub(crate) const MAX_QUEUED_PROMPTS: usize = 32;

/// A prompt that waits for the agent to be quiet. Its text stands in the ledger.
#[derive(Debug, Clone)]
pub(crate) struct QueuedPrompt {
    pub(crate) client_action_id: String,
    pub(crate) text: String,
}

/// An accept that was sent and whose evidence has not been seen.
#[derive(Debug, Clone)]
pub(crate) struct OpenDecision {
    pub(crate) client_action_id: String,
    pub(crate) approval_id: String,
    pub(crate) event_ids: Vec<String>,
    pub(crate) server_start_id: String,
    /// The accept certainly never left, for this reason: that is to be recorded.
    pub(crate) not_sent: Option<Refusal>,
}

/// A session that is put on a server again by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Returning {
    /// Its server ended without being asked to; else the daemon was started anew.
    pub(crate) restarted: bool,
    /// How often it could not be put on its server.
    pub(crate) tries: u32,
    /// Not before, on the clock of the servers' keeper.
    pub(crate) not_before_ms: u64,
}

impl Returning {
    pub(crate) fn new(restarted: bool) -> Self {
        Self { restarted, tries: 0, not_before_ms: 0 }
    }
}

/// Everything that changes. Held for moments only, never across a wait.
pub(crate) struct State {
    pub(crate) record: SessionRecord,
    pub(crate) mirror: Mirror,
    /// What was read behind it and could not be journaled: it counts for nothing but the tripwire.
    pub(crate) unjournaled: Mirror,
    /// The server's head: of the last read, moved on by every branch event since.
    pub(crate) leaf: Option<String>,
    /// The last read of the conversation.
    pub(crate) info: Option<ConversationInfo>,
    /// The newest status of the log, or of a later read.
    pub(crate) status: ExecutionStatus,
    pub(crate) quiet: QuietTracker,
    pub(crate) canaries: Vec<CanaryResult>,
    /// Set while something stands observed that nobody accepted, and the owner has not acknowledged it.
    pub(crate) tripped: Option<Tripped>,
    /// Why the session is on no server, when putting it on one failed.
    pub(crate) unreachable: Option<Refusal>,
    pub(crate) book: ApprovalBook,
    /// The waiting batch that readers were told of last.
    pub(crate) announced: Option<Waiting>,
    /// The files that the waiting batch names, as first seen.
    pub(crate) pinned_files: PinnedFiles,
    /// Every action whose accept was ever sent.
    pub(crate) sent: BTreeSet<String>,
    /// Events that were there before gatepost watched.
    pub(crate) baseline: BTreeSet<String>,
    /// Observations that need no accept, found so far.
    pub(crate) known_exempt: KnownExempt,
    pub(crate) open_decisions: Vec<OpenDecision>,
    /// Receipts of steps that were sent and got no answer: the next read shows what came of them, or that it cannot be told.
    pub(crate) unresolved: Vec<ReceiptRecord>,
    pub(crate) queue: VecDeque<QueuedPrompt>,
    /// Events of gatepost's own that could not be journaled so far.
    pub(crate) owed: VecDeque<NewEvent>,
    /// The newest usage figures of the log, redacted.
    pub(crate) usage: Value,
    pub(crate) generations: Arc<Generations>,
    pub(crate) generation: u64,
    pub(crate) generation_basis: String,
    pub(crate) observed_at_ms: i64,
    pub(crate) server: Option<Arc<VerifiedServer>>,
    /// Set while the session is on no server and is to come back by itself.
    pub(crate) returning: Option<Returning>,
    pub(crate) closed: bool,
    /// It is being closed: nothing goes out any more.
    pub(crate) closing: bool,
    /// What stood in the log and the ledger before this daemon has been read.
    pub(crate) taken_up: bool,
    /// Counts interrupts: what was decided before one does not go out after it.
    pub(crate) interrupts: u64,
}

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
    state: Mutex<State>,
    /// Counts changes that a waiting reader may want to see.
    changes: watch::Sender<u64>,
    stale: Arc<Notify>,
    is_stale: AtomicBool,
    /// A queued prompt is being delivered.
    pub(crate) delivering: AtomicBool,
}

impl Session {
    pub(crate) fn new(shared: &Arc<Shared>, id: SessionId, record: SessionRecord, sent: BTreeSet<String>) -> Arc<Self> {
        let lifetime_ms = shared.settings.approval.expires_min.saturating_mul(60_000);
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
            state: Mutex::new(State {
                closed: record.closed_at_ms.is_some(),
                record,
                mirror: Mirror::default(),
                unjournaled: Mirror::default(),
                leaf: None,
                info: None,
                status: ExecutionStatus::Unknown,
                quiet: QuietTracker::new(),
                canaries: Vec::new(),
                tripped: None,
                unreachable: None,
                book: ApprovalBook::new(lifetime_ms),
                announced: None,
                pinned_files: PinnedFiles::default(),
                sent,
                baseline: BTreeSet::new(),
                known_exempt: KnownExempt::default(),
                open_decisions: Vec::new(),
                unresolved: Vec::new(),
                queue: VecDeque::new(),
                owed: VecDeque::new(),
                usage: Value::Null,
                generation: shared.generations.next(),
                generations: Arc::clone(&shared.generations),
                generation_basis: String::new(),
                observed_at_ms: 0,
                server: None,
                returning: None,
                closing: false,
                taken_up: false,
                interrupts: 0,
            }),
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

    /// The state, for a moment.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let state = self.state();
        !state.closed && state.server.as_ref().is_some_and(|current| Arc::ptr_eq(current, server))
    }

    /// Whether the session is to come back by itself.
    pub(crate) fn returning(&self) -> Option<Returning> {
        let state = self.state();
        state.returning.filter(|_| !state.closed)
    }

    /// Why the session is on no server, or that nothing stands in the way any more. One that is on a server stays as it is.
    pub(crate) fn note_unreachable(&self, refusal: Option<Refusal>) {
        {
            let mut state = self.state();
            if state.closed || state.server.is_some() {
                return;
            }
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
        let state = self.state();
        !state.quiet.is_quiet()
            || state.status == ExecutionStatus::Running
            || !state.open_decisions.is_empty()
            || !state.unresolved.is_empty()
            || !state.queue.is_empty()
    }
}
