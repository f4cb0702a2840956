//! The files that stand in the pages, written down and made ready to run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gatepost_tests::{install_step, locked_tool};
use testkit::daemon::workspace_root;

/// A program of a page.
pub(crate) struct Program {
    /// Short, for names of files.
    pub(crate) name: &'static str,
    interpreter: &'static str,
    file: PathBuf,
}

impl Program {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.interpreter);
        command.arg(&self.file).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

pub(crate) fn python(into: &Path) -> Program {
    let directory = into.join("python");
    assert_eq!(write_files("python", &directory), ["gatepost_client.py", "backend.py"]);
    Program { name: "python", interpreter: "python3", file: directory.join("backend.py") }
}

/// Checked and compiled by the pinned compiler, so that every version of Node.js that the page names runs it.
pub(crate) fn typescript(into: &Path) -> Program {
    let directory = into.join("typescript");
    assert_eq!(write_files("typescript", &directory), ["gatepost-client.ts", "backend.ts"]);
    let tools = compiler();
    fs::write(directory.join("package.json"), r#"{"type": "module"}"#).unwrap();
    let output = Command::new("node")
        .arg(tools.join("typescript/bin/tsc"))
        .args(["--strict", "--noUncheckedIndexedAccess", "--noEmitOnError", "--erasableSyntaxOnly"])
        .args(["--target", "es2022", "--module", "nodenext", "--rewriteRelativeImportExtensions"])
        .args(["--types", "node", "--typeRoots"])
        .arg(tools.join("@types"))
        .arg("backend.ts")
        .current_dir(&directory)
        .output()
        .expect("Node.js is needed: install it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Program { name: "typescript", interpreter: "node", file: directory.join("backend.js") }
}

/// The directory of the compiler's packages.
fn compiler() -> PathBuf {
    let wanted = workspace_root().join("tests/tests/clients");
    let directory = locked_tool("typescript", &wanted.join("package-lock.json"), |directory| {
        for name in ["package.json", "package-lock.json"] {
            fs::copy(wanted.join(name), directory.join(name)).unwrap();
        }
        let options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        install_step(Command::new("npm").args(options).current_dir(directory));
    });
    directory.join("node_modules")
}

/// Writes each block of the page that names a file; their names in order.
fn write_files(language: &str, directory: &Path) -> Vec<String> {
    fs::create_dir_all(directory).unwrap();
    let page = fs::read_to_string(workspace_root().join(format!("docs/clients/{language}.md"))).unwrap();
    let opening = format!("\n```{language} ");
    let mut names = Vec::new();
    for block in page.split(&opening).skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        let (text, _) = rest.split_once("\n```\n").unwrap();
        fs::write(directory.join(name), format!("{text}\n")).unwrap();
        names.push(name.to_owned());
    }
    names
}
