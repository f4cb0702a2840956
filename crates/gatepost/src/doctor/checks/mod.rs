//! Every check, in the order in which a person would mend what is wrong.

mod configuration;
mod confinement;
mod daemon;
mod files;
mod leftovers;
mod machine;
mod room;
mod server;
mod service;
mod trees;

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use cli::Failure;
use settings::{Settings, SettingsError};

use super::finding::Finding;
use crate::Look;
use crate::places::Places;

/// Looks at everything. What a check cannot see is a finding of its own.
///
/// # Errors
/// The system gives no thread or runtime to look with.
pub(super) fn all(
    places: &Places,
    loaded: &Result<Settings, SettingsError>,
    look: Look,
) -> Result<Vec<Finding>, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let settings = loaded.as_ref().ok();
    let mut findings = vec![
        machine::kernel(std::env::consts::OS, host::kernel::release().as_deref()),
        machine::user(rustix::process::geteuid().is_root()),
    ];
    findings.push(machine::locked_memory());
    findings.extend(machine::tools(&path));
    findings.extend(configuration::all(loaded, &places.paths.config_file));
    findings.extend(files::all(places, settings));
    findings.extend(room::all(places));
    findings.extend(server::all(places, settings, look)?);
    let offered = confinement::Offered::now(&path);
    findings.extend(confinement::all(settings, &offered));
    findings.push(trees::ending(&offered, host::cgroup::delegated().is_some()));
    findings.extend(service::installed(places, settings));
    let daemon = daemon::all(places)?;
    findings.extend(leftovers::all(places, daemon.runs));
    findings.extend(daemon.findings);
    Ok(findings)
}

/// The first executable of this name in the absolute directories of a search path; the others are not searched by the
/// daemon either.
fn on_path(path: &OsStr, name: &str) -> Option<PathBuf> {
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(name)).find(|file| {
        std::fs::metadata(file).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    })
}
