//! `gatepost doctor`: looks at the machine, the configuration, the files, the install and the daemon, and changes nothing.

mod bundle;
mod checks;
mod finding;

use api_types::ExitCode;
use cli::{DoctorArgs, Failure};
use serde_json::{Value, json};
use settings::Settings;

use crate::places::{self, Places};
use crate::{Look, say};
use finding::Finding;

/// Carries the command out.
///
/// # Errors
/// `checks_failed` with every finding when one failed; why a bundle was not written.
pub(crate) fn run(places: &Places, args: &DoctorArgs, look: Look) -> Result<Value, Failure> {
    let bundle = args.bundle.as_deref().map(places::absolute).transpose()?;
    if let Some(file) = &bundle {
        // Before anything that takes long.
        bundle::refuse_existing(file)?;
    }
    let loaded = Settings::load(&places.sources);
    let findings = checks::all(places, &loaded, look)?;
    if !look.json {
        say(&finding::words(&findings));
    }
    let mut body = json!({"findings": finding::list(&findings)});
    if let Some(file) = &bundle {
        bundle::write(file, places, loaded.as_ref().ok(), &findings)?;
        if !look.json {
            say(&format!("bundle: {}\n", cli::sanitize::line(&file.to_string_lossy())));
        }
        body["bundle"] = json!(file);
    }
    concluded(&findings, body)
}

fn concluded(findings: &[Finding], body: Value) -> Result<Value, Failure> {
    let failed = finding::failures(findings);
    if failed == 0 {
        return Ok(body);
    }
    let detail = format!("{failed} of {} checks failed", findings.len());
    let hint = "each failed check says what mends it";
    Err(Failure::new(ExitCode::Blocked, "checks_failed", detail).hint(hint).body(&body))
}

#[cfg(test)]
mod tests;
