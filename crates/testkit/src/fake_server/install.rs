//! Laying out a fake server as an own executable in a Python environment of its own.

use super::plan::Plan;
use crate::daemon::built_binary;
use crate::failure::{Doing, Outcome};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The plan's file, in the environment's directory.
pub(super) const PLAN_NAME: &str = "plan.json";
/// The file to which a launched server adds the name of each route that it is asked for.
pub(super) const ROUTES_NAME: &str = "routes.txt";
/// The distributions whose versions a daemon reads.
const DISTRIBUTIONS: [&str; 4] = ["openhands_agent_server", "openhands_sdk", "openhands_tools", "openhands_workspace"];

/// Lays out `bin/agent-server` and the `dist-info` of the four distributions at this version below a directory, and
/// answers the executable for `[agent_server] executable`. The server behaves until [`set_plan`] says otherwise.
///
/// # Errors
/// When the binary cannot be built or a file not written.
pub fn install(directory: &Path, version: &str) -> Outcome<PathBuf> {
    let versions = DISTRIBUTIONS.map(|name| (name, version));
    install_distributions(directory, &versions)
}

/// The same with a version for each distribution by its file name; one left out is not installed.
///
/// # Errors
/// When the binary cannot be built or a file not written.
pub fn install_distributions(directory: &Path, versions: &[(&str, &str)]) -> Outcome<PathBuf> {
    let binary = built_binary("testkit", "fake-agent-server")?;
    make_dir(directory)?;
    let directory = directory.canonicalize().doing("the directory cannot be found")?;
    let bin = directory.join("bin");
    make_dir(&bin)?;
    let program = bin.join("fake-agent-server");
    fs::copy(&binary, &program).doing("the fake server could not be copied")?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).doing("a mode could not be set")?;
    // The interpreter that the script names: it moves the two sockets to standard input and output, since safe code
    // can only take descriptors from there, and closes their old numbers.
    let interpreter = format!(
        "#!/bin/bash\neval \"exec '{}' \\\"\\$@\\\" 0<&$GATEPOST_LISTEN_FD 1>&$GATEPOST_CONTROL_FD \
         $GATEPOST_LISTEN_FD<&- $GATEPOST_CONTROL_FD>&-\"\n",
        program.display()
    );
    write_executable(&bin.join("python3"), &interpreter)?;
    write_executable(&bin.join("python"), &interpreter)?;
    let script = bin.join("agent-server");
    write_executable(&script, &format!("#!{}\n", bin.join("python3").display()))?;
    let packages = directory.join("lib/python3.12/site-packages");
    for (name, version) in versions {
        let info = packages.join(format!("{name}-{version}.dist-info"));
        make_dir(&info)?;
        let metadata = format!("Metadata-Version: 2.1\nName: {}\nVersion: {version}\n", name.replace('_', "-"));
        fs::write(info.join("METADATA"), metadata).doing("METADATA could not be written")?;
    }
    fs::write(directory.join("pyvenv.cfg"), "home = /usr/bin\nversion = 3.12.0\n").doing("pyvenv.cfg")?;
    Ok(script)
}

/// Writes the plan that the server below this directory follows: at once where it runs, and from its next start on.
///
/// # Errors
/// When it cannot be written.
pub fn set_plan(directory: &Path, plan: &Plan) -> Outcome<()> {
    let text = serde_json::to_string_pretty(plan).doing("the plan cannot be written")?;
    let part = directory.join(format!("{PLAN_NAME}.part"));
    fs::write(&part, text).doing("the plan cannot be written")?;
    // A running server never sees half a plan.
    fs::rename(part, directory.join(PLAN_NAME)).doing("the plan cannot be put in place")
}

/// The routes that the servers launched below this directory were asked for, oldest first, by their names in the
/// contract; empty for a request outside it.
///
/// # Errors
/// When the record cannot be read.
pub fn routes_asked(directory: &Path) -> Outcome<Vec<String>> {
    match fs::read_to_string(directory.join(ROUTES_NAME)) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).doing("the record of requests cannot be read"),
    }
}

/// How many of these requests an operation made: up to its first change all of them, and from there on all but reads of events,
/// which follow the session for its readers.
#[must_use]
pub fn requests_of_operation(asked: &[String]) -> usize {
    let is_change = |route: &String| !matches!(route.as_str(), "events_page" | "conversation" | "events_stream");
    let first = asked.iter().position(is_change).unwrap_or(asked.len());
    first + asked.iter().skip(first).filter(|route| *route != "events_page").count()
}

fn make_dir(path: &Path) -> Outcome<()> {
    fs::create_dir_all(path).doing("a directory could not be made")?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).doing("a mode could not be set")
}

fn write_executable(path: &Path, text: &str) -> Outcome<()> {
    fs::write(path, text).doing("a script could not be written")?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).doing("a mode could not be set")
}
