//! The daemon as it ships, but for the latch inside the server, which lets everything run. For tests of the gate alone.

use agent_contract::Contract;
use std::process::ExitCode;
use testkit::guards::{Guard, without};

fn main() -> ExitCode {
    gatepost::run(without_latch)
}

#[expect(clippy::panic, reason = "a start-up module that this does not know ends the test daemon")]
fn without_latch(reviewed: &'static Contract) -> &'static Contract {
    let changed = without(&[Guard::Latch], reviewed.startup_module()).map_err(|why| why.to_string()).and_then(|text| {
        // Once in the life of a process.
        reviewed.with_startup_module(text.leak()).map_err(|why| why.to_string())
    });
    match changed {
        Ok(contract) => Box::leak(Box::new(contract)),
        Err(why) => panic!("{why}"),
    }
}
