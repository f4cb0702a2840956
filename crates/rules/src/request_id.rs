//! Ids that follow a request through replies, receipts and logs.

use std::fmt;

use crate::refusal::{Refusal, RefusalCode};

/// Longest id, in bytes.
pub const MAX_REQUEST_ID_BYTES: usize = 64;

/// An id of one request: 1 to [`MAX_REQUEST_ID_BYTES`] characters of `[A-Za-z0-9._-]`. It decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// Takes an id over.
    ///
    /// # Errors
    /// `bad_request` when it is something else.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=MAX_REQUEST_ID_BYTES).contains(&text.len()) && text.bytes().all(plain) {
            return Ok(Self(text.to_owned()));
        }
        let detail = format!(
            "a request id has 1 to {MAX_REQUEST_ID_BYTES} letters, digits, dots, underscores and dashes; leave it out to get one"
        );
        Err(Refusal::new(RefusalCode::BadRequest, detail))
    }

    /// An id of our own: the number in 32 hexadecimal digits.
    pub fn of_number(number: u128) -> Self {
        Self(format!("{number:032x}"))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_and_plain() {
        for id in ["a", "0af7651916cd43dd8448eb211c80319c", "Req.1_2-3", &"x".repeat(MAX_REQUEST_ID_BYTES)] {
            assert_eq!(RequestId::parse(id).unwrap().as_str(), id);
        }
        assert_eq!(RequestId::of_number(10).as_str(), "0000000000000000000000000000000a");
        for id in ["", "a b", "a\n", "ä", "a/b", "a=b", &"x".repeat(MAX_REQUEST_ID_BYTES + 1)] {
            assert_eq!(RequestId::parse(id).unwrap_err().code, RefusalCode::BadRequest, "{id:?}");
        }
    }
}
