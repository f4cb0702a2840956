//! The real controller behind the surface. Inherent methods are called by path, so that nothing calls itself.

use rules::refusal::Refusal;
use rules::role::Roles;
use session::Supervisor;
use session::view::{
    ActionRequest, Approval, AttachSession, Attestation, AuditPage, Caller, CreateSession, CreatedToken, EventPage,
    ProbeView, Readiness, ReceiptView, RefusedRequest, SessionSnapshot, SessionSummary, StatusView, TokenView,
    Verification,
};
use tokio::sync::watch;

use crate::backend::Backend;

impl Backend for Supervisor {
    fn authenticate(&self, bearer: &str) -> Option<Caller> {
        Supervisor::authenticate(self, bearer)
    }

    fn token_changes(&self) -> watch::Receiver<()> {
        Supervisor::token_changes(self)
    }

    async fn readiness(&self) -> Readiness {
        Supervisor::readiness(self).await
    }

    fn generation(&self, session_id: &str) -> Option<u64> {
        Supervisor::generation(self, session_id)
    }

    async fn status(&self) -> StatusView {
        Supervisor::status(self).await
    }

    async fn probe(&self) -> ProbeView {
        Supervisor::probe(self).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, Refusal> {
        Ok(Supervisor::sessions(self).await)
    }

    async fn create_session(
        &self,
        caller: &Caller,
        request: CreateSession,
    ) -> Result<(SessionSnapshot, bool), Refusal> {
        Supervisor::create_session(self, caller, request).await
    }

    async fn attach_session(&self, caller: &Caller, request: AttachSession) -> Result<SessionSnapshot, Refusal> {
        Supervisor::attach_session(self, caller, request).await
    }

    async fn close_session(&self, caller: &Caller, session_id: &str, delete: bool) -> Result<(), Refusal> {
        Supervisor::close_session(self, caller, session_id, delete).await
    }

    async fn snapshot(&self, session_id: &str) -> Result<SessionSnapshot, Refusal> {
        Supervisor::snapshot(self, session_id).await
    }

    async fn approvals(&self, session_id: &str) -> Result<Vec<Approval>, Refusal> {
        Supervisor::approvals(self, session_id).await
    }

    async fn approval(
        &self,
        caller: &Caller,
        session_id: &str,
        approval_id: &str,
        full: bool,
    ) -> Result<Approval, Refusal> {
        Supervisor::approval(self, caller, session_id, approval_id, full).await
    }

    async fn act(&self, caller: &Caller, request: ActionRequest) -> Result<ReceiptView, Refusal> {
        Supervisor::act(self, caller, request).await
    }

    async fn receipt(&self, client_action_id: &str) -> Result<ReceiptView, Refusal> {
        Supervisor::receipt(self, client_action_id).await
    }

    async fn events(
        &self,
        session_id: &str,
        after: Option<&str>,
        limit: usize,
        wait_ms: u64,
    ) -> Result<EventPage, Refusal> {
        Supervisor::events(self, session_id, after, limit, wait_ms).await
    }

    async fn attestation(&self, session_id: &str) -> Result<Attestation, Refusal> {
        Supervisor::attestation(self, session_id).await
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<AuditPage, Refusal> {
        Supervisor::audit(self, after, limit).await
    }

    async fn verify_audit(&self) -> Result<Verification, Refusal> {
        Supervisor::verify_audit(self).await
    }

    async fn tokens(&self) -> Result<Vec<TokenView>, Refusal> {
        Ok(Supervisor::tokens(self))
    }

    async fn create_token(&self, name: &str, roles: Roles) -> Result<CreatedToken, Refusal> {
        Supervisor::create_token(self, name, roles).await
    }

    async fn revoke_token(&self, name: &str) -> Result<TokenView, Refusal> {
        Supervisor::revoke_token(self, name).await
    }

    async fn note_refusal(&self, refused: RefusedRequest) {
        Supervisor::note_refusal(self, refused).await;
    }
}
