//! The server's own reason for a refusal, made fit for a message: short, printable, and free of every secret we sent.

use host::Secret;
use serde_json::Value;

const MAX_REASON_CHARS: usize = 300;

/// The reason in a refusal's body: its `detail` text, or the places that its validation names. Never an echoed input.
pub(crate) fn of<'a>(body: &[u8], secrets: impl Iterator<Item = &'a Secret>) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let text = match value.get("detail")? {
        Value::String(text) => text.clone(),
        Value::Array(faults) => faults.iter().filter_map(fault).collect::<Vec<_>>().join("; "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let mut secrets = secrets.filter(|secret| !secret.expose().is_empty());
    if text.is_empty() || secrets.any(|secret| text.contains(secret.expose())) {
        return None;
    }
    let printable = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    Some(printable.take(MAX_REASON_CHARS).collect())
}

/// `body.llm.model: missing`, from one entry of a validation refusal.
fn fault(entry: &Value) -> Option<String> {
    let place = entry.get("loc")?.as_array()?;
    let place: Vec<String> =
        place.iter().map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect();
    Some(format!("{}: {}", place.join("."), entry.get("type")?.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(body: &str, key: &str) -> Option<String> {
        of(body.as_bytes(), [&Secret::new(key.to_owned())].into_iter())
    }

    #[test]
    fn a_text_reason_is_bounded_and_printable() {
        assert_eq!(reason(r#"{"detail":"no\r\nsuch"}"#, "k1").as_deref(), Some("no  such"));
        let long = format!(r#"{{"detail":"{}"}}"#, "a".repeat(5000));
        assert_eq!(reason(&long, "k1").map(|text| text.len()), Some(MAX_REASON_CHARS));
    }

    #[test]
    fn a_validation_reason_names_places_and_never_inputs() {
        let body =
            r#"{"detail":[{"loc":["body","llm","model"],"type":"missing","input":{"api_key":"hush"},"msg":"hush"}]}"#;
        assert_eq!(reason(body, "k1").as_deref(), Some("body.llm.model: missing"));
    }

    #[test]
    fn a_reason_that_repeats_a_secret_is_dropped_whole() {
        assert_eq!(reason(r#"{"detail":"bad key hush-hush"}"#, "hush-hush"), None);
        assert_eq!(reason(r#"{"detail":[{"loc":["hush-hush"],"type":"x"}]}"#, "hush-hush"), None);
    }

    #[test]
    fn what_is_no_reason_is_none() {
        for body in ["", "[]", "{}", r#"{"detail":7}"#, r#"{"detail":""}"#, "not json"] {
            assert_eq!(reason(body, "k1"), None, "{body}");
        }
    }
}
