//! What answers on the socket from the first moment on: while the records are checked and when they are damaged it refuses,
//! and once the controller stands it is that.

use std::sync::{Arc, OnceLock};

use api::Backend;
use host::Secret;
use rules::refusal::{Refusal, RefusalCode};
use rules::role::Roles;
use rules::standing::{self, DaemonStanding, Phase};
use session::view::{
    ActionRequest, Approval, AttachSession, Attestation, AuditPage, Caller, CreateSession, CreatedToken, EventPage,
    Finding, ProbeView, Readiness, ReceiptView, RefusedRequest, SessionSnapshot, SessionSummary, StatusView, TokenView,
    Verification,
};
use session::{OpenRecords, Supervisor};
use tokio::sync::watch;

use super::open::VERSION;

/// The daemon as clients meet it. Cheap to clone.
#[derive(Clone)]
pub(super) struct Front {
    inner: Arc<Inner>,
}

struct Inner {
    owner_token: Arc<Secret>,
    contract_version: String,
    outcome: OnceLock<Outcome>,
}

/// How the start ended.
enum Outcome {
    Begun(Begun),
    Damaged(Finding),
}

/// What runs once the records were found good.
#[derive(Clone)]
pub(super) struct Begun {
    pub(super) supervisor: Supervisor,
    pub(super) records: OpenRecords,
}

impl Front {
    /// Nothing is known yet but who the owner is.
    pub(super) fn new(owner_token: Arc<Secret>, contract_version: &str) -> Self {
        let contract_version = contract_version.to_owned();
        Self { inner: Arc::new(Inner { owner_token, contract_version, outcome: OnceLock::new() }) }
    }

    /// From here on the controller answers.
    pub(super) fn begin(&self, begun: Begun) {
        self.inner.outcome.get_or_init(|| Outcome::Begun(begun));
    }

    /// From here on everything is refused, and why is told.
    pub(super) fn refuse(&self, finding: Finding) {
        self.inner.outcome.get_or_init(|| Outcome::Damaged(finding));
    }

    /// What runs, if anything does.
    pub(super) fn begun(&self) -> Option<&Begun> {
        match self.inner.outcome.get() {
            Some(Outcome::Begun(begun)) => Some(begun),
            Some(Outcome::Damaged(_)) | None => None,
        }
    }

    /// INVARIANT I10: nothing that needs a record is done before the records are known to be good.
    fn supervisor(&self) -> Result<&Supervisor, Refusal> {
        self.begun().map(|begun| &begun.supervisor).ok_or_else(|| {
            let standing = self.standing();
            let why = standing.hindrances().first().map(|finding| (finding.code, finding.detail.clone()));
            let (code, detail) = why.unwrap_or((RefusalCode::Internal, "nothing says why nothing is done".to_owned()));
            Refusal::new(code, detail)
        })
    }

    /// Where the daemon stands that did not begin, or not yet.
    fn standing(&self) -> DaemonStanding {
        match self.inner.outcome.get() {
            Some(Outcome::Damaged(finding)) => standing::daemon(Phase::Running, vec![finding.clone()], Vec::new()),
            Some(Outcome::Begun(_)) | None => standing::daemon(Phase::Checking, Vec::new(), Vec::new()),
        }
    }
}

impl Backend for Front {
    fn authenticate(&self, bearer: &str) -> Option<Caller> {
        match self.begun() {
            Some(begun) => begun.supervisor.authenticate(bearer),
            None => session::owner(&self.inner.owner_token, bearer),
        }
    }

    fn token_changes(&self) -> watch::Receiver<()> {
        // Before the controller stands the owner alone is known; the sender is dropped, and nothing changes.
        self.begun().map_or_else(|| watch::channel(()).1, |begun| begun.supervisor.token_changes())
    }

    async fn readiness(&self) -> Readiness {
        match self.begun() {
            Some(begun) => begun.supervisor.readiness().await,
            None => Readiness::of(&self.standing()),
        }
    }

    fn generation(&self, session_id: &str) -> Option<u64> {
        self.begun().and_then(|begun| begun.supervisor.generation(session_id))
    }

    async fn status(&self) -> StatusView {
        if let Some(begun) = self.begun() {
            return begun.supervisor.status().await;
        }
        let (standing, confinement) = (self.standing(), session::not_proved_yet());
        StatusView {
            state: standing.state,
            gatepost_version: VERSION.to_owned(),
            pid: std::process::id(),
            contract_version: self.inner.contract_version.clone(),
            installed: None,
            servers: Vec::new(),
            spare: None,
            sessions: Vec::new(),
            confinement_level: confinement.level.as_str().to_owned(),
            confinement_missing: confinement.missing,
            confinement_notes: confinement.notes,
            findings: standing.findings().cloned().collect(),
            notes: Vec::new(),
        }
    }

