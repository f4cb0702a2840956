//! The ends of the servers' logs.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use host::secure_fs;
use rules::redact::REDACTED;
use serde_json::{Value, json};

use super::redaction::Secrets;
use super::shapes::PrivateKeys;

/// Lines of each log.
const MAX_LINES: usize = 200;
/// Largest log that is read, in bytes; a server's is rotated at half of it.
const MAX_LOG_BYTES: u64 = 8 * 1024 * 1024;
/// Logs that are taken, the newest ones.
const MAX_LOGS: usize = 32;

/// The end of each binding's log; nothing of any where a secret that could stand in one is not known.
pub(super) fn all(bindings: &Path, secrets: &Secrets) -> Value {
    if let Some(why) = secrets.unknown() {
        return json!({"left_out": format!("a secret could not be read to take it out: {why}"), "servers": []});
    }
    let mut logs = found(bindings);
    let older = logs.len().saturating_sub(MAX_LOGS);
    logs.truncate(MAX_LOGS);
    let left_out = (older > 0).then(|| format!("{older} older logs"));
    json!({"left_out": left_out, "servers": logs.iter().map(|log| end(log, secrets)).collect::<Vec<Value>>()})
}

/// Every log below real directories, the newest first.
fn found(bindings: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(bindings) else { return Vec::new() };
    let mut logs: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| {
            let log = entry.path().join("server.log");
            let written = std::fs::symlink_metadata(&log).and_then(|about| about.modified()).ok()?;
            Some((written, log))
        })
        .collect();
    logs.sort_by(|left, right| right.cmp(left));
    logs.into_iter().map(|(_, log)| log).collect()
}

fn end(log: &Path, secrets: &Secrets) -> Value {
    // A link in its place would bring in a file that is nobody's business.
    match secure_fs::read_private(log, MAX_LOG_BYTES) {
        Ok(content) => {
            let text = String::from_utf8_lossy(&content);
            let lines: Vec<&str> = text.lines().collect();
            let last = lines.get(lines.len().saturating_sub(MAX_LINES)..).unwrap_or_default();
            // From the first line on: the end of a key may be all that is shown of it.
            let mut keys = PrivateKeys::default();
            let of_keys: Vec<bool> = lines.iter().map(|line| keys.hide(line)).collect();
            let first = lines.len() - last.len();
            let shown = last.iter().zip(of_keys.into_iter().skip(first));
            let shown =
                shown.map(|(line, of_key)| if of_key { REDACTED.to_owned() } else { secrets.redact_line(line) });
            json!({"file": log, "lines": shown.collect::<Vec<String>>()})
        }
        Err(error) => json!({"file": log, "unreadable": error.to_string()}),
    }
}
