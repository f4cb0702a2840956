//! What is known of one session: its log, and everything else.

use std::collections::{BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use agent_contract::ConversationInfo;
use rules::approval::ApprovalBook;
use rules::canary::CanaryResult;
use rules::log::ExecutionStatus;
use rules::quiet::QuietTracker;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::Value;
use store::{NewEvent, ReceiptRecord, SessionRecord};

use crate::generations::Generations;
use crate::log::KnownLog;
use crate::mirror::Mirror;
use crate::named_files::PinnedFiles;
use crate::offer::Waiting;
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
    pub(crate) log: KnownLog,
    pub(crate) current: Current,
}

/// Everything but the log, which is not at hand while the session rests.
pub(crate) struct Current {
    pub(crate) record: SessionRecord,
    /// What was read behind the known log and could not be journaled: it counts for nothing but the tripwire.
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
    /// Digest of what may be done at this generation.
    pub(crate) generation_basis: [u8; 32],
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

impl Deref for State {
    type Target = Current;

    fn deref(&self) -> &Current {
        &self.current
    }
}

impl DerefMut for State {
    fn deref_mut(&mut self) -> &mut Current {
        &mut self.current
    }
}

impl State {
    pub(crate) fn new(shared: &Shared, record: SessionRecord, sent: BTreeSet<String>) -> Self {
        let lifetime_ms = shared.settings.approval.expires_min.saturating_mul(60_000);
        let current = Current {
            closed: record.closed_at_ms.is_some(),
            record,
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
            open_decisions: Vec::new(),
            unresolved: Vec::new(),
            queue: VecDeque::new(),
            owed: VecDeque::new(),
            usage: Value::Null,
            generation: shared.generations.next(),
            generations: Arc::clone(&shared.generations),
            generation_basis: [0; 32],
            observed_at_ms: 0,
            server: None,
            returning: None,
            closing: false,
            taken_up: false,
            interrupts: 0,
        };
        Self { log: KnownLog::default(), current }
    }

    /// What was known of the log is lost, so nothing that rests on it may go on: the session is on no server, and is read
    /// anew, as after a start of the daemon, before it is on one again. The journal leaves out what it holds already.
    pub(crate) fn lose_log(&mut self, why: &std::io::Error) {
        self.log = KnownLog::default();
        let detail = format!("what was known of the session's log could not be read back ({why}); it is read anew");
        self.unreachable = Some(Refusal::new(RefusalCode::StoreFailed, detail));
        self.returning = Some(Returning::new(false));
        (self.server, self.info, self.leaf) = (None, None, None);
        self.unjournaled = Mirror::default();
        self.taken_up = false;
    }
}
