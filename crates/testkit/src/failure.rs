//! The one error of the test tools: a sentence that says what went wrong.

use std::fmt;

/// What the test tools answer.
pub type Outcome<T> = Result<T, Failure>;

/// Why a test tool could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure with these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Says what was being done when an operation failed.
pub trait Doing<T> {
    /// Turns the error into a [`Failure`] that starts with these words.
    ///
    /// # Errors
    /// When there was one.
    fn doing(self, what: &str) -> Outcome<T>;
}

impl<T, E: fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Outcome<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}
