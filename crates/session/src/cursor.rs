//! Where a reader of events stands: opaque outside, session, epoch and number inside.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rules::refusal::{Refusal, RefusalCode};

/// A place in the journal of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Of the journal's file: another one began all its epochs anew.
    pub(crate) lineage: u64,
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
}

/// What a given cursor turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// Of this session.
    Own(Cursor),
    /// Of another session.
    Foreign,
}

impl Cursor {
    /// The text that clients carry.
    pub(crate) fn encode(self, session_id: &str) -> String {
        URL_SAFE_NO_PAD.encode(format!("2:{session_id}:{}:{}:{}", self.lineage, self.epoch, self.seq))
    }

    /// Reads a client's text.
    ///
    /// # Errors
    /// `cursor_invalid` for anything that was never given out.
    pub(crate) fn decode(session_id: &str, text: &str) -> Result<Given, Refusal> {
        let invalid = || Refusal::new(RefusalCode::CursorInvalid, "the cursor is not one that was given out");
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid())?;
        let decoded = String::from_utf8(bytes).map_err(|_| invalid())?;
        let parts: Vec<&str> = decoded.split(':').collect();
        let (id, lineage, epoch, seq) = match parts.as_slice() {
            // Given out before files had a number.
            ["1", id, epoch, seq] => (id, &"0", epoch, seq),
            ["2", id, lineage, epoch, seq] => (id, lineage, epoch, seq),
            _ => return Err(invalid()),
        };
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| invalid());
        let cursor = Self { lineage: number(lineage)?, epoch: number(epoch)?, seq: number(seq)? };
        Ok(if *id == session_id { Given::Own(cursor) } else { Given::Foreign })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_out_is_read_back() {
        let cursor = Cursor { lineage: 7, epoch: 2, seq: 41 };
        assert_eq!(Cursor::decode("s", &cursor.encode("s")).unwrap(), Given::Own(cursor));
    }

    #[test]
    fn a_cursor_of_before_there_were_lineages_has_none() {
        let old = URL_SAFE_NO_PAD.encode("1:s:2:41");
        assert_eq!(Cursor::decode("s", &old).unwrap(), Given::Own(Cursor { lineage: 0, epoch: 2, seq: 41 }));
    }

    #[test]
    fn a_cursor_of_another_session_is_foreign() {
        let text = Cursor { lineage: 7, epoch: 1, seq: 1 }.encode("other");
        assert_eq!(Cursor::decode("s", &text).unwrap(), Given::Foreign);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "x",
            "!!",
            &URL_SAFE_NO_PAD.encode("1:s:1"),
            &URL_SAFE_NO_PAD.encode("2:s:1:1"),
            &URL_SAFE_NO_PAD.encode("2:s:-1:1:1"),
            &URL_SAFE_NO_PAD.encode("3:s:1:1:1"),
            &URL_SAFE_NO_PAD.encode("1:s:-1:1"),
        ] {
            assert_eq!(Cursor::decode("s", text).unwrap_err().code, RefusalCode::CursorInvalid, "{text}");
        }
    }
}
