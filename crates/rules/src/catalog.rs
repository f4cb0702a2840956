//! The reviewed operations with their inputs, and the strict reading of an input.

mod fields;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use fields::{Fields, input_fields};
pub use fields::{InputField, MAX_PROMPT_BYTES, MAX_REASON_BYTES, MAX_TITLE_CHARS};

use crate::operation::{OperationId, Risk};
use crate::refusal::{Refusal, RefusalCode};

/// Most characters of a client action id.
pub const MAX_CLIENT_ACTION_ID_CHARS: usize = 128;

/// What to do with pending actions when a prompt arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnPending {
    /// Refuse the prompt.
    Refuse,
    /// Reject the batch, then send the prompt.
    Reject,
}

/// What an approver decided on a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Run every action of it.
    Accept,
    /// Run none.
    Reject {
        /// Told to the agent, at most [`MAX_REASON_BYTES`].
        reason: Option<String>,
    },
}

/// A request that passed validation: everything in it is within bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationInput {
    /// See [`OperationId::PromptSend`].
    PromptSend {
        /// What is said, at most [`MAX_PROMPT_BYTES`].
        text: String,
        /// What happens to pending actions.
        on_pending: OnPending,
    },
    /// See [`OperationId::TurnInterrupt`].
    TurnInterrupt,
    /// See [`OperationId::ApprovalDecide`].
    ApprovalDecide {
        /// 64 lower-case hexadecimal digits: the batch that was looked at.
        approval_id: String,
        /// What was decided.
        decision: Decision,
    },
    /// See [`OperationId::Fork`].
    Fork {
        /// Title of the new session.
        title: Option<String>,
        /// Identifier of the new session, a canonical UUID; chosen by the daemon otherwise.
        session_id: Option<String>,
    },
    /// See [`OperationId::Rewind`].
    Rewind {
        /// The safe point that becomes the head.
        event_id: String,
    },
    /// See [`OperationId::Resume`].
    Resume,
    /// See [`OperationId::Compact`].
    Compact,
    /// See [`OperationId::ModelSet`].
    ModelSet {
        /// One of the reviewed choices.
        model: String,
    },
    /// See [`OperationId::TitleSet`].
    TitleSet {
        /// 1 to [`MAX_TITLE_CHARS`] characters on one line.
        title: String,
    },
    /// See [`OperationId::BlockAcknowledge`].
    BlockAcknowledge {
        /// 64 lower-case hexadecimal digits: the block that was looked at, see [`crate::tripwire::block_id`].
        block_id: String,
    },
    /// See [`OperationId::ProviderAuthRead`].
    ProviderAuthRead {
        /// Whose server is asked; any when absent.
        workspace: Option<String>,
    },
    /// See [`OperationId::ProviderConfigRead`].
    ProviderConfigRead {
        /// Whose server is asked; any when absent.
        workspace: Option<String>,
    },
    /// See [`OperationId::ProviderUsageRead`].
    ProviderUsageRead {
        /// Whose server is asked; any when absent.
        workspace: Option<String>,
    },
    /// See [`OperationId::ProviderDiagnosticsRead`].
    ProviderDiagnosticsRead {
        /// Whose server is asked; any when absent.
        workspace: Option<String>,
    },
}

impl OperationInput {
    /// Which operation it is for.
    pub fn operation(&self) -> OperationId {
        match self {
            Self::PromptSend { .. } => OperationId::PromptSend,
            Self::TurnInterrupt => OperationId::TurnInterrupt,
            Self::ApprovalDecide { .. } => OperationId::ApprovalDecide,
            Self::Fork { .. } => OperationId::Fork,
            Self::Rewind { .. } => OperationId::Rewind,
            Self::Resume => OperationId::Resume,
            Self::Compact => OperationId::Compact,
            Self::ModelSet { .. } => OperationId::ModelSet,
            Self::TitleSet { .. } => OperationId::TitleSet,
            Self::BlockAcknowledge { .. } => OperationId::BlockAcknowledge,
            Self::ProviderAuthRead { .. } => OperationId::ProviderAuthRead,
            Self::ProviderConfigRead { .. } => OperationId::ProviderConfigRead,
            Self::ProviderUsageRead { .. } => OperationId::ProviderUsageRead,
            Self::ProviderDiagnosticsRead { .. } => OperationId::ProviderDiagnosticsRead,
        }
    }

