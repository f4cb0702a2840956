//! The query of a request: known names, each once, decoded strictly.

use rules::refusal::{Refusal, RefusalCode};

use crate::limits::{CURSOR_MAX_BYTES, QUERY_MAX_BYTES};

/// Checked pairs of a query.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(&'static str, String)>,
}

impl Query {
    /// Splits and decodes, refusing names that are unknown or stand twice.
    pub(crate) fn parse(query: Option<&str>, known: &'static [&'static str]) -> Result<Self, Refusal> {
        let mut pairs: Vec<(&'static str, String)> = Vec::new();
        let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(Self { pairs }) };
        if query.len() > QUERY_MAX_BYTES {
            return Err(Refusal::new(
                RefusalCode::TooLong,
                format!("the query is longer than {QUERY_MAX_BYTES} bytes"),
            ));
        }
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(name) = known.iter().find(|known| **known == name) else {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Refusal::new(
                    RefusalCode::UnknownField,
                    format!("the query holds a name that is not known here; known: {known}"),
                ));
            };
            if pairs.iter().any(|(earlier, _)| earlier == name) {
                return Err(bad_request(format!("the query holds `{name}` twice")));
            }
            pairs.push((name, decode(name, value)?));
        }
        Ok(Self { pairs })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// `true` or `false`, absent is false.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(invalid(format!("`{name}` must be true or false"))),
        }
    }

    /// A whole number within bounds, or the default.
    pub(crate) fn number(&self, name: &str, default: u64, least: u64, greatest: u64) -> Result<u64, Refusal> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let digits_only = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u64>() {
            Ok(number) if digits_only && (least..=greatest).contains(&number) => Ok(number),
            Ok(_) | Err(_) => Err(invalid(format!("`{name}` must be a whole number from {least} to {greatest}"))),
        }
    }

    /// A cursor, if given.
    pub(crate) fn cursor(&self, name: &str) -> Result<Option<String>, Refusal> {
        self.get(name).map(check_cursor).transpose()
    }
}

/// Bounds of a cursor: what it means is the controller's.
pub(crate) fn check_cursor(text: &str) -> Result<String, Refusal> {
    if text.is_empty() || text.len() > CURSOR_MAX_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Refusal::new(
            RefusalCode::CursorInvalid,
            "this is no cursor: use `next_cursor` or an event's `cursor`, or leave it out to start at the beginning",
        ));
    }
    Ok(text.to_owned())
}

fn decode(name: &str, value: &str) -> Result<String, Refusal> {
    let bad = || bad_request(format!("`{name}` is not well percent-encoded UTF-8"));
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = rest.next().and_then(hex).ok_or_else(bad)?;
            let low = rest.next().and_then(hex).ok_or_else(bad)?;
            bytes.push(high * 16 + low);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn bad_request(detail: String) -> Refusal {
    Refusal::new(RefusalCode::BadRequest, detail)
}

fn invalid(detail: String) -> Refusal {
    Refusal::new(RefusalCode::InvalidValue, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["after", "limit", "full"];

    fn code(query: &str) -> RefusalCode {
        Query::parse(Some(query), KNOWN).map(|_| ()).unwrap_err().code
    }

    #[test]
    fn reads_known_names_once() {
        let query = Query::parse(Some("after=a%2Bb+c&limit=7&full=true"), KNOWN).unwrap();
        assert_eq!(query.cursor("after").unwrap().as_deref(), Some("a+b+c"));
        assert_eq!(query.number("limit", 1, 1, 10).unwrap(), 7);
        assert!(query.flag("full").unwrap());
        let nothing = Query::parse(None, KNOWN).unwrap();
        assert_eq!(nothing.cursor("after").unwrap(), None);
        assert_eq!(nothing.number("limit", 5, 1, 10).unwrap(), 5);
        assert!(!nothing.flag("full").unwrap());
    }

    #[test]
    fn refuses_the_rest() {
        assert_eq!(code("x=1"), RefusalCode::UnknownField);
        assert_eq!(code("&"), RefusalCode::UnknownField);
        assert_eq!(code("limit=1&limit=1"), RefusalCode::BadRequest);
        assert_eq!(code("after=%"), RefusalCode::BadRequest);
        assert_eq!(code("after=%zz"), RefusalCode::BadRequest);
        assert_eq!(code("after=%ff"), RefusalCode::BadRequest);
        assert_eq!(code(&"a".repeat(1025)), RefusalCode::TooLong);
    }

    #[test]
    fn numbers_are_plain_digits_within_bounds() {
        for text in ["", "0", "11", "+5", "-1", "1.0", "0x1", "99999999999999999999", "1e1", "٣"] {
            let query = Query { pairs: vec![("limit", text.to_owned())] };
            assert!(query.number("limit", 1, 1, 10).is_err(), "{text}");
        }
    }

    #[test]
    fn cursors_are_bounded_and_graphic() {
        assert!(check_cursor(&"c".repeat(256)).is_ok());
        for text in ["", " ", "a b", "a\nb", "é", &"c".repeat(257)] {
            assert!(check_cursor(text).is_err(), "{text:?}");
        }
    }
}
