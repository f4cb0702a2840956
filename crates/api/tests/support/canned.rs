//! What the fake controller answers, always the same.

use rules::canary::CanaryScope;
use rules::refusal::{Refusal, RefusalCode};
use rules::standing::{self, Guarded, SessionStanding};
use serde_json::{Value, json};
use session::view::{
    ActionRequest, AdvertisedOperation, Approval, BackgroundProcess, BlockChoice, NamedFile, PendingAction,
    ReceiptView, RewindChoice, SessionSnapshot, SessionSummary,
};

use super::{APPROVAL, GENERATION, SESSION};

pub(super) fn summary() -> SessionSummary {
    SessionSummary {
        session_id: SESSION.into(),
        workspace: "/w".into(),
        title: Some("t".into()),
        state: SessionStanding::Blocked,
        status: "idle".into(),
        pending_actions: 1,
        blocked_reason: Some(Refusal::new(RefusalCode::SessionBlocked, "look at it")),
        created_at: "2026-01-01T00:00:00Z".into(),
    }
}

pub(super) fn snapshot() -> SessionSnapshot {
    SessionSnapshot {
        summary: summary(),
        capability_generation: GENERATION,
        observed_at: "2026-01-01T00:00:00Z".into(),
        valid_until: "2026-01-01T00:00:10Z".into(),
        advertised_operations: vec![AdvertisedOperation {
            operation_id: rules::operation::OperationId::PromptSend,
            needs_generation: true,
        }],
        rewind_choices: vec![RewindChoice { turn: 1, event_id: "e".into(), text: "p".into(), at: "a".into() }],
        model_choices: vec!["m".into()],
        acknowledge_choices: vec![BlockChoice { block_id: "b".into(), observation_ids: vec!["o".into()] }],
        canaries: standing::canaries(&[CanaryScope::Session], &[], &[], Guarded::Up),
        values: [("policy".to_owned(), json!("AlwaysConfirm"))].into(),
        cursor: "c0".into(),
    }
}

pub(super) fn approval() -> Approval {
    Approval {
        approval_id: APPROVAL.into(),
        session_id: SESSION.into(),
        expires_at: "2026-01-01T01:00:00Z".into(),
        actions: vec![PendingAction {
            event_id: "e".into(),
            tool: "terminal".into(),
            arguments: json!({"command": "ls"}),
            agent_risk: Some("LOW".into()),
            agent_summary: None,
            redacted: false,
            truncated: false,
            deceptive_text: false,
            in_doubt: false,
        }],
        holds_secret: false,
        complete: true,
        confinement_level: "weak".into(),
        named_files: vec![NamedFile { path: "build.sh".into(), sha256: Some("ab".repeat(32)), changed: false }],
        background_processes: vec![BackgroundProcess { pid: 41, name: "sleep".into() }],
        notes: vec![],
    }
}

pub(super) fn receipt(request: &ActionRequest, state: &str) -> ReceiptView {
    ReceiptView {
        client_action_id: request.client_action_id.clone(),
        session_id: request.session_id.clone(),
        operation_id: request.input.operation().as_str().into(),
        state: state.into(),
        code: None,
        detail: None,
        steps: vec![],
        result: Value::Null,
        created_at: "2026-01-01T00:00:00Z".into(),
        updated_at: "2026-01-01T00:00:00Z".into(),
        request_id: session::request::current().map(|id| id.as_str().into()),
        replayed: false,
    }
}
