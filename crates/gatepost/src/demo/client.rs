//! The demonstration as a client of its daemon: the socket's own requests, nothing more.

use std::path::Path;
use std::time::{Duration, Instant};

use api_types::{
    ActionRequest, Approval, ApprovalList, CreateSessionRequest, Event, EventPage, Readiness, Receipt, ReceiptState,
    SessionSnapshot, Status,
};
use cli::{Daemon, Failure};
use serde_json::Value;

use super::failed;

/// For a reply that is a look at something.
const READ: Duration = Duration::from_secs(30);
/// For a session to be created: a server is started for it first.
const START: Duration = Duration::from_secs(300);
/// For an operation to be answered and its receipt to be final.
const ACT: Duration = Duration::from_secs(90);
/// For the agent to get somewhere.
const TURN: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often an operation is decided again because the session moved on meanwhile.
const STALE_RETRIES: u32 = 5;
const PAGE_EVENTS: usize = 500;

/// The daemon, asked as its owner.
pub(super) struct Client {
    daemon: Daemon,
}

impl Client {
    pub(super) fn new(daemon: Daemon) -> Self {
        Self { daemon }
    }

    /// Whether the daemon can take a session.
    pub(super) async fn is_ready(&self) -> bool {
        let reply: Result<Readiness, Failure> = self.daemon.get("/v1/readyz", READ).await;
        reply.is_ok_and(|readiness| readiness.ready)
    }

    pub(super) async fn status(&self) -> Result<Status, Failure> {
        self.daemon.get("/v1/status", READ).await
    }

    pub(super) async fn create_session(&self, workspace: &Path, title: &str) -> Result<SessionSnapshot, Failure> {
        let request = CreateSessionRequest {
            workspace: workspace.to_string_lossy().into_owned(),
            title: Some(title.to_owned()),
            prompt: None,
            session_id: Some(uuid::Uuid::new_v4().to_string()),
        };
        self.daemon.post("/v1/sessions", &request, START).await
    }

    pub(super) async fn snapshot(&self, session_id: &str) -> Result<SessionSnapshot, Failure> {
        self.daemon.get(&format!("/v1/sessions/{session_id}"), READ).await
    }

    /// Asks for an operation, decided on what the session is now, and follows its receipt to the end.
    pub(super) async fn act(&self, session_id: &str, operation_id: &str, input: Value) -> Result<Receipt, Failure> {
        let client_action_id = uuid::Uuid::new_v4().to_string();
        let mut tries = 0;
        let first = loop {
            let snapshot = self.snapshot(session_id).await?;
            let request = ActionRequest {
                operation_id: operation_id.to_owned(),
                input: input.clone(),
                capability_generation: Some(snapshot.capability_generation),
                client_action_id: Some(client_action_id.clone()),
            };
            let target = format!("/v1/sessions/{session_id}/actions");
            let reply: Result<Receipt, Failure> = self.daemon.post(&target, &request, ACT).await;
            tries += 1;
            match reply {
                // Such a refusal leaves no receipt, and the key unused.
                Err(failure) if failure.code == "generation_stale" && tries < STALE_RETRIES => {}
                reply => break reply?,
            }
        };
        self.follow(first).await
    }

    /// As [`Self::act`], for what must be done.
    pub(super) async fn applied(&self, session_id: &str, operation_id: &str, input: Value) -> Result<Receipt, Failure> {
        let receipt = self.act(session_id, operation_id, input).await?;
        match receipt.state {
            ReceiptState::Applied => Ok(receipt),
            ReceiptState::Queued | ReceiptState::InFlight | ReceiptState::Rejected | ReceiptState::OutcomeUnknown => {
                let code = receipt.code.unwrap_or_default();
                let detail = receipt.detail.unwrap_or_default();
                Err(failed(format!("{operation_id} is {:?} ({code}): {detail}", receipt.state)))
            }
        }
    }

    async fn follow(&self, mut receipt: Receipt) -> Result<Receipt, Failure> {
        let began = Instant::now();
        // A queued prompt may wait for long; whoever asked decides what to make of it.
        while receipt.state == ReceiptState::InFlight && began.elapsed() < ACT {
            tokio::time::sleep(LOOK_EVERY).await;
            receipt = self.daemon.get(&format!("/v1/actions/{}", receipt.client_action_id), READ).await?;
        }
        Ok(receipt)
    }

    /// Waits until the session is as wanted.
    pub(super) async fn until(
        &self,
        session_id: &str,
        what: &str,
        wanted: impl Fn(&SessionSnapshot) -> bool,
    ) -> Result<SessionSnapshot, Failure> {
        let began = Instant::now();
        loop {
            let snapshot = self.snapshot(session_id).await?;
            if wanted(&snapshot) {
                return Ok(snapshot);
            }
            if let Some(reason) = &snapshot.blocked_reason {
                return Err(failed(format!("the session is blocked ({}): {}", reason.code, reason.detail)));
            }
            if began.elapsed() > TURN {
                let (status, pending) = (&snapshot.status, snapshot.pending_actions);
                return Err(failed(format!("{what} did not come: the session is {status}, {pending} actions pending")));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The one batch that waits, whole, as one that decides must see it.
    pub(super) async fn approval(&self, session_id: &str) -> Result<Approval, Failure> {
        let list: ApprovalList = self.daemon.get(&format!("/v1/sessions/{session_id}/approvals"), READ).await?;
        let [listed] = list.approvals.as_slice() else {
            return Err(failed(format!("{} batches wait, and one was expected", list.approvals.len())));
        };
        let target = format!("/v1/sessions/{session_id}/approvals/{}?full=true", listed.approval_id);
        self.daemon.get(&target, READ).await
    }

    /// Every event of the session so far.
    pub(super) async fn events(&self, session_id: &str) -> Result<Vec<Event>, Failure> {
        let mut events = Vec::new();
        let mut after = String::new();
        loop {
            let target = format!("/v1/sessions/{session_id}/events?limit={PAGE_EVENTS}{after}");
            let page: EventPage = self.daemon.get(&target, READ).await?;
            let ended = page.events.is_empty();
            events.extend(page.events);
            if ended {
                return Ok(events);
            }
            after = format!("&after={}", page.next_cursor);
        }
    }
}
