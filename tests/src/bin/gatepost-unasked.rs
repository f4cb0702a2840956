//! The daemon as it ships, on a server that runs some commands without asking anybody. For tests of the tripwire.

use gatepost_tests::changed_contract;
use std::process::ExitCode;
use testkit::guards::unasked;

fn main() -> ExitCode {
    gatepost::run(|reviewed| changed_contract(reviewed, unasked))
}
