//! What came of an attempt, and when that cannot be told: one that was not made was not stopped by anything.

use super::attempts::{Attempt, Means};
use super::play::Play;
use crate::failure::Outcome;
use serde_json::Value;
use std::fs;

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// It was seen from outside to get through.
    GotThrough,
    /// It was made, and did not.
    Stopped,
    /// It was not made to its end, or was let in and then not seen: why nothing can be said.
    Undecided(String),
    /// What it attacks had been taken away.
    NoTarget,
}

impl Came {
    /// Whether it got through, where that is known.
    #[must_use]
    pub fn is_through(&self) -> Option<bool> {
        match self {
            Self::GotThrough => Some(true),
            Self::Stopped => Some(false),
            Self::Undecided(_) | Self::NoTarget => None,
        }
    }

    /// For programs: whether it got through, `null` where that is not known.
    pub(super) fn json(&self) -> Value {
        self.is_through().into()
    }

    /// For people.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::GotThrough => "GOT THROUGH",
            Self::Stopped => "blocked",
            Self::Undecided(_) => "undecided",
            Self::NoTarget => "no target",
        }
    }

    /// Of an attempt that was not seen to get through, by what it says of how far it came.
    fn unseen(word: Option<&str>) -> Self {
        let undecided = |why: &str| Self::Undecided(why.to_owned());
        match word {
            None => undecided("nothing shows that it was begun"),
            Some("begun") => undecided("it did not come to its end"),
            Some("let in") => undecided("it was let in, and nothing came of it"),
            Some(word) if word == "tried" || word.starts_with("refused: ") => Self::Stopped,
            Some(word) => undecided(word),
        }
    }
}

impl Play<'_> {
    /// What came of this attempt.
    pub(super) fn judged(&self, attempt: &Attempt) -> Outcome<Came> {
        if self.got_through(attempt)? {
            return Ok(Came::GotThrough);
        }
        let said =
            |name: &str| fs::read_to_string(self.stage.workspace().join("got").join(format!("{name}.said"))).ok();
        Ok(match attempt.means {
            Means::Editor if self.edited.contains(attempt.name) => Came::Stopped,
            Means::Editor => Came::Undecided("no such call was proposed".to_owned()),
            Means::Shell | Means::Plugin | Means::Skill => {
                // It has a second part, by the routes.
                let last = if attempt.name == "fsmonitor_by_route" { "look_at_changes" } else { attempt.name };
                let first = Came::unseen(said(attempt.name).as_deref());
                if first == Came::Stopped { Came::unseen(said(last).as_deref()) } else { first }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_made_was_not_stopped() {
        for word in ["tried", "refused: PermissionError: no"] {
            assert_eq!(Came::unseen(Some(word)), Came::Stopped, "{word}");
        }
        for word in [None, Some(""), Some("begun"), Some("let in"), Some("not made: TimeoutError: timed out")] {
            assert!(matches!(Came::unseen(word), Came::Undecided(_)), "{word:?}");
        }
        assert_eq!(Came::unseen(None).json(), Value::Null);
    }
}
