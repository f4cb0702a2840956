//! The tools that fill a new environment: uv where there is one, else venv and pip.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environment::Environment;
use super::place::{Building, Populated};
use super::python::{self, Python};
use super::tool::{self, Tool, words};
use super::{BUILD_REQUIREMENTS_NAME, InstallError, InstallPhase, REQUIREMENTS_NAME, record};

/// One tool's time.
const TOOL_LIMIT_S: u64 = 20 * 60;
/// Of a tool's line, in a report of progress.
const DETAIL_CHARS: usize = 120;
/// The distribution that comes as source only; its build requirements are locked as well.
const SOURCE_ONLY: &str = "func-timeout";

struct Work<'a> {
    building: &'a Building<'a>,
    environment: Environment,
}

impl Work<'_> {
    /// Run a tool to success.
    fn run(
        &self,
        phase: InstallPhase,
        what: &'static str,
        program: &Path,
        args: Vec<OsString>,
    ) -> Result<(), InstallError> {
        let output = self.run_any(phase, what, program, args)?;
        if output.status.success() {
            return Ok(());
        }
        Err(InstallError::Tool { what, detail: format!("{} ({})\n{}", program.display(), output.status, output.tail) })
    }

    fn run_any(
        &self,
        phase: InstallPhase,
        what: &'static str,
        program: &Path,
        args: Vec<OsString>,
    ) -> Result<tool::ToolOutput, InstallError> {
        let Building { root, lock, reporter, .. } = self.building;
        reporter.say(phase, what, None);
        let stdin = lock.try_clone().map_err(InstallError::files("cannot share the lock"))?;
        let tool = Tool {
            program,
            args,
            env: self.environment.variables(),
            cwd: root,
            stdin: Some(stdin),
            limit: Duration::from_secs(TOOL_LIMIT_S),
        };
        let hear = |line: &str| {
            let line: String = line.chars().filter(|character| !character.is_control()).take(DETAIL_CHARS).collect();
            reporter.say(phase, if line.is_empty() { what.to_owned() } else { line }, None);
        };
        tool::run(tool, &hear).map_err(|error| InstallError::Tool { what, detail: error.to_string() })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.building.root.join(name)
    }
}

/// Fill the new environment.
pub(crate) fn populate(building: &Building<'_>) -> Result<Populated, InstallError> {
    let work = Work { building, environment: Environment::of_this_process() };
    building.reporter.say(InstallPhase::Preparing, "looking for Python", None);
    let uv = work.environment.on_path("uv").into_iter().next();
    let python = python::discover(building.request.python.as_deref(), uv.as_deref(), &work.environment)?;
    building.reporter.say(
        InstallPhase::Preparing,
        format!("Python {} at {}", python.version, python.path.display()),
        None,
    );
    match &uv {
        Some(uv) => with_uv(&work, uv, &python)?,
        None => with_pip(&work, &python)?,
    }
    remove_scripts(building.root).map_err(InstallError::files("cannot remove console scripts"))?;
    compile(&work)?;
    let installer = if uv.is_some() { "uv" } else { "pip" };
    Ok(Populated { installer, python_version: python.version, interpreter: real(&python.path)? })
}

fn real(path: &Path) -> Result<PathBuf, InstallError> {
    path.canonicalize().map_err(InstallError::files(format!("cannot resolve {}", path.display())))
}

fn write_locks(building: &Building<'_>) -> Result<(), InstallError> {
    let request = building.request;
    for (name, text) in
        [(REQUIREMENTS_NAME, request.requirements), (BUILD_REQUIREMENTS_NAME, request.build_requirements)]
    {
        fs::write(building.root.join(name), text).map_err(InstallError::files(format!("cannot write {name}")))?;
    }
    Ok(())
}

