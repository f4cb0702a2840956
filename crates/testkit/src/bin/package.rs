//! `package [--out DIR] [--json]`: see [`testkit::package`]. The release's package, in `target/packages/debian` unless told.
//!
//! Exits with 0 when the package is there, 1 when its binary is larger than it may be, 2 when it could not be built.

use std::path::PathBuf;
use std::process::ExitCode;
use testkit::daemon::target_dir;
use testkit::package::{Build, build};
use testkit::verdict::run_tool;

const USAGE: &str = "package [--out DIR] [--json]";

fn main() -> ExitCode {
    run_tool("package", USAGE, parse(std::env::args().skip(1)), |directory, _| build(Build::Release, directory))
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<(PathBuf, bool)> {
    let (mut directory, mut json) = (target_dir().join("packages/debian"), false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => json = true,
            "--out" => directory = std::path::absolute(words.next()?).ok()?,
            _ => return None,
        }
    }
    Some((directory, json))
}
