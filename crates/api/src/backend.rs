//! What the surface asks of the controller.

use std::future::Future;

use rules::refusal::Refusal;
use rules::role::Roles;
use session::view::{
    ActionRequest, Approval, AttachSession, Attestation, AuditPage, Caller, CreateSession, CreatedToken, EventPage,
    ProbeView, Readiness, ReceiptView, RefusedRequest, SessionSnapshot, SessionSummary, StatusView, TokenView,
    Verification,
};
use tokio::sync::watch;

/// The controller as the surface sees it; cheap to clone.
///
/// Every future is run on a task of its own. One that changes something is never dropped because its client hung up.
pub trait Backend: Clone + Send + Sync + 'static {
    /// Who holds this token, if anyone does. Must not tell tokens apart by time.
    fn authenticate(&self, bearer: &str) -> Option<Caller>;
    /// Tells of each change to what [`Self::authenticate`] takes.
    fn token_changes(&self) -> watch::Receiver<()>;
    /// Whether sessions are taken.
    fn readiness(&self) -> impl Future<Output = Readiness> + Send;
    /// The session's current capability generation, if the session is known.
    fn generation(&self, session_id: &str) -> Option<u64>;
    /// One look at everything.
    fn status(&self) -> impl Future<Output = StatusView> + Send;
    /// Availability and set-up actions.
    fn probe(&self) -> impl Future<Output = ProbeView> + Send;
    /// All sessions.
    fn sessions(&self) -> impl Future<Output = Result<Vec<SessionSummary>, Refusal>> + Send;
    /// Creates a session, or returns the one that this id already names (then `false`).
    fn create_session(
        &self,
        caller: &Caller,
        request: CreateSession,
    ) -> impl Future<Output = Result<(SessionSnapshot, bool), Refusal>> + Send;
    /// Takes up a conversation that the server has.
    fn attach_session(
        &self,
        caller: &Caller,
        request: AttachSession,
    ) -> impl Future<Output = Result<SessionSnapshot, Refusal>> + Send;
    /// Closes a session, and removes its conversation with `delete`.
    fn close_session(
        &self,
        caller: &Caller,
        session_id: &str,
        delete: bool,
    ) -> impl Future<Output = Result<(), Refusal>> + Send;
    /// What may be done with a session now.
    fn snapshot(&self, session_id: &str) -> impl Future<Output = Result<SessionSnapshot, Refusal>> + Send;
    /// What waits for a decision.
    fn approvals(&self, session_id: &str) -> impl Future<Output = Result<Vec<Approval>, Refusal>> + Send;
    /// One batch; `full` truncates nothing and is remembered for this caller.
    fn approval(
        &self,
        caller: &Caller,
        session_id: &str,
        approval_id: &str,
        full: bool,
    ) -> impl Future<Output = Result<Approval, Refusal>> + Send;
    /// Carries out an operation, waiting a bounded time for its end.
    fn act(&self, caller: &Caller, request: ActionRequest)
    -> impl Future<Output = Result<ReceiptView, Refusal>> + Send;
    /// A receipt again.
    fn receipt(&self, client_action_id: &str) -> impl Future<Output = Result<ReceiptView, Refusal>> + Send;
    /// Events after a cursor: at once when there are any, else after at most `wait_ms`.
    fn events(
        &self,
        session_id: &str,
        after: Option<&str>,
        limit: usize,
        wait_ms: u64,
    ) -> impl Future<Output = Result<EventPage, Refusal>> + Send;
    /// The signed word on a session's canaries.
    fn attestation(&self, session_id: &str) -> impl Future<Output = Result<Attestation, Refusal>> + Send;
    /// Links of the chain of receipts.
    fn audit(&self, after: u64, limit: usize) -> impl Future<Output = Result<AuditPage, Refusal>> + Send;
    /// Walks the whole chain.
    fn verify_audit(&self) -> impl Future<Output = Result<Verification, Refusal>> + Send;
    /// All tokens, without what they are.
    fn tokens(&self) -> impl Future<Output = Result<Vec<TokenView>, Refusal>> + Send;
    /// Makes a token of a valid name.
    fn create_token(&self, name: &str, roles: Roles) -> impl Future<Output = Result<CreatedToken, Refusal>> + Send;
    /// Ends a token.
    fn revoke_token(&self, name: &str) -> impl Future<Output = Result<TokenView, Refusal>> + Send;
    /// Enters a request that could have changed something and was refused, before the refusal is answered.
    fn note_refusal(&self, refused: RefusedRequest) -> impl Future<Output = ()> + Send;
}