fn with_uv(work: &Work<'_>, uv: &Path, python: &Python) -> Result<(), InstallError> {
    let root = work.building.root;
    let make = words([&"venv", &"--no-python-downloads", &"--no-project", &"--python", &python.path, &root]);
    work.run(InstallPhase::Environment, "making the environment with uv", uv, make)?;
    write_locks(work.building)?;
    let inside = root.join("bin/python");
    let common: Vec<OsString> = words([
        &"pip",
        &"install",
        &"--no-python-downloads",
        &"--python",
        &inside,
        &"--require-hashes",
        &"--no-deps",
        &"--link-mode",
        &"copy",
        &"--only-binary",
        &":all:",
    ]);
    let build = [common.clone(), words([&"-r", &work.file(BUILD_REQUIREMENTS_NAME)])].concat();
    work.run(InstallPhase::BuildRequirements, "installing the build requirements with uv", uv, build)?;
    let server =
        [common, words([&"--no-build-isolation", &"--no-binary", &SOURCE_ONLY, &"-r", &work.file(REQUIREMENTS_NAME)])]
            .concat();
    work.run(InstallPhase::Requirements, "installing the Agent Server with uv", uv, server)
}

fn with_pip(work: &Work<'_>, python: &Python) -> Result<(), InstallError> {
    let root = work.building.root;
    let make = words([&"-I", &"-m", &"venv", &"--symlinks", &root]);
    work.run(InstallPhase::Environment, "making the environment", &python.path, make)?;
    write_locks(work.building)?;
    let inside = root.join("bin/python");
    let common: Vec<OsString> = words([
        &"-I",
        &"-m",
        &"pip",
        &"install",
        &"--require-hashes",
        &"--no-deps",
        &"--no-compile",
        &"--only-binary",
        &":all:",
    ]);
    let build = [common.clone(), words([&"-r", &work.file(BUILD_REQUIREMENTS_NAME)])].concat();
    work.run(InstallPhase::BuildRequirements, "installing the build requirements with pip", &inside, build)?;
    let server =
        [common, words([&"--no-build-isolation", &"--no-binary", &SOURCE_ONLY, &"-r", &work.file(REQUIREMENTS_NAME)])]
            .concat();
    work.run(InstallPhase::Requirements, "installing the Agent Server with pip", &inside, server)?;
    // Pip itself came with the interpreter, not from the locked requirements.
    let remove = words([&"-I", &"-m", &"pip", &"uninstall", &"--yes", &"pip"]);
    work.run(InstallPhase::Requirements, "removing pip", &inside, remove)
}

/// Scripts name the interpreter by the path where they were built, and activation is nothing a server needs.
fn remove_scripts(root: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(root.join("bin"))? {
        let entry = entry?;
        let is_interpreter =
            entry.file_name().to_string_lossy().starts_with("python") && entry.file_type()?.is_symlink();
        if !is_interpreter {
            fs::remove_file(entry.path())?;
        }
    }
    // Here `python -m venv` notes the command it was made with, which names the same path.
    let config = root.join("pyvenv.cfg");
    let text = fs::read_to_string(&config)?;
    let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("command")).collect();
    fs::write(config, kept.join("\n") + "\n")
}

/// Bytecode that is used as it stands, whatever the source's time stamp: the manifest covers both.
fn compile(work: &Work<'_>) -> Result<(), InstallError> {
    let Building { root, target, .. } = work.building;
    let site_packages = record::site_packages(root).map_err(InstallError::files("cannot find the packages"))?;
    let args = words([
        &"-I",
        &"-m",
        &"compileall",
        &"-q",
        &"-j",
        &"0",
        &"--invalidation-mode",
        &"unchecked-hash",
        &"-s",
        &root,
        &"-p",
        &target,
        &site_packages,
    ]);
    let what = "compiling bytecode";
    let output = work.run_any(InstallPhase::Bytecode, what, &root.join("bin/python"), args)?;
    // A few distributions carry templates that are no Python; compileall then answers 1. The server's own must be there.
    let cache = site_packages.join("openhands/agent_server/__pycache__");
    let compiled = fs::read_dir(cache).is_ok_and(|entries| {
        entries.filter_map(Result::ok).any(|entry| entry.file_name().to_string_lossy().starts_with("__main__."))
    });
    if matches!(output.status.code(), Some(0 | 1)) && compiled {
        return Ok(());
    }
    Err(InstallError::Tool { what, detail: format!("{}\n{}", output.status, output.tail) })
}
