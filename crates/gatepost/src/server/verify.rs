//! `server verify`.

use std::io::stderr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use api_types::ExitCode;
use cli::Failure;
use cli::progress::Progress;
use process::install::{InstallRequest, Installed, VerifyReport};
use serde_json::{Value, json};

use crate::{Look, say};

/// How often a verification that goes on is told of.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// `gatepost server verify`.
pub(super) fn run(request: &InstallRequest<'_>, look: Look) -> Result<Value, Failure> {
    let installed = process::install::find_for(request).ok_or_else(|| {
        let detail = format!("Agent Server {} is not installed as reviewed", request.version);
        Failure::new(ExitCode::Failed, "server_not_installed", detail)
    })?;
    let report = verified(&installed, look)?;
    let object = object(&installed, &report);
    if report.passed() {
        if !look.json {
            say(&words(&installed, &report));
        }
        return Ok(object);
    }
    Err(altered(&installed, &report).body(&object))
}

/// Verifies, with a word now and then: half a gigabyte is read.
///
/// # Errors
/// No thread could be had for it.
pub(crate) fn verified(installed: &Installed, look: Look) -> Result<VerifyReport, Failure> {
    let lost = |why: &str| Failure::new(ExitCode::Failed, "system", why);
    let began = Instant::now();
    let (answer, answered) = channel();
    let copy = installed.clone();
    std::thread::Builder::new()
        .name("verify".to_owned())
        .spawn(move || answer.send(process::install::verify(&copy)).ok())
        .map_err(|error| lost(&error.to_string()))?;
    let mut progress = Progress::new(look.live_progress);
    let report = loop {
        match answered.recv_timeout(TELL_EVERY) {
            Ok(report) => break Ok(report),
            Err(RecvTimeoutError::Timeout) => {
                let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                progress.tell(&mut stderr(), "reading every file", "", elapsed_ms);
            }
            Err(RecvTimeoutError::Disconnected) => break Err(lost("the verifying thread ended")),
        }
    };
    progress.clear(&mut stderr());
    report
}

fn object(installed: &Installed, report: &VerifyReport) -> Value {
    let findings = report.findings.iter().map(|found| json!({"kind": found.kind.as_str(), "path": found.path}));
    json!({
        "version": installed.version,
        "root": installed.root,
        "passed": report.passed(),
        "files": report.files,
        "findings": findings.collect::<Vec<Value>>(),
        "unlisted_findings": report.unlisted,
        "manifest_sha256": report.manifest_sha256,
        "interpreter_changed": report.interpreter_changed,
    })
}

fn words(installed: &Installed, report: &VerifyReport) -> String {
    let mut words = format!(
        "Agent Server {}: {} files are as recorded\n  {}\n",
        installed.version,
        report.files,
        installed.root.display()
    );
    if report.interpreter_changed {
        words.push_str("  note: the Python that it was made with has changed since (a system update, for one)\n");
    }
    words
}

fn altered(installed: &Installed, report: &VerifyReport) -> Failure {
    let count = report.findings.len() + report.unlisted;
    let mut detail = format!("{} is not as recorded, {count} findings:", installed.root.display());
    for found in &report.findings {
        detail.push_str(&format!("\n{}: {}", found.kind.as_str(), found.path));
    }
    if report.unlisted > 0 {
        detail.push_str(&format!("\nand {} more", report.unlisted));
    }
    let hint = format!("remove {}, then `gatepost server install`", installed.root.display());
    Failure::new(ExitCode::Failed, "installation_altered", detail).hint(hint)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use process::install::{Finding, FindingKind};

    use super::*;

    fn installed() -> Installed {
        Installed {
            version: "1.2.3".to_owned(),
            root: "/s/1.2.3-abc".into(),
            executable: "/s/1.2.3-abc/bin/python".into(),
            python: "3.12.1".to_owned(),
            distributions: BTreeMap::new(),
            manifest_sha256: "ff".to_owned(),
        }
    }

    fn report(paths: &[&str], unlisted: usize) -> VerifyReport {
        let finding = |path: &&str| Finding { kind: FindingKind::Changed, path: (*path).to_owned() };
        VerifyReport {
            files: 3,
            findings: paths.iter().map(finding).collect(),
            unlisted,
            manifest_sha256: "ff".to_owned(),
            interpreter_changed: false,
        }
    }

    #[test]
    fn every_listed_file_and_the_number_of_the_others_is_told() {
        let failure = altered(&installed(), &report(&["lib/a.py", "lib/b.py"], 7));
        assert_eq!((failure.exit, failure.code.as_str()), (ExitCode::Failed, "installation_altered"));
        for words in ["9 findings", "changed: lib/a.py", "changed: lib/b.py", "and 7 more"] {
            assert!(failure.detail.contains(words), "{}", failure.detail);
        }
    }

    #[test]
    fn the_object_holds_what_was_found() {
        let object = object(&installed(), &report(&["lib/a.py"], 0));
        assert_eq!(object["findings"], json!([{"kind": "changed", "path": "lib/a.py"}]));
        assert_eq!(object["passed"], false);
        assert_eq!(self::object(&installed(), &report(&[], 0))["passed"], true);
    }
}
