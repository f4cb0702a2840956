//! A question that stands over everything until it is answered or withdrawn.

use crate::args::MAX_REASON_BYTES;

/// Longest answer, in bytes: the word, and a reason.
const MAX_ANSWER_BYTES: usize = 2_100;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::console) enum Subject {
    /// Whether this batch runs.
    Approve {
        approval_id: String,
        actions: usize,
    },
    /// Whether this batch is rejected.
    Reject {
        approval_id: String,
        actions: usize,
    },
    Interrupt,
    Resume,
}

impl Subject {
    /// The word that agrees, typed whole.
    pub(in crate::console) fn word(&self) -> &'static str {
        match self {
            Self::Approve { .. } => "approve",
            Self::Reject { .. } => "reject",
            Self::Interrupt => "interrupt",
            Self::Resume => "resume",
        }
    }
}

/// A question and what was typed so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::console) struct Question {
    pub(in crate::console) subject: Subject,
    pub(in crate::console) typed: String,
}

/// What an answer comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::console) enum Answer {
    Agreed {
        reason: Option<String>,
    },
    ReasonTooLong,
    /// Anything but the word.
    NotTheWord,
}

impl Question {
    pub(in crate::console) fn new(subject: Subject) -> Self {
        Self { subject, typed: String::new() }
    }

    pub(in crate::console) fn write(&mut self, c: char) {
        if self.typed.len() + c.len_utf8() <= MAX_ANSWER_BYTES {
            self.typed.push(c);
        }
    }

    pub(in crate::console) fn answer(&self) -> Answer {
        let typed = self.typed.trim();
        let Some(rest) = typed.strip_prefix(self.subject.word()) else {
            return Answer::NotTheWord;
        };
        let reason = rest.trim();
        let takes_reason = matches!(self.subject, Subject::Reject { .. });
        if reason.is_empty() {
            Answer::Agreed { reason: None }
        } else if !takes_reason || !rest.starts_with(' ') {
            Answer::NotTheWord
        } else if reason.len() > MAX_REASON_BYTES {
            Answer::ReasonTooLong
        } else {
            Answer::Agreed { reason: Some(reason.to_owned()) }
        }
    }
}
