//! Schemathesis, in the locked versions, in an environment below the target directory.

use std::path::PathBuf;
use std::process::Command;

use gatepost_tests::{install_step, locked_tool};
use testkit::daemon::workspace_root;

pub(crate) fn command() -> Command {
    let mut command = Command::new(environment().join("bin/schemathesis"));
    command.env("NO_COLOR", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn environment() -> PathBuf {
    let requirements = workspace_root().join("tests/tests/openapi/requirements.txt");
    let directory = locked_tool("schemathesis", &requirements, |directory| {
        let environment = directory.join("environment");
        install_step(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment));
        let options = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r"];
        install_step(Command::new(environment.join("bin/python")).args(options).arg(&requirements));
    });
    directory.join("environment")
}