    async fn probe(&self) -> ProbeView {
        if let Some(begun) = self.begun() {
            return begun.supervisor.probe().await;
        }
        let Readiness { ready, reasons } = Readiness::of(&self.standing());
        ProbeView { available: ready, reasons, setup_actions: Vec::new() }
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, Refusal> {
        Ok(self.supervisor()?.sessions().await)
    }

    async fn create_session(
        &self,
        caller: &Caller,
        request: CreateSession,
    ) -> Result<(SessionSnapshot, bool), Refusal> {
        self.supervisor()?.create_session(caller, request).await
    }

    async fn attach_session(&self, caller: &Caller, request: AttachSession) -> Result<SessionSnapshot, Refusal> {
        self.supervisor()?.attach_session(caller, request).await
    }

    async fn close_session(&self, caller: &Caller, session_id: &str, delete: bool) -> Result<(), Refusal> {
        self.supervisor()?.close_session(caller, session_id, delete).await
    }

    async fn snapshot(&self, session_id: &str) -> Result<SessionSnapshot, Refusal> {
        self.supervisor()?.snapshot(session_id).await
    }

    async fn approvals(&self, session_id: &str) -> Result<Vec<Approval>, Refusal> {
        self.supervisor()?.approvals(session_id).await
    }

    async fn approval(
        &self,
        caller: &Caller,
        session_id: &str,
        approval_id: &str,
        full: bool,
    ) -> Result<Approval, Refusal> {
        self.supervisor()?.approval(caller, session_id, approval_id, full).await
    }

    async fn act(&self, caller: &Caller, request: ActionRequest) -> Result<ReceiptView, Refusal> {
        self.supervisor()?.act(caller, request).await
    }

    async fn receipt(&self, client_action_id: &str) -> Result<ReceiptView, Refusal> {
        self.supervisor()?.receipt(client_action_id).await
    }

    async fn events(
        &self,
        session_id: &str,
        after: Option<&str>,
        limit: usize,
        wait_ms: u64,
    ) -> Result<EventPage, Refusal> {
        self.supervisor()?.events(session_id, after, limit, wait_ms).await
    }

    async fn attestation(&self, session_id: &str) -> Result<Attestation, Refusal> {
        self.supervisor()?.attestation(session_id).await
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<AuditPage, Refusal> {
        self.supervisor()?.audit(after, limit).await
    }

    async fn verify_audit(&self) -> Result<Verification, Refusal> {
        self.supervisor()?.verify_audit().await
    }

    async fn tokens(&self) -> Result<Vec<TokenView>, Refusal> {
        Ok(self.supervisor()?.tokens())
    }

    async fn create_token(&self, name: &str, roles: Roles) -> Result<CreatedToken, Refusal> {
        self.supervisor()?.create_token(name, roles).await
    }

    async fn revoke_token(&self, name: &str) -> Result<TokenView, Refusal> {
        self.supervisor()?.revoke_token(name).await
    }

    async fn note_refusal(&self, refused: RefusedRequest) {
        if let Some(begun) = self.begun() {
            begun.supervisor.note_refusal(refused).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::standing::DaemonState;

    use super::*;

    fn front() -> Front {
        let directory = tempfile::tempdir().unwrap();
        let token = host::secure_fs::load_or_create_secret(&directory.path().join("t"), 32).unwrap();
        Front::new(Arc::new(token), "1.40.0")
    }

    #[tokio::test]
    async fn until_the_start_is_over_everything_is_refused_with_where_it_stands() {
        let front = front();
        let token = front.inner.owner_token.expose().to_owned();
        assert!(front.authenticate("other").is_none());
        let caller = front.authenticate(&token).unwrap();
        for (code, state) in
            [(RefusalCode::RecordsChecking, DaemonState::Starting), (RefusalCode::LedgerDamaged, DaemonState::Blocked)]
        {
            let readiness = front.readiness().await;
            assert!(!readiness.ready);
            assert_eq!(readiness.reasons[0].code, code);
            let status = front.status().await;
            assert_eq!((status.state, status.findings[0].code), (state, code));
            assert!(!status.state.takes_sessions() && readiness.reasons == status.findings);
            assert!(!front.probe().await.available);
            let refused = [
                front.sessions().await.map(drop),
                front.snapshot("s").await.map(drop),
                front.approvals("s").await.map(drop),
                front.approval(&caller, "s", "a", true).await.map(drop),
                front.close_session(&caller, "s", true).await,
                front.receipt("a").await.map(drop),
                front.events("s", None, 1, 0).await.map(drop),
                front.attestation("s").await.map(drop),
                front.audit(0, 1).await.map(drop),
                front.verify_audit().await.map(drop),
                front.tokens().await.map(drop),
                front.create_token("t", Roles::NONE).await.map(drop),
                front.revoke_token("t").await.map(drop),
            ];
            assert!(refused.iter().all(|one| one.as_ref().is_err_and(|refusal| refusal.code == code)), "{refused:?}");
            front.refuse(Finding { code: RefusalCode::LedgerDamaged, detail: "d".into(), remedy: "r".into() });
        }
    }
}
