//! The controller's face: what the API asks for.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use host::Secret;
use host::secret::constant_time_eq;
use rules::approval::Detail;
use rules::refusal::{Refusal, RefusalCode};
use rules::role::{Role, Roles, authorize};

use crate::servers::Servers;
use crate::session::Session;
use crate::shared::{Dependencies, OpenRecords, Shared};
use crate::state::Returning;
use crate::view::{Approval, Attestation, Caller, ReceiptView, SessionSnapshot, SessionSummary};
use crate::{records, workspace};

/// Name under which the owner's token acts.
const OWNER: &str = rules::token::OWNER_NAME;
/// Receipts that wait to be closed; any more are closed by the next start.
const MAX_UNCLOSED: usize = 1024;

/// The owner, when this is the owner's token; compared in constant time.
#[must_use]
pub fn owner(token: &Secret, bearer: &str) -> Option<Caller> {
    constant_time_eq(token.expose().as_bytes(), bearer.as_bytes())
        .then(|| Caller { name: OWNER.to_owned(), roles: Roles::OWNER })
}

/// The controller. Cheap to clone.
#[derive(Clone)]
pub struct Supervisor {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) servers: Arc<Servers>,
    /// Keys whose first call has no durable intent yet.
    pub(crate) claimed: Mutex<HashSet<String>>,
    /// Held while the chain of receipts is walked.
    pub(crate) verifying: tokio::sync::Mutex<()>,
    /// Receipts of operations that failed and could not be closed, with why they failed.
    unclosed: Mutex<BTreeMap<String, Refusal>>,
    /// Something is to be recorded later.
    pub(crate) owes: tokio::sync::Notify,
    stopping: std::sync::atomic::AtomicBool,
}

impl Supervisor {
    /// Ends what servers of a killed daemon left, takes up what the ledger holds, and is ready for requests. Servers of
    /// sessions with something that waits to be done are started in the background.
    ///
    /// # Errors
    /// When the ledger cannot be read, or the kernel gives no randomness.
    pub async fn start(dependencies: Dependencies, records: OpenRecords) -> Result<Self, Refusal> {
        let shared = Shared::new(dependencies, records)
            .map_err(|error| Refusal::new(RefusalCode::Internal, format!("the kernel gives no randomness: {error}")))?;
        let shared = Arc::new(shared);
        let servers = Servers::new(&shared);
        let supervisor = Self {
            inner: Arc::new(Inner {
                shared,
                servers: Arc::clone(&servers),
                claimed: Mutex::new(HashSet::new()),
                verifying: tokio::sync::Mutex::new(()),
                unclosed: Mutex::default(),
                owes: tokio::sync::Notify::new(),
                stopping: std::sync::atomic::AtomicBool::new(false),
            }),
        };
        supervisor.end_leftovers().await;
        supervisor.take_up_tokens().await?;
        supervisor.take_up_sessions().await?;
        supervisor.close_interrupted_receipts().await?;
        supervisor.find_returning_sessions().await?;
        tokio::spawn(Arc::clone(&servers).keep());
        tokio::spawn(Arc::clone(&servers).keep_spare());
        tokio::spawn(servers.stop_idle());
        tokio::spawn(supervisor.clone().tend_records());
        Ok(supervisor)
    }

    /// INVARIANT I8: whatever an earlier daemon could not end is gone before this one answers.
    async fn end_leftovers(&self) {
        let state_dir = self.shared().settings.paths.state_dir.clone();
        match tokio::task::spawn_blocking(move || process::launch::end_leftovers(&state_dir)).await {
            Ok(0) => {}
            Ok(ended) => tracing::warn!(ended, "processes that servers of an earlier daemon left were ended"),
            Err(error) => tracing::error!(%error, "what servers of an earlier daemon left was not looked for"),
        }
    }

    async fn take_up_sessions(&self) -> Result<(), Refusal> {
        let records = self.shared().records.ledger(store::Ledger::sessions).await?;
        for record in records.into_iter().filter(|record| record.closed_at_ms.is_none()) {
            let id = agent_contract::SessionId::parse(&record.session_id)
                .map_err(|error| Refusal::new(RefusalCode::StoreFailed, error.to_string()))?;
            self.shared().enter(Session::new(self.shared(), id, record, BTreeSet::new()));
        }
        Ok(())
    }

