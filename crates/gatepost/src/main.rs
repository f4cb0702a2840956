//! The gatepost binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    gatepost::run(gatepost::as_reviewed)
}
