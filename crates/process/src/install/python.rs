//! Finding a Python the Agent Server runs on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::environment::Environment;
use super::tool::{Tool, run, words};

/// A candidate that answers slower than this is not used.
const ASK_LIMIT_MS: u64 = 20_000;
/// Minor versions of Python 3 that the reviewed versions run on.
const MINORS: [u32; 2] = [13, 12];
/// Reasons that the error repeats at most.
const MAX_REASONS: usize = 12;

/// A usable interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// The interpreter itself, never a version manager's stand-in for it.
    pub path: PathBuf,
    /// Its version, such as `3.12.4`.
    pub version: String,
    /// It can make an environment with pip in it without help.
    pub has_venv: bool,
}

/// No interpreter was usable.
#[derive(Debug, thiserror::Error)]
#[error(
    "no usable Python found; install Python 3.12 or 3.13 (Debian 13 or Ubuntu 24.04 and later: python3 and \
     python3-venv; macOS: `brew install python@3.13`; or `uv python install 3.12`), or name one in `[agent_server] python`. \
     Tried:\n{}",
    .tried.join("\n")
)]
pub struct PythonNotFound {
    /// Each candidate and why it was passed over.
    pub tried: Vec<String>,
}

#[derive(Deserialize)]
struct Answer {
    version: [u32; 3],
    base: PathBuf,
    implementation: String,
    venv: bool,
}

const QUESTION: &str = "import sys, json, importlib.util as u; print(json.dumps({'version': list(sys.version_info[:3]), \
     'base': getattr(sys, '_base_executable', sys.executable), 'implementation': sys.implementation.name, \
     'venv': all(u.find_spec(n) is not None for n in ('venv', 'ensurepip'))}))";

/// Ask an interpreter what it is; the error says why it cannot be used.
fn ask(candidate: &Path, environment: &Environment, needs_venv: bool) -> Result<Python, String> {
    let tool = Tool {
        program: candidate,
        args: words([&"-I", &"-c", &QUESTION]),
        env: environment.variables(),
        cwd: Path::new("/"),
        stdin: None,
        limit: Duration::from_millis(ASK_LIMIT_MS),
    };
    let output = run(tool, &|_| {}).map_err(|error| error.to_string())?;
    if !output.status.success() {
        let why = output.tail.lines().next_back().unwrap_or_default().to_owned();
        return Err(format!("does not run ({}) {why}", output.status));
    }
    let answer: Answer = serde_json::from_str(output.answer.trim()).map_err(|_| "gave no answer".to_owned())?;
    let [major, minor, patch] = answer.version;
    let version = format!("{major}.{minor}.{patch}");
    if major != 3 || !MINORS.contains(&minor) {
        return Err(format!("is Python {version}"));
    }
    if answer.implementation != "cpython" {
        return Err(format!("is {}, not CPython", answer.implementation));
    }
    if needs_venv && !answer.venv {
        return Err(format!(
            "is Python {version} without venv and ensurepip (Debian and Ubuntu: install python3-venv)"
        ));
    }
    if !answer.base.is_absolute() {
        return Err("does not say where it is".to_owned());
    }
    Ok(Python { path: answer.base, version, has_venv: answer.venv })
}

fn uv_finds(uv: &Path, environment: &Environment) -> Option<PathBuf> {
    let tool = Tool {
        program: uv,
        args: words([&"python", &"find", &"--no-python-downloads", &"--no-project", &">=3.12,<3.14"]),
        env: environment.variables(),
        cwd: Path::new("/"),
        stdin: None,
        limit: Duration::from_millis(ASK_LIMIT_MS),
    };
    let output = run(tool, &|_| {}).ok().filter(|output| output.status.success())?;
    Some(PathBuf::from(output.answer.trim())).filter(|path| path.is_absolute())
}

fn under_pyenv(environment: &Environment) -> Vec<PathBuf> {
    let Some(home) = environment.home() else { return Vec::new() };
    let versions = home.join(".pyenv/versions");
    let Ok(entries) = std::fs::read_dir(versions) else { return Vec::new() };
    let mut found: Vec<(u32, u32, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (minor, patch) = name.strip_prefix("3.")?.split_once('.')?;
            let (minor, patch) = (minor.parse().ok()?, patch.parse().ok()?);
            MINORS.contains(&minor).then(|| (minor, patch, entry.path().join("bin/python")))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, _, path)| path).collect()
}

