//! From the bytes of a terminal to keys and pastes.

use vte::{Params, Parser, Perform};

use super::keys::Key;
use crate::args::MAX_PROMPT_BYTES;

const ESCAPE: u8 = 0x1b;
/// Ctrl-C, which also ends a paste whose end never came.
const END_OF_TEXT: u8 = 0x03;

/// What a person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted, as bracketed paste marks it. It never decides.
    Paste(String),
    /// More was pasted than a prompt may hold; none of it is kept.
    PasteTooLong,
}

/// Reads bytes in pieces of any size.
pub(super) struct Decoder {
    parser: Parser,
    seen: Seen,
    after_escape: bool,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { parser: Parser::new(), seen: Seen::default(), after_escape: false }
    }

    /// What these bytes, after all before them, are.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        for byte in bytes {
            // A control character is never the rest of a sequence that a key sends: the escape was a key.
            if self.after_escape && *byte < 0x20 {
                self.escape_alone();
            }
            self.parser.advance(&mut self.seen, &[*byte]);
            self.after_escape = *byte == ESCAPE;
        }
        std::mem::take(&mut self.seen.inputs)
    }

    /// Whether the last byte may be the Escape key, or the beginning of what another key sends.
    pub(super) fn is_undecided(&self) -> bool {
        self.after_escape
    }

    /// Nothing came after it: it was the Escape key.
    pub(super) fn nothing_follows(&mut self) -> Vec<Input> {
        self.escape_alone();
        std::mem::take(&mut self.seen.inputs)
    }

    fn escape_alone(&mut self) {
        self.after_escape = false;
        self.parser = Parser::new();
        if self.seen.paste.is_none() {
            self.seen.inputs.push(Input::Key(Key::Escape));
        }
    }
}

#[derive(Default)]
struct Seen {
    inputs: Vec<Input>,
    /// The paste under way; `Err` when it is too long.
    paste: Option<Result<String, ()>>,
    /// The next character names a key of the keypad or an arrow.
    after_ss3: bool,
    /// A line feed now belongs to the line break before it.
    after_return: bool,
}

impl Seen {
    fn key(&mut self, key: Key) {
        if self.paste.is_none() {
            self.inputs.push(Input::Key(key));
        }
    }

    /// Adds to the paste, if there is one.
    fn pasted(&mut self, c: char) -> bool {
        match &mut self.paste {
            Some(Ok(text)) if text.len() + c.len_utf8() <= MAX_PROMPT_BYTES => text.push(c),
            Some(paste) => *paste = Err(()),
            None => return false,
        }
        true
    }

    fn paste_ended(&mut self) {
        match self.paste.take() {
            Some(Ok(text)) => self.inputs.push(Input::Paste(text)),
            Some(Err(())) => self.inputs.push(Input::PasteTooLong),
            None => {}
        }
    }
}

impl Perform for Seen {
    fn print(&mut self, c: char) {
        self.after_return = false;
        if std::mem::take(&mut self.after_ss3) {
            if let Some(key) = arrow(c) {
                self.key(key);
            }
        } else if !self.pasted(c) {
            self.key(if c == '\u{7f}' { Key::Backspace } else { Key::Char(c) });
        }
    }

