//! The reviewed contract with another text of its start-up module, for daemons of the tests.

use agent_contract::Contract;
use testkit::Outcome;

/// The contract with its start-up files changed.
///
/// # Panics
/// When the start-up module is not as the change knows it: the test daemon then ends.
#[must_use]
#[expect(clippy::panic, reason = "a start-up module that this does not know ends the test daemon")]
pub fn changed_contract(
    reviewed: &'static Contract,
    change: impl Fn(&[(&str, &str)]) -> Outcome<Vec<(String, String)>>,
) -> &'static Contract {
    let changed = change(reviewed.startup_files()).map_err(|why| why.to_string()).and_then(|files| {
        // Once in the life of a process.
        let files: Vec<(&'static str, &'static str)> =
            files.into_iter().map(|(name, text)| (&*name.leak(), &*text.leak())).collect();
        reviewed.with_startup_files(files.leak()).map_err(|why| why.to_string())
    });
    match changed {
        Ok(contract) => Box::leak(Box::new(contract)),
        Err(why) => panic!("{why}"),
    }
}