    /// Whether the request must carry the capability generation it was decided on. Interrupting, rejecting,
    /// acknowledging and reading need none.
    pub fn needs_generation(&self) -> bool {
        match self {
            Self::TurnInterrupt
            | Self::ApprovalDecide { decision: Decision::Reject { .. }, .. }
            | Self::BlockAcknowledge { .. }
            | Self::ProviderAuthRead { .. }
            | Self::ProviderConfigRead { .. }
            | Self::ProviderUsageRead { .. }
            | Self::ProviderDiagnosticsRead { .. } => false,
            Self::PromptSend { .. }
            | Self::ApprovalDecide { decision: Decision::Accept, .. }
            | Self::Fork { .. }
            | Self::Rewind { .. }
            | Self::Resume
            | Self::Compact
            | Self::ModelSet { .. }
            | Self::TitleSet { .. } => true,
        }
    }

    /// The input again as JSON, defaults written out: what fingerprints are taken over. It validates to itself.
    pub fn canonical(&self) -> Value {
        let optional = |fields: &[(&str, &Option<String>)]| {
            let given = fields.iter().filter_map(|(name, text)| Some((*name, text.as_ref()?)));
            Value::Object(given.map(|(name, text)| (name.to_owned(), json!(text))).collect::<Map<_, _>>())
        };
        match self {
            Self::PromptSend { text, on_pending } => json!({"text": text, "on_pending": on_pending}),
            Self::TurnInterrupt | Self::Resume | Self::Compact => json!({}),
            Self::ApprovalDecide { approval_id, decision } => match decision {
                Decision::Accept => json!({"approval_id": approval_id, "decision": "accept"}),
                Decision::Reject { reason: None } => json!({"approval_id": approval_id, "decision": "reject"}),
                Decision::Reject { reason: Some(reason) } => {
                    json!({"approval_id": approval_id, "decision": "reject", "reason": reason})
                }
            },
            Self::Fork { title, session_id } => optional(&[("title", title), ("session_id", session_id)]),
            Self::Rewind { event_id } => json!({"event_id": event_id}),
            Self::ModelSet { model } => json!({"model": model}),
            Self::TitleSet { title } => json!({"title": title}),
            Self::BlockAcknowledge { block_id } => json!({"block_id": block_id}),
            Self::ProviderAuthRead { workspace }
            | Self::ProviderConfigRead { workspace }
            | Self::ProviderUsageRead { workspace }
            | Self::ProviderDiagnosticsRead { workspace } => optional(&[("workspace", workspace)]),
        }
    }
}