    fn execute(&mut self, byte: u8) {
        let after_return = std::mem::take(&mut self.after_return);
        match byte {
            END_OF_TEXT if self.paste.is_some() => self.paste_ended(),
            b'\n' if self.paste.is_some() && after_return => {}
            b'\r' | b'\n' if self.pasted('\n') => self.after_return = byte == b'\r',
            b'\t' if self.pasted('\t') => {}
            _ if self.paste.is_some() => {}
            b'\r' => self.key(Key::Enter),
            b'\t' => self.key(Key::Tab),
            0x7f => self.key(Key::Backspace),
            1..=26 => self.key(Key::Ctrl(char::from(byte + b'a' - 1))),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, _intermediates: &[u8], _ignore: bool, byte: u8) {
        self.after_ss3 = byte == b'O';
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        if !intermediates.is_empty() {
            return;
        }
        let number = params.iter().next().and_then(|group| group.first().copied()).unwrap_or(0);
        match (action, number) {
            ('~', 200) => self.paste = Some(Ok(String::new())),
            ('~', 201) => self.paste_ended(),
            ('~', 1 | 7) => self.key(Key::Home),
            ('~', 4 | 8) => self.key(Key::End),
            ('~', 3) => self.key(Key::Delete),
            ('~', 5) => self.key(Key::PageUp),
            ('~', 6) => self.key(Key::PageDown),
            ('Z', _) => self.key(Key::BackTab),
            _ => {
                if let Some(key) = arrow(action) {
                    self.key(key);
                }
            }
        }
    }
}

fn arrow(c: char) -> Option<Key> {
    let key = match c {
        'A' => Key::Up,
        'B' => Key::Down,
        'C' => Key::Right,
        'D' => Key::Left,
        'H' => Key::Home,
        'F' => Key::End,
        _ => return None,
    };
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<Input> {
        Decoder::new().feed(bytes)
    }

    fn keys(keys: &[Key]) -> Vec<Input> {
        keys.iter().map(|key| Input::Key(*key)).collect()
    }

    #[test]
    fn keys_are_read_whole_and_in_pieces() {
        let table: [(&[u8], &[Key]); 8] = [
            (b"aA?", &[Key::Char('a'), Key::Char('A'), Key::Char('?')]),
            ("é漢".as_bytes(), &[Key::Char('é'), Key::Char('漢')]),
            (
                b"\r\t\x7f\x08\n\x03",
                &[Key::Enter, Key::Tab, Key::Backspace, Key::Ctrl('h'), Key::Ctrl('j'), Key::Ctrl('c')],
            ),
            (b"\x1b[A\x1b[B\x1bOC\x1b[1;5D", &[Key::Up, Key::Down, Key::Right, Key::Left]),
            (
                b"\x1b[5~\x1b[6~\x1b[H\x1bOF\x1b[3~\x1b[Z",
                &[Key::PageUp, Key::PageDown, Key::Home, Key::End, Key::Delete, Key::BackTab],
            ),
            (b"\x1b\r", &[Key::Escape, Key::Enter]),
            (b"\x1b]0;yes\x07\x1b[?1;2c", &[]),
            (b"\x1b[31;1R", &[]),
        ];
        for (bytes, expected) in table {
            assert_eq!(read(bytes), keys(expected), "{bytes:?}");
            let mut decoder = Decoder::new();
            let pieces: Vec<Input> = bytes.iter().flat_map(|byte| decoder.feed(&[*byte])).collect();
            assert_eq!(pieces, keys(expected), "{bytes:?} in pieces");
        }
    }

    #[test]
    fn an_escape_that_nothing_follows_is_the_key() {
        let mut decoder = Decoder::new();
        assert_eq!(decoder.feed(b"\x1b"), []);
        assert!(decoder.is_undecided());
        assert_eq!(decoder.nothing_follows(), keys(&[Key::Escape]));
        assert_eq!(decoder.feed(b"[A"), keys(&[Key::Char('['), Key::Char('A')]));
    }

    #[test]
    fn a_paste_is_one_thing_and_holds_no_key() {
        let pasted = read(b"\x1b[200~one\r\ntwo\tA\x1b[A\x07yes\r\x1b[201~x");
        assert_eq!(pasted, [Input::Paste("one\ntwo\tAyes\n".to_owned()), Input::Key(Key::Char('x'))]);
        assert_eq!(
            read(b"\x1b[200~never ended\x03q"),
            [Input::Paste("never ended".to_owned()), Input::Key(Key::Char('q'))]
        );
        let mut long = b"\x1b[200~".to_vec();
        long.extend(std::iter::repeat_n(b'a', MAX_PROMPT_BYTES + 1));
        long.extend(b"\x1b[201~");
        assert_eq!(read(&long), [Input::PasteTooLong]);
    }
}
