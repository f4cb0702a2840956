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
    /// What is wrong and what would be right, without the value.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(formatter, "line {line}: ")?;
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
        let line = span.map(|span| self.line_of(span.start));
        self.mistakes.push(Mistake { key: key.into(), line, problem: problem.into() });
    }

    /// The mistakes in the order of the file; those without a line last.
    pub(crate) fn finish(mut self) -> Vec<Mistake> {
        self.mistakes.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
        self.mistakes
    }

    fn line_of(&self, offset: usize) -> usize {
        self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
    }
}
