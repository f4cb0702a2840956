//! What earlier runs left: processes of servers whose daemon is gone, a socket that nobody answers on, records set aside.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::super::finding::Finding;
use crate::places::Places;

const CHECK: &str = "leftovers";
/// Processes and files that are named.
const MAX_NAMED: usize = 5;

/// All of it; `daemon_runs` when one answers, which ended what was left when it began.
pub(super) fn all(places: &Places, daemon_runs: bool) -> Vec<Finding> {
    let paths = &places.paths;
    let processes = if daemon_runs { Vec::new() } else { process::launch::leftovers(&paths.state_dir) };
    let socket = std::fs::symlink_metadata(&paths.socket).is_ok_and(|about| about.file_type().is_socket());
    let findings: Vec<Finding> = [
        left(&processes),
        (socket && !daemon_runs).then(|| unanswered(&paths.socket)),
        aside(&set_aside(&paths.state_dir)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if findings.is_empty() { vec![Finding::ok(CHECK, "nothing is left of earlier runs")] } else { findings }
}

fn left(processes: &[u32]) -> Option<Finding> {
    let named: Vec<String> = processes.iter().take(MAX_NAMED).map(u32::to_string).collect();
    let detail = || {
        format!(
            "{} processes of earlier servers run without a daemon, among them {}",
            processes.len(),
            named.join(", ")
        )
    };
    let remedy = "`gatepost serve` ends them when it starts; or end them by hand";
    (!processes.is_empty()).then(|| Finding::warning(CHECK, detail(), remedy))
}

fn unanswered(socket: &Path) -> Finding {
    let detail = format!("{} is there, and no daemon answers on it", socket.display());
    Finding::warning(
        CHECK,
        detail,
        "nothing: `gatepost serve` replaces it, or the service manager starts the daemon by it",
    )
}

/// Records that were damaged and are kept beside the new ones.
fn set_aside(state_dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(state_dir) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    found.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".sqlite3.damaged-")));
    found.sort();
    found
}

fn aside(files: &[PathBuf]) -> Option<Finding> {
    let named: Vec<String> = files.iter().take(MAX_NAMED).map(|file| file.display().to_string()).collect();
    let detail = || format!("{} damaged files were set aside: {}", files.len(), named.join(", "));
    let remedy = "remove them when you no longer want them (docs/operations.md, \"Damaged files\")";
    (!files.is_empty()).then(|| Finding::warning(CHECK, detail(), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_and_the_first_are_named() {
        assert_eq!(left(&[]), None);
        let finding = left(&[1, 2, 3, 4, 5, 6]).unwrap();
        assert!(finding.detail.starts_with("6 processes") && finding.detail.ends_with("1, 2, 3, 4, 5"), "{finding:?}");
    }
}