/// Reads an input against the catalog.
///
/// # Errors
/// `wrong_type`, `unknown_field`, `missing_field`, `empty`, `too_long` or `invalid_value`, each naming the field.
pub fn validate(operation: OperationId, input: &Value) -> Result<OperationInput, Refusal> {
    let fields = Fields::read(operation, input)?;
    Ok(match operation {
        OperationId::PromptSend => OperationInput::PromptSend {
            text: fields.required("text")?,
            on_pending: match fields.optional("on_pending").as_deref() {
                Some("reject") => OnPending::Reject,
                Some(_) | None => OnPending::Refuse,
            },
        },
        OperationId::TurnInterrupt => OperationInput::TurnInterrupt,
        OperationId::ApprovalDecide => {
            let reason = fields.optional("reason");
            let decision = match (fields.required("decision")?.as_str(), reason) {
                ("accept", None) => Decision::Accept,
                ("accept", Some(_)) => {
                    let detail = "`reason` goes with a rejection only; leave it out to accept";
                    return Err(Refusal::new(RefusalCode::InvalidValue, detail));
                }
                (_, reason) => Decision::Reject { reason },
            };
            OperationInput::ApprovalDecide { approval_id: fields.required("approval_id")?, decision }
        }
        OperationId::Fork => {
            OperationInput::Fork { title: fields.optional("title"), session_id: fields.optional("session_id") }
        }
        OperationId::Rewind => OperationInput::Rewind { event_id: fields.required("event_id")? },
        OperationId::Resume => OperationInput::Resume,
        OperationId::Compact => OperationInput::Compact,
        OperationId::ModelSet => OperationInput::ModelSet { model: fields.required("model")? },
        OperationId::TitleSet => OperationInput::TitleSet { title: fields.required("title")? },
        OperationId::BlockAcknowledge => OperationInput::BlockAcknowledge { block_id: fields.required("block_id")? },
        OperationId::ProviderAuthRead => OperationInput::ProviderAuthRead { workspace: fields.optional("workspace") },
        OperationId::ProviderConfigRead => {
            OperationInput::ProviderConfigRead { workspace: fields.optional("workspace") }
        }
        OperationId::ProviderUsageRead => OperationInput::ProviderUsageRead { workspace: fields.optional("workspace") },
        OperationId::ProviderDiagnosticsRead => {
            OperationInput::ProviderDiagnosticsRead { workspace: fields.optional("workspace") }
        }
    })
}

/// One operation as the catalog shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CatalogEntry {
    /// Which.
    pub operation_id: OperationId,
    /// One sentence.
    pub summary: &'static str,
    /// The role its strongest form needs; `owner` where every role is needed.
    pub role: &'static str,
    /// What it can lead to.
    pub risk: Risk,
    /// Its input's fields; no other is accepted.
    pub inputs: Vec<InputField>,
}

/// The whole catalog, in its order.
pub fn describe() -> Vec<CatalogEntry> {
    let entry = |operation: OperationId| CatalogEntry {
        operation_id: operation,
        summary: operation.summary(),
        role: if operation.is_for_the_owner() { "owner" } else { operation.minimum_role().as_str() },
        risk: operation.risk(),
        inputs: input_fields(operation),
    };
    OperationId::ALL.into_iter().map(entry).collect()
}

/// Checks an idempotency key: 1 to 128 characters of `[A-Za-z0-9._:-]`.
///
/// # Errors
/// `empty`, `too_long` or `invalid_value`.
pub fn validate_client_action_id(id: &str) -> Result<(), Refusal> {
    if id.is_empty() {
        return Err(Refusal::new(RefusalCode::Empty, "`client_action_id` is empty; choose one for each action"));
    }
    if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte)) {
        let detail = "`client_action_id` may hold letters, digits, `.`, `_`, `:` and `-` only";
        return Err(Refusal::new(RefusalCode::InvalidValue, detail));
    }
    if id.len() > MAX_CLIENT_ACTION_ID_CHARS {
        let detail = format!("`client_action_id` has {} characters of at most {MAX_CLIENT_ACTION_ID_CHARS}", id.len());
        return Err(Refusal::new(RefusalCode::TooLong, detail));
    }
    Ok(())
}

/// Checks a session id: a UUID in lower case with dashes, nothing else.
///
/// # Errors
/// `empty` or `invalid_value`.
pub fn validate_session_id(id: &str) -> Result<(), Refusal> {
    fields::check_uuid("session_id", id)
}

/// Checks a title: 1 to [`MAX_TITLE_CHARS`] characters on one line.
///
/// # Errors
/// `empty`, `too_long` or `invalid_value`.
pub fn validate_title(title: &str) -> Result<(), Refusal> {
    fields::check_title("title", title)
}

/// Checks a prompt: 1 to [`MAX_PROMPT_BYTES`] bytes that are not all blank.
///
/// # Errors
/// `empty`, `too_long` or `invalid_value`.
pub fn validate_prompt(text: &str) -> Result<(), Refusal> {
    fields::check_prompt("prompt", text)
}

#[cfg(test)]
mod tests;
