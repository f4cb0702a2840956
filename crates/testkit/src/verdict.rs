//! How a tool of the kit says what it found.

use crate::failure::Outcome;
use serde_json::Value;
use std::process::ExitCode;

/// What a tool found.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// For programs.
    pub json: Value,
    /// For people.
    pub text: String,
    /// Whether everything was as it must be.
    pub is_sound: bool,
}

/// Prints what was found, and answers 0 when it is sound, 1 when it is not, 2 when the run could not be made.
#[must_use]
pub fn tell(tool: &str, json: bool, found: Outcome<Verdict>) -> ExitCode {
    let verdict = match found {
        Ok(verdict) => verdict,
        Err(why) => {
            eprintln!("{tool}: {why}");
            return ExitCode::from(2);
        }
    };
    if json {
        println!("{}", verdict.json);
    } else {
        print!("{}", verdict.text);
    }
    if verdict.is_sound { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