/// Find an interpreter: the configured one and no other; else `python3.13`, `python3.12`, `python3` on PATH; else what
/// `uv` finds; else what pyenv installed.
pub(crate) fn discover(
    configured: Option<&Path>,
    uv: Option<&Path>,
    environment: &Environment,
) -> Result<Python, PythonNotFound> {
    let needs_venv = uv.is_none();
    let mut tried = Vec::new();
    let mut consider = |candidate: &Path| match ask(candidate, environment, needs_venv) {
        Ok(python) => Some(python),
        Err(why) => {
            if tried.len() < MAX_REASONS {
                tried.push(format!("  {}: {why}", candidate.display()));
            }
            None
        }
    };
    if let Some(path) = configured {
        return consider(path).ok_or(PythonNotFound { tried });
    }
    let on_path = ["python3.13", "python3.12", "python3"].into_iter().flat_map(|name| environment.on_path(name));
    let found = on_path
        .filter_map(|path| consider(&path))
        .next()
        .or_else(|| uv.and_then(|uv| uv_finds(uv, environment)).and_then(|path| consider(&path)))
        .or_else(|| under_pyenv(environment).iter().find_map(|path| consider(path)));
    found.ok_or(PythonNotFound { tried })
}

/// Find an interpreter as the installer does, with this process's own environment.
pub fn find_python(configured: Option<&Path>) -> Result<Python, PythonNotFound> {
    let environment = Environment::of_this_process();
    let uv = environment.on_path("uv").into_iter().next();
    discover(configured, uv.as_deref(), &environment)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().expect("parent")).expect("dir");
        std::fs::write(path, text).expect("write");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("mode");
    }

    fn answering(version: &str, venv: bool) -> String {
        let version = version.replace('.', ",");
        format!(
            "#!/bin/sh\necho '{{\"version\":[{version}],\"base\":\"/opt/python\",\"implementation\":\"cpython\",\
             \"venv\":{venv}}}'\n"
        )
    }

    fn environment(dir: &Path) -> Environment {
        let path = format!("{}/a:{}/b", dir.display(), dir.display());
        Environment::from_variables([("PATH".into(), path.into()), ("HOME".into(), dir.as_os_str().to_owned())])
    }

    #[test]
    fn a_version_managers_broken_stand_in_is_passed_over() {
        let dir = tempfile::tempdir().expect("dir");
        script(&dir.path().join("a/python3.13"), "#!/bin/sh\necho 'command not found' >&2\nexit 127\n");
        script(&dir.path().join("a/python3"), &answering("3.10.1", true));
        script(&dir.path().join("b/python3"), &answering("3.12.9", true));
        let python = discover(None, None, &environment(dir.path())).expect("found");
        assert_eq!(python.version, "3.12.9");
        assert_eq!(python.path, Path::new("/opt/python"));
    }

    #[test]
    fn pyenv_is_the_last_resort_and_its_newest_wins() {
        let dir = tempfile::tempdir().expect("dir");
        for version in ["3.11.9", "3.12.4", "3.13.0", "3.13.2"] {
            let path = dir.path().join(".pyenv/versions").join(version).join("bin/python");
            script(&path, &answering(version, true));
        }
        assert_eq!(discover(None, None, &environment(dir.path())).expect("found").version, "3.13.2");
    }

    #[test]
    fn without_uv_an_interpreter_that_cannot_make_environments_is_useless_and_the_error_says_so() {
        let dir = tempfile::tempdir().expect("dir");
        script(&dir.path().join("a/python3"), &answering("3.12.3", false));
        let error = discover(None, None, &environment(dir.path())).expect_err("none").to_string();
        assert!(error.contains("python3-venv") && error.contains("a/python3"), "{error}");
        let uv = dir.path().join("b/uv");
        script(&uv, "#!/bin/sh\nexit 1\n");
        assert!(discover(None, Some(&uv), &environment(dir.path())).is_ok());
    }

    #[test]
    fn a_configured_interpreter_is_the_only_one_tried() {
        let dir = tempfile::tempdir().expect("dir");
        script(&dir.path().join("a/python3"), &answering("3.12.3", true));
        let configured = dir.path().join("own");
        script(&configured, &answering("3.9.0", true));
        let error = discover(Some(&configured), None, &environment(dir.path())).expect_err("wrong version");
        assert_eq!(error.tried.len(), 1);
    }

    #[test]
    fn uv_is_asked_when_the_path_has_none() {
        let dir = tempfile::tempdir().expect("dir");
        let managed = dir.path().join("managed/python");
        script(&managed, &answering("3.13.1", true));
        let uv = dir.path().join("b/uv");
        script(&uv, &format!("#!/bin/sh\necho {}\n", managed.display()));
        assert_eq!(discover(None, Some(&uv), &environment(dir.path())).expect("found").version, "3.13.1");
    }
}
