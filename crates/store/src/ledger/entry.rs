//! The text of a link: canonical JSON (RFC 8785) that holds digests in place of what was said.
//!
//! Every name is ASCII and every number a whole one below 2^53, so sorted keys and `serde_json`'s own escapes are all that
//! the canonical form asks for.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::audit::RefusedRequest;
use crate::record::{AcceptRecord, ReceiptRecord, SessionRecord, StepRecord, TokenRecord};

/// Version of the form; a reader that meets a higher one does not understand it.
const VERSION: u32 = 1;

/// Which row a link speaks of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The receipt of this key.
    Receipt(String),
    /// This session.
    Session(String),
    /// The accept of an action: session, event.
    Accept(String, String),
    /// The token of this name.
    Token(String),
    /// None: a refusal, or the beginning of the chain.
    Nothing,
}

/// What a link's text says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) subject: Subject,
    /// The row is gone since: an accept that was taken back.
    pub(crate) withdrawn: bool,
}

/// The beginning: the ledger holds nothing.
pub(crate) fn begun(at_ms: i64) -> String {
    text("ledger", at_ms, [("accepts", json!(0)), ("receipts", json!(0)), ("sessions", json!(0))])
}

/// A receipt as it stands now.
pub(crate) fn receipt(record: &ReceiptRecord) -> String {
    let steps: Vec<Value> = record.steps.iter().map(step).collect();
    // Absent where there is none, as in the links of before there were any.
    let request_id = record.request_id.as_ref().map(|id| ("request_id", json!(id)));
    let fields = [
        ("caller", json!(record.caller)),
        ("client_action_id", json!(record.client_action_id)),
        ("code", json!(record.code)),
        ("created_at_ms", json!(record.created_at_ms)),
        ("detail_sha256", digest(record.detail.as_deref())),
        ("fingerprint", json!(record.fingerprint)),
        ("input_sha256", digest(Some(&record.input_json))),
        ("operation_id", json!(record.operation_id)),
        ("result_sha256", digest(record.result_json.as_deref())),
        ("session_id", json!(record.session_id)),
        ("state", json!(record.state.as_str())),
        ("steps", Value::Array(steps)),
    ];
    text("receipt", record.updated_at_ms, fields.into_iter().chain(request_id))
}

/// A session as it stands now.
pub(crate) fn session(record: &SessionRecord) -> String {
    text(
        "session",
        record.changed_at_ms,
        [
            ("baseline_event_id", json!(record.baseline_event_id)),
            ("caller", json!(record.changed_by)),
            ("closed_at_ms", json!(record.closed_at_ms)),
            ("created_at_ms", json!(record.created_at_ms)),
            ("origin", json!(record.origin.as_str())),
            ("parent_session_id", json!(record.parent_session_id)),
            ("session_id", json!(record.session_id)),
            ("state", json!(if record.closed_at_ms.is_some() { "closed" } else { "open" })),
            ("title_sha256", digest(record.title.as_deref())),
            ("workspace", json!(record.workspace)),
        ],
    )
}

/// The accept of one action as it stands now.
pub(crate) fn accept(record: &AcceptRecord) -> String {
    of_accept(record, record.state.as_str())
}

/// The accept of one action, taken back because it was proved never to have left.
pub(crate) fn accept_withdrawn(record: &AcceptRecord) -> String {
    of_accept(record, WITHDRAWN)
}

const WITHDRAWN: &str = "withdrawn";

fn of_accept(record: &AcceptRecord, state: &str) -> String {
    text(
        "accept",
        record.updated_at_ms,
        [
            ("approval_id", json!(record.approval_id)),
            ("event_id", json!(record.event_id)),
            ("sent_at_ms", json!(record.sent_at_ms)),
            ("session_id", json!(record.session_id)),
            ("state", json!(state)),
        ],
    )
}

/// A token as it stands now, by its digest. The owner alone makes and revokes them.
pub(crate) fn token(record: &TokenRecord) -> String {
    text(
        "token",
        record.revoked_at_ms.unwrap_or(record.created_at_ms),
        [
            ("caller", json!("owner")),
            ("created_at_ms", json!(record.created_at_ms)),
            ("name", json!(record.name)),
            ("revoked_at_ms", json!(record.revoked_at_ms)),
            ("roles", json!(record.roles)),
            ("state", json!(if record.revoked_at_ms.is_some() { "revoked" } else { "good" })),
            ("token_sha256", json!(record.token_sha256)),
        ],
    )
}

