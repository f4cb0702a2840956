//! Mistakes, collected.

use std::fmt;
use std::ops::Range;

/// One thing to correct in the configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Path of the key, such as `agent_server.max_servers`; empty when the file is no TOML there.
    pub key: String,
    /// Line, from 1; `None` when it is something that is missing from the file as a whole.
    pub line: Option<usize>,
    /// Column in that line, in characters from 1.
    pub column: Option<usize>,
    /// What is wrong and what would be right, without the value.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(formatter, "line {line}, column {column}: ")?,
            (Some(line), None) => write!(formatter, "line {line}: ")?,
            (None, Some(_) | None) => {}
        }
        if !self.key.is_empty() {
            write!(formatter, "{}: ", self.key)?;
        }
        formatter.write_str(&self.problem)
    }
}

/// Where the readers of all sections leave what they find wrong.
pub(crate) struct Report<'a> {
    text: &'a str,
    mistakes: Vec<Mistake>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, mistakes: Vec::new() }
    }

    pub(crate) fn add(&mut self, key: impl Into<String>, span: Option<Range<usize>>, problem: impl Into<String>) {
        let (line, column) = span.map(|span| self.place_of(span.start)).unzip();
        self.mistakes.push(Mistake { key: key.into(), line, column, problem: problem.into() });
    }

    /// The mistakes in the order of the file; those without a line last.
    pub(crate) fn finish(mut self) -> Vec<Mistake> {
        self.mistakes.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
        self.mistakes
    }

    /// Line and column of a byte.
    fn place_of(&self, offset: usize) -> (usize, usize) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        (line, String::from_utf8_lossy(&before[begin..]).chars().count() + 1)
    }
}
