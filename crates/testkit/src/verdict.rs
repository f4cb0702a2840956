//! How a tool of the kit is run, and how it says what it found.

use crate::failure::Outcome;
use serde_json::Value;
use std::process::ExitCode;

/// What a tool found.
pub trait Findings {
    /// Whether everything was as it must be.
    fn is_sound(&self) -> bool;

    /// For programs: one object.
    fn json(&self) -> Value;

    /// For people.
    fn text(&self) -> String;
}

/// Plays what was asked for on the command line, with whether an object is wanted, and prints what was found. Answers 0
/// when it is sound, 1 when it is not, 2 when nothing understandable was asked for or the run could not be made.
#[must_use]
pub fn run_tool<O, F: Findings>(
    tool: &str,
    usage: &str,
    asked: Option<(O, bool)>,
    play: impl FnOnce(&O, &(dyn Fn(&str) + Sync)) -> Outcome<F>,
) -> ExitCode {
    let Some((options, json)) = asked else {
        eprintln!("usage: {usage}");
        return ExitCode::from(2);
    };
    let found = match play(&options, &|line| eprintln!("{line}")) {
        Ok(found) => found,
        Err(why) => {
            eprintln!("{tool}: {why}");
            return ExitCode::from(2);
        }
    };
    if json {
        println!("{}", found.json());
    } else {
        print!("{}", found.text());
    }
    if found.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