    /// A queued prompt is to be delivered, and a step without an answer to be looked into, without anyone asking.
    async fn find_returning_sessions(&self) -> Result<(), Refusal> {
        for session in self.shared().sessions() {
            let id = session.id().as_str().to_owned();
            let accepts = self.shared().records.ledger(move |ledger| ledger.accepts(&id)).await?;
            let unanswered = accepts.iter().any(|accept| accept.state == store::AcceptState::Sent);
            let mut state = session.state();
            if unanswered || !state.unresolved.is_empty() || !state.queue.is_empty() {
                state.returning = Some(Returning::new(false));
            }
        }
        Ok(())
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.inner.stopping.load(std::sync::atomic::Ordering::Acquire)
    }

    /// The session's capability generation, if the session is known.
    #[must_use]
    pub fn generation(&self, session_id: &str) -> Option<u64> {
        self.shared().session(session_id).map(|session| {
            let mut state = session.state();
            state.refresh_generation(session_id);
            state.generation
        })
    }

    /// Every session.
    pub async fn sessions(&self) -> Vec<SessionSummary> {
        let line = |session: &Arc<Session>| session.summary(self.inner.servers.standing(session.workspace()));
        self.shared().sessions().iter().map(line).collect()
    }

    /// A session that somebody looks at or is about to change.
    pub(crate) fn find(&self, session_id: &str) -> Result<Arc<Session>, Refusal> {
        let session = self.shared().session(session_id).ok_or_else(|| {
            Refusal::new(RefusalCode::SessionNotFound, format!("there is no session {session_id}; list the sessions"))
        })?;
        session.note_look();
        Ok(session)
    }

