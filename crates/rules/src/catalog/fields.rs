//! One table of input fields: what the catalog shows is what is enforced.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::operation::OperationId;
use crate::refusal::{Refusal, RefusalCode};

/// Longest prompt, in bytes of UTF-8.
pub const MAX_PROMPT_BYTES: usize = 200_000;
/// Longest reason of a rejection, in bytes of UTF-8.
pub const MAX_REASON_BYTES: usize = 2_000;
/// Longest title, in characters.
pub const MAX_TITLE_CHARS: usize = 200;
/// Longest model name, in bytes.
const MAX_MODEL_BYTES: usize = 256;
/// Longest path, in bytes: Linux's own limit.
const MAX_PATH_BYTES: usize = 4_096;
const UUID_CHARS: usize = 36;
const DIGEST_CHARS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Prompt,
    Reason,
    Title,
    Model,
    Path,
    Uuid,
    Digest,
    Choice(&'static [&'static str]),
}

/// One field of an input, as the catalog shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InputField {
    /// Its name.
    pub name: &'static str,
    /// `text`, `line`, `path`, `uuid`, `digest` or `choice`; all are JSON strings.
    pub type_name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// Longest value in bytes of UTF-8.
    pub max_bytes: usize,
    /// The only values allowed, where there is a list.
    pub values: &'static [&'static str],
    /// What it means.
    pub doc: &'static str,
    #[serde(skip)]
    format: Format,
}

impl InputField {
    const fn new(name: &'static str, format: Format, doc: &'static str) -> Self {
        let (type_name, max_bytes, values): (_, _, &'static [&'static str]) = match format {
            Format::Prompt => ("text", MAX_PROMPT_BYTES, &[]),
            Format::Reason => ("text", MAX_REASON_BYTES, &[]),
            Format::Title => ("line", MAX_TITLE_CHARS * 4, &[]),
            Format::Model => ("line", MAX_MODEL_BYTES, &[]),
            Format::Path => ("path", MAX_PATH_BYTES, &[]),
            Format::Uuid => ("uuid", UUID_CHARS, &[]),
            Format::Digest => ("digest", DIGEST_CHARS, &[]),
            Format::Choice(values) => ("choice", 16, values),
        };
        Self { name, type_name, required: true, max_bytes, values, doc, format }
    }

    const fn optional(name: &'static str, format: Format, doc: &'static str) -> Self {
        Self { required: false, ..Self::new(name, format, doc) }
    }

    fn check(&self, text: &str) -> Result<(), Refusal> {
        let name = self.name;
        match self.format {
            Format::Prompt => check_prompt(name, text),
            Format::Reason => check_text(name, text, MAX_REASON_BYTES),
            Format::Title => check_title(name, text),
            Format::Model => check_line(name, text, MAX_MODEL_BYTES),
            Format::Path => check_line(name, text, MAX_PATH_BYTES),
            Format::Uuid => check_uuid(name, text),
            Format::Digest => check_digest(name, text),
            Format::Choice(values) if values.contains(&text) => Ok(()),
            Format::Choice(values) => {
                Err(refuse(RefusalCode::InvalidValue, format!("`{name}` must be one of: {}", values.join(", "))))
            }
        }
    }
}

/// The fields of an operation's input.
pub(super) fn input_fields(operation: OperationId) -> Vec<InputField> {
    let workspace = || {
        vec![InputField::optional(
            "workspace",
            Format::Path,
            "Directory whose server is asked; any server when absent.",
        )]
    };
    match operation {
        OperationId::PromptSend => vec![
            InputField::new("text", Format::Prompt, "What is said to the agent."),
            InputField::optional(
                "on_pending",
                Format::Choice(&["refuse", "reject"]),
                "What happens when actions wait: refuse the prompt (default), or reject them first.",
            ),
        ],
        OperationId::ApprovalDecide => vec![
            InputField::new("approval_id", Format::Digest, "The batch that was looked at."),
            InputField::new("decision", Format::Choice(&["accept", "reject"]), "What was decided on the whole batch."),
            InputField::optional("reason", Format::Reason, "With a rejection: told to the agent."),
        ],
        OperationId::Fork => vec![
            InputField::optional("title", Format::Title, "Title of the new session."),
            InputField::optional("session_id", Format::Uuid, "Identifier of the new session; chosen when absent."),
        ],
        OperationId::Rewind => {
            vec![InputField::new("event_id", Format::Uuid, "One of the rewind choices: becomes the head.")]
        }
        OperationId::ModelSet => vec![InputField::new("model", Format::Model, "One of the model choices.")],
        OperationId::TitleSet => vec![InputField::new("title", Format::Title, "The new title.")],
        OperationId::BlockAcknowledge => {
            vec![InputField::new("block_id", Format::Digest, "The block that was looked at.")]
        }
        OperationId::TurnInterrupt | OperationId::Resume | OperationId::Compact => Vec::new(),
        OperationId::ProviderAuthRead
        | OperationId::ProviderConfigRead
        | OperationId::ProviderUsageRead
        | OperationId::ProviderDiagnosticsRead => workspace(),
    }
}

