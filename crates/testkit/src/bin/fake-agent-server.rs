//! A fake Agent Server that a daemon launches in place of the real one.

use std::process::ExitCode;

fn main() -> ExitCode {
    testkit::fake_server::launched_main().unwrap_or_else(|why| {
        eprintln!("fake server: {why}");
        ExitCode::from(2)
    })
}