/// A request that was refused before it had a receipt.
pub(crate) fn refusal(refused: &RefusedRequest) -> String {
    text(
        "refusal",
        refused.at_ms,
        [
            ("caller", json!(refused.caller)),
            ("client_action_id", json!(refused.client_action_id)),
            ("code", json!(refused.code)),
            ("operation_id", json!(refused.operation_id)),
            ("request", json!(refused.request)),
            ("session_id", json!(refused.session_id)),
        ],
    )
}

/// Reads back which row a text speaks of; `None` when no link of ours has such a text.
pub(crate) fn read(text: &str) -> Option<Read> {
    let fields: BTreeMap<String, Value> = serde_json::from_str(text).ok()?;
    let word = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    if fields.get("v")? != &json!(VERSION) {
        return None;
    }
    let subject = match word("kind")?.as_str() {
        "receipt" => Subject::Receipt(word("client_action_id")?),
        "session" => Subject::Session(word("session_id")?),
        "accept" => Subject::Accept(word("session_id")?, word("event_id")?),
        "token" => Subject::Token(word("name")?),
        "refusal" | "ledger" => Subject::Nothing,
        _ => return None,
    };
    let withdrawn = matches!(subject, Subject::Accept(..)) && word("state").as_deref() == Some(WITHDRAWN);
    Some(Read { subject, withdrawn })
}

fn step(record: &StepRecord) -> Value {
    let fields = BTreeMap::from([
        ("code", json!(record.code)),
        ("detail_sha256", digest(record.detail.as_deref())),
        ("name", json!(record.name)),
        ("state", json!(record.state.as_str())),
    ]);
    json!(fields)
}

fn text<'a>(kind: &str, at_ms: i64, fields: impl IntoIterator<Item = (&'a str, Value)>) -> String {
    let mut all = BTreeMap::from_iter(fields);
    all.insert("at_ms", json!(at_ms));
    all.insert("kind", json!(kind));
    all.insert("v", json!(VERSION));
    json!(all).to_string()
}

fn digest(content: Option<&str>) -> Value {
    content.map_or(Value::Null, |content| json!(hex(&Sha256::digest(content))))
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ReceiptState, StepState};

    #[test]
    fn a_text_is_canonical_and_holds_no_content() {
        let record = ReceiptRecord {
            client_action_id: "a".into(),
            session_id: None,
            operation_id: "session.prompt.send".into(),
            fingerprint: "f".into(),
            caller: "o\"\u{7}é".into(),
            state: ReceiptState::Applied,
            code: None,
            detail: Some("said".into()),
            input_json: "{\"text\":\"said\"}".into(),
            result_json: Some("said".into()),
            steps: vec![StepRecord {
                name: "s".into(),
                state: StepState::Done,
                code: None,
                detail: Some("said".into()),
            }],
            created_at_ms: 1,
            updated_at_ms: 2,
            request_id: None,
        };
        let said = hex(&Sha256::digest("said"));
        let input = hex(&Sha256::digest("{\"text\":\"said\"}"));
        let expected = format!(
            "{{\"at_ms\":2,\"caller\":\"o\\\"\\u0007é\",\"client_action_id\":\"a\",\"code\":null,\"created_at_ms\":1,\
             \"detail_sha256\":\"{said}\",\"fingerprint\":\"f\",\"input_sha256\":\"{input}\",\"kind\":\"receipt\",\
             \"operation_id\":\"session.prompt.send\",\"result_sha256\":\"{said}\",\"session_id\":null,\
             \"state\":\"applied\",\"steps\":[{{\"code\":null,\"detail_sha256\":\"{said}\",\"name\":\"s\",\
             \"state\":\"done\"}}],\"v\":1}}"
        );
        assert_eq!(receipt(&record), expected);
        assert_eq!(read(&expected).unwrap().subject, Subject::Receipt("a".into()));
    }

    #[test]
    fn what_no_link_of_ours_says_is_not_read() {
        for text in [
            "",
            "[]",
            "{}",
            "{\"kind\":\"receipt\",\"v\":1}",
            "{\"kind\":\"ledger\",\"v\":2}",
            "{\"kind\":\"x\",\"v\":1}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("{\"kind\":\"ledger\",\"v\":1}").unwrap().subject, Subject::Nothing);
    }
}