/// An input whose fields were all checked.
pub(super) struct Fields<'a> {
    given: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(super) fn read(operation: OperationId, input: &'a Value) -> Result<Self, Refusal> {
        let Value::Object(given) = input else {
            let detail = format!("the input of {operation} must be a JSON object, not {}", type_of(input));
            return Err(refuse(RefusalCode::WrongType, detail));
        };
        let fields = input_fields(operation);
        for name in given.keys() {
            if !fields.iter().any(|field| field.name == name) {
                let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
                let shown: String = name.chars().take(64).flat_map(char::escape_default).collect();
                let detail = match known.as_slice() {
                    [] => format!("`{shown}` is not a field of {operation}, which takes none"),
                    [_, ..] => format!("`{shown}` is not a field of {operation}; it takes {}", known.join(", ")),
                };
                return Err(refuse(RefusalCode::UnknownField, detail));
            }
        }
        for field in fields {
            match given.get(field.name) {
                None if field.required => {
                    let detail = format!("{operation} needs `{}`: {}", field.name, field.doc);
                    return Err(refuse(RefusalCode::MissingField, detail));
                }
                None => {}
                Some(Value::String(text)) => field.check(text)?,
                Some(other) => {
                    let detail = format!("`{}` must be a string, not {}", field.name, type_of(other));
                    return Err(refuse(RefusalCode::WrongType, detail));
                }
            }
        }
        Ok(Self { given })
    }

    pub(super) fn optional(&self, name: &str) -> Option<String> {
        self.given.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    pub(super) fn required(&self, name: &str) -> Result<String, Refusal> {
        self.optional(name).ok_or_else(|| refuse(RefusalCode::MissingField, format!("`{name}` is missing")))
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn refuse(code: RefusalCode, detail: String) -> Refusal {
    Refusal::new(code, detail)
}

fn check_text(name: &str, text: &str, max_bytes: usize) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(refuse(RefusalCode::Empty, format!("`{name}` is empty")));
    }
    if text.len() > max_bytes {
        let detail = format!("`{name}` has {} bytes of at most {max_bytes}", text.len());
        return Err(refuse(RefusalCode::TooLong, detail));
    }
    if text.contains('\0') {
        return Err(refuse(RefusalCode::InvalidValue, format!("`{name}` holds a NUL byte")));
    }
    Ok(())
}

fn check_line(name: &str, text: &str, max_bytes: usize) -> Result<(), Refusal> {
    check_text(name, text, max_bytes)?;
    if text.chars().any(|character| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')) {
        let detail = format!("`{name}` must be one line without control characters");
        return Err(refuse(RefusalCode::InvalidValue, detail));
    }
    Ok(())
}

pub(super) fn check_prompt(name: &str, text: &str) -> Result<(), Refusal> {
    check_text(name, text, MAX_PROMPT_BYTES)
}

pub(super) fn check_title(name: &str, text: &str) -> Result<(), Refusal> {
    check_line(name, text, MAX_TITLE_CHARS * 4)?;
    let chars = text.chars().count();
    if chars > MAX_TITLE_CHARS {
        let detail = format!("`{name}` has {chars} characters of at most {MAX_TITLE_CHARS}");
        return Err(refuse(RefusalCode::TooLong, detail));
    }
    Ok(())
}

pub(super) fn check_uuid(name: &str, text: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(refuse(RefusalCode::Empty, format!("`{name}` is empty")));
    }
    let well_formed = text.len() == UUID_CHARS
        && text.bytes().enumerate().all(|(position, byte)| match position {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => is_lower_hex(byte),
        });
    if well_formed {
        return Ok(());
    }
    let detail =
        format!("`{name}` must be a UUID in lower case with dashes, such as 0b23a082-3c53-4ae3-98a6-3fb16b88db40");
    Err(refuse(RefusalCode::InvalidValue, detail))
}

fn check_digest(name: &str, text: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(refuse(RefusalCode::Empty, format!("`{name}` is empty")));
    }
    if text.len() == DIGEST_CHARS && text.bytes().all(is_lower_hex) {
        return Ok(());
    }
    let detail = format!("`{name}` must be all {DIGEST_CHARS} lower-case hexadecimal digits of it");
    Err(refuse(RefusalCode::InvalidValue, detail))
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}
