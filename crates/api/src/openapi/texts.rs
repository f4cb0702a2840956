//! What the description says of each endpoint.

use crate::routes::Endpoint;

/// Operation id, one sentence, and what a success says.
pub(super) const fn text(endpoint: Endpoint) -> (&'static str, &'static str, &'static str) {
    match endpoint {
        Endpoint::Healthz => ("healthz", "Whether the daemon answers.", "It is alive."),
        Endpoint::Readyz => ("readyz", "Whether the daemon can take a session.", "It can."),
        Endpoint::OpenApi => ("openapi", "This description.", "The description."),
        Endpoint::Status => ("status", "One look at everything, with a remedy for each finding.", "The status."),
        Endpoint::Probe => ("probe", "Whether a session could be started now, and set-up actions.", "Availability."),
        Endpoint::Catalog => ("catalog", "The reviewed operations with inputs, risk and role.", "The catalog."),
        Endpoint::SessionList => ("list_sessions", "All sessions.", "The sessions."),
        Endpoint::SessionCreate => (
            "create_session",
            "Creates a session; never attaches. The same `session_id` again is the same session.",
            "The session that this `session_id` named already.",
        ),
        Endpoint::SessionAttach => (
            "attach_session",
            "Takes up a conversation that the server has: one read, nothing is created.",
            "The session's snapshot.",
        ),
        Endpoint::SessionShow => ("show_session", "What may be done with a session now.", "The snapshot."),
        Endpoint::SessionClose => {
            ("close_session", "Ends a session; with `delete=true` its conversation is removed too.", "It is closed.")
        }
        Endpoint::ApprovalList => ("list_approvals", "The batch that waits for a decision, whole.", "What is pending."),
        Endpoint::ApprovalShow => (
            "show_approval",
            "One batch. `full=true` (role approver) truncates nothing and lifts redaction by key name.",
            "The batch.",
        ),
        Endpoint::SessionAct => (
            "act_on_session",
            "Asks for an operation. The role is the operation's; only an approver accepts.",
            "The receipt, in a final state or repeated.",
        ),
        Endpoint::ProviderAct => (
            "act_on_provider",
            "Asks for an operation that has no session.",
            "The receipt, in a final state or repeated.",
        ),
        Endpoint::ReceiptShow => ("show_receipt", "A receipt again.", "The receipt."),
        Endpoint::Events => (
            "read_events",
            "Redacted events in order. Waits up to `wait_ms`, which bounds a page only. With \
             `Accept: text/event-stream` a stream: `id` is a cursor, `event` a kind, `data` an Event; a `resync` frame \
             says that the cursor belonged to an earlier epoch, a `problem` frame why the stream ends.",
            "A page, or the stream.",
        ),
        Endpoint::Attestation => {
            ("show_attestation", "Which canaries passed, with evidence digests, signed.", "The attestation.")
        }
        Endpoint::Audit => {
            ("read_audit", "Links of the chain of receipts, oldest first, and its signed head.", "A page.")
        }
        Endpoint::AuditVerification => (
            "verify_audit",
            "Walks the whole chain and compares every stored row with it; one such walk at a time.",
            "What was found; a broken chain is no problem reply.",
        ),
        Endpoint::TokenList => ("list_tokens", "Every token, without what it is.", "The tokens."),
        Endpoint::TokenCreate => ("create_token", "Makes a token; it is shown once.", "The new token."),
        Endpoint::TokenRevoke => ("revoke_token", "Ends a token, and what waits with it.", "The revoked token."),
    }
}

/// What a parameter of a path is.
pub(super) fn path_text(name: &str) -> &'static str {
    match name {
        "session_id" => "Canonical UUID of the session.",
        "approval_id" => "Digest of the batch, whole.",
        "token_name" => "Name of the token.",
        _ => "The idempotency key that the action was asked with.",
    }
}
