//! Bounds of the values that may be typed. They repeat the API's, so that a mistake costs no request.

use std::ffi::OsString;
use std::path::PathBuf;

/// Most bytes of a prompt.
pub(crate) const MAX_PROMPT_BYTES: usize = 200_000;
const MAX_TOKEN_NAME_CHARS: usize = 64;
const MAX_TITLE_CHARS: usize = 200;
pub(crate) const MAX_REASON_BYTES: usize = 2_000;
const MAX_ACTION_ID_CHARS: usize = 128;
const MAX_CURSOR_BYTES: usize = 256;
const MAX_MODEL_BYTES: usize = 256;
const UUID_DIGITS: usize = 32;
const DIGEST_DIGITS: usize = 64;
const MIN_DIGEST_DIGITS: usize = 12;

/// The beginning of a session id: 1 to 32 lower-case hexadecimal digits, the dashes left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdPrefix(String);

impl IdPrefix {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let digits: String = text.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
        // A dash may stand only where a UUID has one.
        let dashes_fit = text.char_indices().all(|(at, c)| c != '-' || matches!(at, 8 | 13 | 18 | 23));
        if digits.is_empty() || digits.len() > UUID_DIGITS || !dashes_fit || !is_hex(&digits) {
            return Err("a session id is a UUID or the beginning of one".to_owned());
        }
        Ok(Self(digits))
    }

    /// The canonical UUID, when all of it was typed.
    #[must_use]
    pub fn whole(&self) -> Option<String> {
        let digits = &self.0;
        (digits.len() == UUID_DIGITS)
            .then(|| [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| digits.get(range).unwrap_or_default()).join("-"))
    }

    /// Whether it begins this canonical UUID.
    #[must_use]
    pub fn begins(&self, session_id: &str) -> bool {
        session_id.replace('-', "").starts_with(&self.0)
    }

    /// The digits as compared.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }
}

/// An approval's digest, or the beginning of one: 12 to 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalDigits(String);

impl ApprovalDigits {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let digits = text.to_ascii_lowercase();
        if digits.len() < MIN_DIGEST_DIGITS || digits.len() > DIGEST_DIGITS || !is_hex(&digits) {
            return Err(format!(
                "an approval is named by {MIN_DIGEST_DIGITS} to {DIGEST_DIGITS} hexadecimal digits of its digest"
            ));
        }
        Ok(Self(digits))
    }

    /// The digits.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }

    /// Whether the whole digest was typed.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.0.len() == DIGEST_DIGITS
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn uuid(text: &str) -> Result<String, String> {
    IdPrefix::parse(text).ok().and_then(|prefix| prefix.whole()).ok_or_else(|| "a whole UUID is needed".to_owned())
}

pub(super) fn action_id(text: &str) -> Result<String, String> {
    let fits = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    if text.is_empty() || text.len() > MAX_ACTION_ID_CHARS || !fits {
        return Err(format!("an action id is 1 to {MAX_ACTION_ID_CHARS} characters of [A-Za-z0-9._:-]"));
    }
    Ok(text.to_owned())
}

pub(super) fn token_name(text: &str) -> Result<String, String> {
    let fits = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    if !begins || text.len() > MAX_TOKEN_NAME_CHARS || !fits || text == "owner" {
        return Err(format!(
            "a token's name is 1 to {MAX_TOKEN_NAME_CHARS} characters of [A-Za-z0-9._-], a letter or digit first, and not `owner`"
        ));
    }
    Ok(text.to_owned())
}

pub(super) fn title(text: &str) -> Result<String, String> {
    let chars = text.chars().count();
    if text.trim().is_empty() || chars > MAX_TITLE_CHARS || text.chars().any(char::is_control) {
        return Err(format!("a title has 1 to {MAX_TITLE_CHARS} characters and no control characters"));
    }
    Ok(text.to_owned())
}

pub(super) fn prompt(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.len() > MAX_PROMPT_BYTES {
        return Err(format!("a prompt has 1 to {MAX_PROMPT_BYTES} bytes"));
    }
    Ok(text.to_owned())
}

pub(super) fn reason(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.len() > MAX_REASON_BYTES {
        return Err(format!("a reason has 1 to {MAX_REASON_BYTES} bytes"));
    }
    Ok(text.to_owned())
}

pub(super) fn cursor(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > MAX_CURSOR_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a cursor is copied whole from an event".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn model(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.len() > MAX_MODEL_BYTES || text.chars().any(char::is_control) {
        return Err(format!("a model has 1 to {MAX_MODEL_BYTES} bytes and no control characters"));
    }
    Ok(text.to_owned())
}

pub(super) fn version(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('.').collect();
    let number = |part: &&str| (1..=6).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() != 3 || !parts.iter().all(number) {
        return Err("a version is written like 1.40.0".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("a path may not be empty".to_owned());
    }
    Ok(PathBuf::from(OsString::from(text)))
}
