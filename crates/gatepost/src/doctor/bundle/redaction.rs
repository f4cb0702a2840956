//! The secrets that are read only to be taken out.

use std::path::Path;

use host::secure_fs;
use rules::redact::{REDACTED, Redactor, is_secret_name};
use serde_json::Value;
use settings::Settings;

use super::shapes;
use crate::places::Places;

/// Largest file of a token or key, in bytes.
const MAX_SECRET_BYTES: u64 = 4 * 1024;

/// What takes the known secrets out, and whether all of them are known.
pub(super) struct Secrets {
    redactor: Redactor,
    /// Why one that exists is not known.
    unknown: Option<String>,
}

impl Secrets {
    /// Reads them: the tokens, the servers' key and the model's.
    pub(super) fn read(places: &Places, settings: Option<&Settings>) -> Self {
        let mut known = Vec::new();
        let mut unknown = None;
        let files = [
            ("owner_token", places.paths.owner_token.as_path()),
            ("secret_key", places.paths.secret_key.as_path()),
            ("token", places.token_file.as_path()),
        ];
        for (name, path) in files {
            match secret(path) {
                Ok(value) => known.extend(value.map(|value| (name.to_owned(), value))),
                Err(why) => unknown = Some(why),
            }
        }
        match settings.map(Settings::read_model_key) {
            Some(Ok(key)) => known.extend(key.map(|key| ("model_key".to_owned(), key.expose().to_owned()))),
            Some(Err(error)) => unknown = Some(error.to_string()),
            None => unknown = Some("the configuration does not load, so the model's key is not known".to_owned()),
        }
        Self { redactor: Redactor::new(known), unknown }
    }

    /// Why text of others cannot be told apart from a secret; `None` when every secret is known.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// Without known secrets, without the values of fields with a secret's name, and without what looks like a secret.
    pub(super) fn redact(&self, value: &Value) -> Value {
        shaped_hidden(self.redactor.redact_value(value).0)
    }

    /// A line of a log: also without what follows `name=` or `name:` of a secret's name.
    pub(super) fn redact_line(&self, line: &str) -> String {
        shapes::hidden(&named_hidden(&self.redactor.redact_text(line).0))
    }
}

fn secret(path: &Path) -> Result<Option<String>, String> {
    match secure_fs::read_secret(path, MAX_SECRET_BYTES) {
        Ok(secret) => Ok(Some(secret.expose().to_owned())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn shaped_hidden(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(shapes::hidden(&text)),
        Value::Array(all) => all.into_iter().map(shaped_hidden).collect(),
        Value::Object(all) => all.into_iter().map(|(name, value)| (name, shaped_hidden(value))).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

fn named_hidden(line: &str) -> String {
    for (at, _) in line.match_indices([':', '=']) {
        let (before, after) = line.split_at(at + 1);
        let before = before.trim_end_matches([':', '=', '"', '\'', '\\', ' ']);
        let name_begins = before
            .char_indices()
            .rev()
            .take_while(|(_, character)| character.is_alphanumeric() || "_-.".contains(*character))
            .last()
            .map_or(before.len(), |(begins, _)| begins);
        let (ahead, name) = before.split_at(name_begins);
        // `«secret:name»` is a mark, and says more than nothing.
        if is_secret_name(name) && !ahead.ends_with('«') && !after.trim().is_empty() {
            return format!("{}{REDACTED}", &line[..=at]);
        }
    }
    line.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_secret_s_name_is_hidden() {
        for line in [
            "GET / Authorization: Bearer planted-value",
            "env OPENAI_API_KEY=planted-value",
            "{'api_key': 'planted-value'}",
            "{\\\"session_api_key\\\": \\\"planted-value\\\"}",
            "at 12:30 password = planted-value",
        ] {
            let shown = named_hidden(line);
            assert!(!shown.contains("planted-value") && shown.ends_with(REDACTED), "{shown}");
        }
        for line in
            ["12:30:01 listening on 127.0.0.1:80", "max_tokens=12", "key «secret:model_key» used", "token:", "ß: ü"]
        {
            assert_eq!(named_hidden(line), line);
        }
    }
}
