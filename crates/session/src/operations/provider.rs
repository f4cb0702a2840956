//! Reads about the model provider, from the server's profiles and the sessions' own figures.

use std::sync::Arc;

use rules::catalog::OperationInput;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Map, Value, json};

use crate::server::VerifiedServer;
use crate::shared::Shared;

/// Answers one read. Changes nothing.
///
/// # Errors
/// An upstream refusal.
pub(crate) async fn read(
    shared: &Shared,
    server: &Arc<VerifiedServer>,
    input: &OperationInput,
) -> Result<Value, Refusal> {
    match input {
        OperationInput::ProviderAuthRead { .. } => server.provider().auth().await,
        OperationInput::ProviderConfigRead { .. } => server.provider().config().await,
        OperationInput::ProviderDiagnosticsRead { .. } => {
            let mut diagnostics = server.provider().diagnostics().await?;
            let canaries = server.canaries();
            let failed: Vec<Value> = canaries
                .results
                .iter()
                .filter(|result| !result.passed)
                .map(|result| json!({"canary": result.canary.as_str(), "detail": result.detail}))
                .collect();
            if let Some(object) = diagnostics.as_object_mut() {
                object.insert("failed_canaries".to_owned(), Value::Array(failed));
            }
            Ok(diagnostics)
        }
        OperationInput::ProviderUsageRead { .. } => Ok(usage(shared, server)),
        OperationInput::PromptSend { .. }
        | OperationInput::TurnInterrupt
        | OperationInput::ApprovalDecide { .. }
        | OperationInput::Fork { .. }
        | OperationInput::Rewind { .. }
        | OperationInput::Resume
        | OperationInput::Compact
        | OperationInput::ModelSet { .. }
        | OperationInput::TitleSet { .. }
        | OperationInput::BlockAcknowledge { .. } => {
            Err(Refusal::new(RefusalCode::Internal, "this operation is of a session"))
        }
    }
}

fn usage(shared: &Shared, server: &Arc<VerifiedServer>) -> Value {
    let sessions: Map<String, Value> = shared
        .sessions()
        .into_iter()
        .filter(|session| session.workspace() == server.workspace())
        .map(|session| (session.id().as_str().to_owned(), session.current().usage.clone()))
        .collect();
    json!({"sessions": sessions})
}
