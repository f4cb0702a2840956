//! The prompt line: text and a place in it.

use crate::args::MAX_PROMPT_BYTES;

/// What is being written.
#[derive(Debug, Default)]
pub(in crate::console) struct PromptLine {
    text: String,
    /// Byte position, on a character's edge.
    at: usize,
}

impl PromptLine {
    pub(in crate::console) fn text(&self) -> &str {
        &self.text
    }

    /// What stands before the cursor, and after it.
    pub(in crate::console) fn around(&self) -> (&str, &str) {
        self.text.split_at(self.at)
    }

    pub(in crate::console) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Writes at the cursor; false, and nothing is written, when it would be more than a prompt may hold.
    pub(in crate::console) fn write(&mut self, text: &str) -> bool {
        if self.text.len() + text.len() > MAX_PROMPT_BYTES {
            return false;
        }
        self.text.insert_str(self.at, text);
        self.at += text.len();
        true
    }

    pub(in crate::console) fn left(&mut self) {
        self.at -= self.before();
    }

    pub(in crate::console) fn right(&mut self) {
        self.at += self.after();
    }

    pub(in crate::console) fn home(&mut self) {
        self.at = 0;
    }

    pub(in crate::console) fn end(&mut self) {
        self.at = self.text.len();
    }

    pub(in crate::console) fn backspace(&mut self) {
        let start = self.at - self.before();
        self.text.replace_range(start..self.at, "");
        self.at = start;
    }

    pub(in crate::console) fn delete(&mut self) {
        let end = self.at + self.after();
        self.text.replace_range(self.at..end, "");
    }

    fn before(&self) -> usize {
        self.around().0.chars().next_back().map_or(0, char::len_utf8)
    }

    fn after(&self) -> usize {
        self.around().1.chars().next().map_or(0, char::len_utf8)
    }
}
