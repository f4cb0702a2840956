//! A controller that remembers what it was asked and answers simple things.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::Backend;
use rules::catalog::OperationInput;
use rules::refusal::{Refusal, RefusalCode};
use rules::role::{Role, Roles};
use rules::standing::DaemonState;
use serde_json::{Value, json};
use session::view::{
    ActionRequest, Approval, AttachSession, Attestation, AuditEntry, AuditPage, BrokenLink, Caller, CreateSession,
    CreatedToken, EventPage, EventView, Finding, ProbeView, Readiness, ReceiptView, RefusedRequest, Resync,
    SessionSnapshot, SessionSummary, SetupAction, StatusView, TokenView, Verification,
};
use tokio::sync::{Notify, watch};

use super::canned::{approval, receipt, snapshot, summary};
use super::{APPROVAL, GENERATION, OWNER, SESSION};

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
    changes: watch::Sender<()>,
    refused: Mutex<Vec<RefusedRequest>>,
}

impl Fake {
    /// What was asked so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.inner.calls.lock().unwrap().clone()
    }

    /// Refusals that were entered so far.
    pub(crate) fn refused(&self) -> Vec<RefusedRequest> {
        self.inner.refused.lock().unwrap().clone()
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
        self.inner.changes.send_replace(());
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

fn token(name: &str, roles: Roles) -> TokenView {
    TokenView { name: name.into(), roles, created_at: "a".into(), revoked_at: None }
}

fn known(session_id: &str) -> Result<(), Refusal> {
    if session_id == SESSION {
        return Ok(());
    }
    Err(Refusal::new(RefusalCode::SessionNotFound, "no such session"))
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

    fn token_changes(&self) -> watch::Receiver<()> {
        self.inner.changes.subscribe()
    }

    async fn readiness(&self) -> Readiness {
        let refusal = Refusal::new(RefusalCode::ServerNotInstalled, "install it");
        Readiness { ready: false, reasons: vec![Finding::of(refusal)] }
    }

    fn generation(&self, session_id: &str) -> Option<u64> {
        known(session_id).ok().map(|()| GENERATION)
    }

    async fn status(&self) -> StatusView {
        self.note("status");
        StatusView {
            state: DaemonState::Degraded,
            gatepost_version: "0".into(),
            pid: 1,
            contract_version: "1.40.0".into(),
            installed: None,
            servers: vec![],
            spare: None,
            sessions: vec![summary()],
            confinement_level: "weak".into(),
            confinement_missing: vec![],
            confinement_notes: vec![],
            findings: vec![],
            notes: vec![],
        }
    }

    async fn probe(&self) -> ProbeView {
        self.note("probe");
        let action = SetupAction { id: "install".into(), command: "gatepost server install".into(), needed: true };
        ProbeView { available: false, reasons: vec![], setup_actions: vec![action] }
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, Refusal> {
        self.note("sessions");
        Ok(vec![summary()])
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

    async fn audit(&self, after: u64, limit: usize) -> Result<AuditPage, Refusal> {
        self.note(format!("audit {after} {limit}"));
        let entry =
            AuditEntry { n: after + 1, at: "a".into(), digest: "ab".repeat(32), entry: json!({"kind": "ledger"}) };
        Ok(AuditPage {
            entries: vec![entry],
            next_after: after + 1,
            head_n: 9,
            head_digest: "ab".repeat(32),
            signature: "c2ln".into(),
            public_key: "a2V5".into(),
        })
    }

    async fn verify_audit(&self) -> Result<Verification, Refusal> {
        self.note("verify");
        let broken = BrokenLink { n: 3, fault: "gap", detail: "it is missing".into() };
        Ok(Verification { links: 2, rows: 0, broken: Some(broken) })
    }

    async fn tokens(&self) -> Result<Vec<TokenView>, Refusal> {
        self.note("tokens");
        Ok(vec![token("desktop", Roles::of(&[Role::Operator]))])
    }

    async fn create_token(&self, name: &str, roles: Roles) -> Result<CreatedToken, Refusal> {
        self.note(format!("create token {name} {roles}"));
        Ok(CreatedToken { view: token(name, roles), token: host::Secret::new("gatepost_new".into()) })
    }

    async fn revoke_token(&self, name: &str) -> Result<TokenView, Refusal> {
        self.note(format!("revoke token {name}"));
        Err(Refusal::new(RefusalCode::TokenNotFound, "no such token"))
    }

    async fn note_refusal(&self, refused: RefusedRequest) {
        self.inner.refused.lock().unwrap().push(refused);
    }
}
