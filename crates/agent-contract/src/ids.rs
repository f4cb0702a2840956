//! Identifiers that may stand in a request target. Each is checked once, when it is made, so that a target built from
//! them needs no escaping and can name nothing but what the contract's template says.

use std::fmt;

use crate::ContractError;

/// Most characters of an event id.
pub const MAX_EVENT_ID_CHARS: usize = 64;
/// Most characters of a profile name, as the server itself bounds it.
pub const MAX_PROFILE_NAME_CHARS: usize = 64;

/// A session's id, which is the server's conversation id: a lower-case, dashed UUID.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(String);

impl SessionId {
    /// Accepts only the canonical form (`8-4-4-4-12` lower-case hex digits).
    ///
    /// # Errors
    /// [`ContractError::Identifier`] for anything else.
    pub fn parse(text: &str) -> Result<Self, ContractError> {
        if is_canonical_uuid(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ContractError::Identifier { what: "a session id must be a lower-case dashed UUID" })
        }
    }
}

/// The id of one event in the server's log: 1 to [`MAX_EVENT_ID_CHARS`] characters of `[A-Za-z0-9-]`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EventId(String);

impl EventId {
    /// Accepts letters, digits and dashes only.
    ///
    /// # Errors
    /// [`ContractError::Identifier`] for anything else.
    pub fn parse(text: &str) -> Result<Self, ContractError> {
        if is_event_id(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ContractError::Identifier { what: "an event id must be 1 to 64 letters, digits or dashes" })
        }
    }
}

/// The name of a stored profile: a letter or digit, then up to 63 of `[A-Za-z0-9._-]`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProfileName(String);

impl ProfileName {
    /// Accepts the names that the server accepts.
    ///
    /// # Errors
    /// [`ContractError::Identifier`] for anything else.
    pub fn parse(text: &str) -> Result<Self, ContractError> {
        if is_profile_name(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ContractError::Identifier {
                what: "a profile name must be 1 to 64 letters, digits, '.', '_' or '-', and begin with a letter or digit",
            })
        }
    }
}

macro_rules! text_identifier {
    ($type:ty) => {
        impl $type {
            /// The identifier as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{:?}", self.0)
            }
        }
    };
}
text_identifier!(SessionId);
text_identifier!(EventId);
text_identifier!(ProfileName);

pub(crate) fn is_canonical_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

pub(crate) fn is_event_id(text: &str) -> bool {
    (1..=MAX_EVENT_ID_CHARS).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

pub(crate) fn is_profile_name(text: &str) -> bool {
    (1..=MAX_PROFILE_NAME_CHARS).contains(&text.len())
        && text
            .bytes()
            .enumerate()
            .all(|(index, byte)| byte.is_ascii_alphanumeric() || (index > 0 && matches!(byte, b'.' | b'_' | b'-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_has_one_form_only() {
        assert!(SessionId::parse("11111111-1111-4111-8111-11111111111a").is_ok());
        for bad in [
            "",
            "11111111-1111-4111-8111-11111111111A",
            "11111111111141118111111111111111",
            "11111111-1111-4111-8111-1111111111111",
            "11111111-1111-4111-8111-11111111111/",
            "../1111-1111-4111-8111-11111111111111",
            "{1111111-1111-4111-8111-11111111111}",
            "11111111-1111-4111-8111-1111111111\r\n",
        ] {
            assert!(SessionId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn nothing_that_could_change_a_target_is_an_identifier() {
        for bad in ["", "a/b", "..", "a b", "a?b", "a&b", "a#b", "a%2f", "a\r\nX: y", "é", "a_b", &"a".repeat(65)] {
            assert!(EventId::parse(bad).is_err(), "{bad:?}");
        }
        for bad in ["", ".", "..", "-a", "a/b", "a b", "a%2f", "a\n", "é", &"a".repeat(65)] {
            assert!(ProfileName::parse(bad).is_err(), "{bad:?}");
        }
        assert!(EventId::parse("0b23a082-3c53-4ae3-98a6-3fb16b88db40").is_ok());
        assert!(ProfileName::parse("gatepost-choice-1").is_ok());
    }
}