    /// A session as it is now: put on a server when it is on none, and read when the stream told of something.
    async fn current(&self, session_id: &str) -> Result<Arc<Session>, Refusal> {
        let session = self.find(session_id)?;
        let unbound = session.state().server.is_none();
        if unbound && !self.is_stopping() {
            let (supervisor, bound) = (self.clone(), Arc::clone(&session));
            // On a task of its own: a reader that hangs up does not stop a server half started.
            let task = crate::request::spawn(async move { supervisor.server_of(&bound).await.map(|_| ()) });
            let outcome = task.await.map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))?;
            session.state().unreachable = outcome.err();
        }
        session.catch_up().await;
        Ok(session)
    }

    /// What may be done with a session now. Starts the session's server when it is not up.
    ///
    /// # Errors
    /// `session_not_found`, `store_failed`.
    pub async fn snapshot(&self, session_id: &str) -> Result<SessionSnapshot, Refusal> {
        let session = self.current(session_id).await?;
        let cursor = self.head_cursor(&session).await?;
        Ok(session.snapshot(cursor, self.inner.servers.standing(session.workspace())))
    }

    /// What waits for a decision: one batch, or none.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn approvals(&self, session_id: &str) -> Result<Vec<Approval>, Refusal> {
        let session = self.current(session_id).await?;
        Ok(session.show_approval(Detail::Bounded).await.into_iter().collect())
    }

    /// One batch. `full` truncates nothing, lifts redaction by name, and is remembered for this token.
    ///
    /// # Errors
    /// `session_not_found`, `not_permitted`, `approval_not_found`, `approval_superseded`.
    pub async fn approval(
        &self,
        caller: &Caller,
        session_id: &str,
        approval_id: &str,
        full: bool,
    ) -> Result<Approval, Refusal> {
        if full {
            authorize(caller.roles, Role::Approver)?;
        }
        let session = self.current(session_id).await?;
        let shown = session.show_approval(if full { Detail::Full } else { Detail::Bounded }).await;
        match shown {
            Some(approval) if approval.approval_id == approval_id => {
                if full {
                    session.state().book.note_shown_in_full(approval_id, &caller.name);
                }
                Ok(approval)
            }
            Some(_) | None if session.state().book.find(approval_id).is_some() => {
                Err(Refusal::new(RefusalCode::ApprovalSuperseded, "this batch waits no more; list the approvals again"))
            }
            Some(_) | None => {
                Err(Refusal::new(RefusalCode::ApprovalNotFound, "no batch of this approval id was offered"))
            }
        }
    }

    /// A receipt again.
    ///
    /// # Errors
    /// `action_not_found`, `store_failed`.
    pub async fn receipt(&self, client_action_id: &str) -> Result<ReceiptView, Refusal> {
        rules::catalog::validate_client_action_id(client_action_id)?;
        let record = self.shared().records.receipt(client_action_id).await?.ok_or_else(|| {
            Refusal::new(RefusalCode::ActionNotFound, format!("no action {client_action_id} was recorded"))
        })?;
        Ok(records::view(&record, true))
    }

    /// The signed word on a session's canaries.
    ///
    /// # Errors
    /// `session_not_found`, `server_unavailable`.
    pub async fn attestation(&self, session_id: &str) -> Result<Attestation, Refusal> {
        let session = self.find(session_id)?;
        let server = session.state().server.clone();
        if let Some(server) = server {
            session.observe(&server).await?;
        }
        session.attest()
    }

    /// From here on these are the digests of workspace content that does not block. Blocked sessions follow at the next look
    /// at them.
    pub fn set_reviewed_content(&self, digests: Vec<String>) {
        self.inner.shared.set_reviewed_content(digests);
    }

    /// Ends everything; says how many processes are left.
    pub async fn shutdown(&self) -> usize {
        self.inner.stopping.store(true, std::sync::atomic::Ordering::Release);
        let left = self.inner.servers.stop_all().await;
        self.inner.servers.ends_noted().await;
        left
    }

    /// Receipts that are to be closed once that can be recorded.
    pub(crate) fn unclosed(&self) -> BTreeMap<String, Refusal> {
        self.inner.unclosed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note_unclosed(&self, client_action_id: &str, why: &Refusal) {
        let mut unclosed = self.inner.unclosed.lock().unwrap_or_else(PoisonError::into_inner);
        if unclosed.len() < MAX_UNCLOSED {
            unclosed.insert(client_action_id.to_owned(), why.clone());
        }
        drop(unclosed);
        self.note_owed();
    }

    /// Something is to be recorded as soon as that is possible.
    pub(crate) fn note_owed(&self) {
        self.inner.owes.notify_one();
    }

    pub(crate) fn forget_unclosed(&self, client_action_id: &str) {
        self.inner.unclosed.lock().unwrap_or_else(PoisonError::into_inner).remove(client_action_id);
    }

    /// Keeps two first calls of one key apart until the first has its intent.
    pub(crate) fn claim(&self, client_action_id: &str) -> Result<Claim, Refusal> {
        let mut claimed = self.inner.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        if !claimed.insert(client_action_id.to_owned()) {
            let detail = format!("action {client_action_id} is being recorded; ask for its receipt in a moment");
            return Err(Refusal::new(RefusalCode::ActionInFlight, detail));
        }
        Ok(Claim { supervisor: self.clone(), client_action_id: client_action_id.to_owned() })
    }
}

/// A key that is being recorded.
pub(crate) struct Claim {
    supervisor: Supervisor,
    client_action_id: String,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = self.supervisor.inner.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.remove(&self.client_action_id);
    }
}

/// The configured roots as the kernel resolves them; one that does not exist is left out.
pub(crate) fn resolved_roots(shared: &Shared) -> Vec<String> {
    let resolved = shared.settings.workspaces.resolve().into_iter().filter_map(|root| root.resolved.ok());
    resolved.map(|path| path.to_string_lossy().into_owned()).collect()
}

/// The workspace of a request, resolved and within the roots.
pub(crate) fn resolve_workspace(shared: &Shared, requested: &str) -> Result<std::path::PathBuf, Refusal> {
    if Path::new(requested).as_os_str().len() > 4096 {
        return Err(Refusal::new(RefusalCode::TooLong, "`workspace` is longer than 4096 bytes"));
    }
    workspace::resolve(requested, &resolved_roots(shared))
}
