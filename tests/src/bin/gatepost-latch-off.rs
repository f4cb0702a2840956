//! The daemon as it ships, but for the latch inside the server, which lets everything run. For tests of the gate alone.

use agent_contract::Contract;
use std::process::ExitCode;
use testkit::guards::{Guard, without};

fn main() -> ExitCode {
    gatepost::run(without_latch)
}

#[expect(clippy::panic, reason = "a start-up module that this does not know ends the test daemon")]
fn without_latch(reviewed: &'static Contract) -> &'static Contract {
    let changed = without(&[Guard::Latch], reviewed.startup_files()).map_err(|why| why.to_string()).and_then(|files| {
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
