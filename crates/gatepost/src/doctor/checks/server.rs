//! The Agent Server that would be run, and the Python it is installed with.

use std::collections::BTreeMap;
use std::path::Path;

use agent_contract::Contract;
use cli::Failure;
use process::install::{Python, PythonNotFound, VerifyReport};
use settings::Settings;

use super::super::finding::Finding;
use crate::Look;
use crate::places::Places;
use crate::server::{of_contract, reviewed, verify};

const CHECK: &str = "agent_server";
/// Altered files that are named.
const MAX_NAMED: usize = 5;

/// The contract, the install of exactly what it locks, every file of it; or the executable that is configured instead.
///
/// # Errors
/// No thread could be had to verify with.
pub(super) fn all(places: &Places, settings: Option<&Settings>, look: Look) -> Result<Vec<Finding>, Failure> {
    let version = settings.map_or(settings::DEFAULT_VERSION, |settings| &settings.agent_server.version);
    let contract = match reviewed(version) {
        Ok(contract) => contract,
        Err(failure) => {
            let remedy = failure.hint.unwrap_or_else(|| "correct [agent_server] version".to_owned());
            return Ok(vec![Finding::failed(CHECK, failure.detail, remedy)]);
        }
    };
    if let Some(executable) = settings.and_then(|settings| settings.agent_server.executable.as_deref()) {
        return Ok(own(contract, executable));
    }
    let configured = settings.and_then(|settings| settings.agent_server.python.clone());
    let found = process::install::find_for(&of_contract(contract, places, configured.clone()));
    let mut findings = vec![python(&process::install::find_python(configured.as_deref()), found.is_some())];
    match found {
        Some(installed) => {
            let report = verify::verified(&installed, look)?;
            findings.push(as_recorded(version, &installed.root, &report));
        }
        None => {
            let detail = format!("Agent Server {version} is not installed as reviewed");
            findings.push(Finding::failed(CHECK, detail, "`gatepost server install`"));
        }
    }
    Ok(findings)
}

/// Python is needed to install, and no more once that is done.
fn python(found: &Result<Python, PythonNotFound>, is_installed: bool) -> Finding {
    const CHECK: &str = "python";
    const REMEDY: &str = "install Python 3.12 or 3.13 with venv, or name one in [agent_server] python";
    match found {
        Ok(python) => Finding::ok(CHECK, format!("{} ({})", python.version, python.path.display())),
        Err(error) if is_installed => Finding::warning(CHECK, error.to_string(), REMEDY),
        Err(error) => Finding::failed(CHECK, error.to_string(), REMEDY),
    }
}

fn as_recorded(version: &str, root: &Path, report: &VerifyReport) -> Finding {
    let at = root.display();
    if report.passed() {
        return Finding::ok(CHECK, format!("{version}, {} files as recorded in {at}", report.files));
    }
    let named = report.findings.iter().take(MAX_NAMED).map(|found| format!("{} {}", found.kind.as_str(), found.path));
    let count = report.findings.len() + report.unlisted;
    let detail = format!("{at} is not as recorded, {count} findings: {}", named.collect::<Vec<String>>().join(", "));
    Finding::failed(CHECK, detail, format!("remove {at}, then `gatepost server install`"))
}

fn own(contract: &Contract, executable: &Path) -> Vec<Finding> {
    let own = match process::own::inspect_executable(executable) {
        Ok(own) => own,
        Err(error) => {
            let remedy = "correct [agent_server] executable, or leave it out and use `gatepost server install`";
            return vec![Finding::failed(CHECK, error.to_string(), remedy)];
        }
    };
    let different = different(contract.distributions(), &own.distributions);
    if different.is_empty() {
        let detail = format!("{}, own executable {}", contract.version(), own.executable.display());
        return vec![Finding::ok(CHECK, detail)];
    }
    let remedy = format!("install Agent Server {} into {}", contract.version(), own.root.display());
    different.into_iter().map(|detail| Finding::failed(CHECK, detail, remedy.clone())).collect()
}

fn different(reviewed: &BTreeMap<String, String>, found: &BTreeMap<String, String>) -> Vec<String> {
    let differs = |(name, wanted): (&String, &String)| {
        let has = found.get(name).map_or("none", String::as_str);
        (has != wanted).then(|| format!("{name} is {has}, reviewed is {wanted}"))
    };
    reviewed.iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use process::install::{Finding as Altered, FindingKind};

    use super::super::super::finding::State;
    use super::*;

    #[test]
    fn python_is_needed_until_something_is_installed() {
        let none = || Err(PythonNotFound { tried: vec!["  /a: is Python 3.9.0".to_owned()] });
        assert_eq!(python(&none(), false).state, State::Failed);
        assert_eq!(python(&none(), true).state, State::Warning);
        let some = Python { path: "/p".into(), version: "3.12.1".to_owned(), has_venv: true };
        assert_eq!(python(&Ok(some), false).state, State::Ok);
    }

    #[test]
    fn altered_files_are_counted_and_the_first_are_named() {
        let altered = |at: usize| Altered { kind: FindingKind::Changed, path: format!("lib/{at}.py") };
        let report = |findings| VerifyReport {
            files: 9,
            findings,
            unlisted: 2,
            manifest_sha256: String::new(),
            interpreter_changed: false,
        };
        let finding = as_recorded("1.2.3", Path::new("/s/x"), &report((0..7).map(altered).collect()));
        assert_eq!(finding.state, State::Failed);
        assert!(finding.detail.contains("9 findings") && finding.detail.contains("lib/4.py"), "{}", finding.detail);
        assert!(!finding.detail.contains("lib/5.py"), "{}", finding.detail);
    }

    #[test]
    fn a_distribution_of_another_version_or_none_is_named() {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect()
        };
        let reviewed = map(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let words = different(&reviewed, &map(&[("a", "1"), ("b", "9")]));
        assert_eq!(words, ["b is 9, reviewed is 2", "c is none, reviewed is 3"]);
    }

    #[test]
    fn an_executable_that_is_not_there_fails() {
        let contract = reviewed(settings::DEFAULT_VERSION).unwrap();
        let findings = own(contract, Path::new("/nonexistent/bin/agent-server"));
        assert_eq!(findings.iter().map(|finding| finding.state).collect::<Vec<_>>(), [State::Failed]);
    }
}
