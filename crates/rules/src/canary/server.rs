//! Verdicts on an installation and an owned server.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{CanaryId, CanaryResult};
use crate::refusal::RefusalCode;

/// What a server says it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerIdentity {
    /// Title of the service.
    pub title: String,
    /// Version of the server.
    pub version: String,
    /// Version of its SDK.
    pub sdk_version: String,
    /// Version of its tools.
    pub tools_version: String,
    /// Version of its workspace library.
    pub workspace_version: String,
}

/// Title and all four versions must be exactly the reviewed ones.
pub fn versions(observed: &ServerIdentity, expected: &ServerIdentity) -> CanaryResult {
    let pairs = [
        ("title", &observed.title, &expected.title),
        ("version", &observed.version, &expected.version),
        ("sdk_version", &observed.sdk_version, &expected.sdk_version),
        ("tools_version", &observed.tools_version, &expected.tools_version),
        ("workspace_version", &observed.workspace_version, &expected.workspace_version),
    ];
    let evidence = json!(observed);
    match pairs.iter().find(|(_, observed, expected)| observed != expected) {
        None => CanaryResult::pass(CanaryId::Versions, format!("{} {}", observed.title, observed.version), evidence),
        Some((name, observed, expected)) => {
            let detail = format!("{name} is {observed:?}, reviewed is {expected:?}; install the reviewed version");
            CanaryResult::fail(CanaryId::Versions, RefusalCode::VersionMismatch, detail, evidence)
        }
    }
}

/// One listening socket of the server's process, as the kernel's table names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// `inet`, `inet6` or `unix`.
    pub family: String,
    /// For `inet` as in `/proc/net/tcp`, such as `0100007F:4787`.
    pub address: String,
}

/// The process must listen on 127.0.0.1:`port`, which the daemon bound, and on nothing else.
pub fn inherited_listener(listeners: &[Listener], port: u16) -> CanaryResult {
    let expected = Listener { family: "inet".to_owned(), address: format!("0100007F:{port:04X}") };
    let evidence = json!({"listeners": listeners, "expected": expected});
    match listeners {
        [only] if only.family == expected.family && only.address.eq_ignore_ascii_case(&expected.address) => {
            CanaryResult::pass(CanaryId::InheritedListener, format!("listens on 127.0.0.1:{port} only"), evidence)
        }
        [] | [_, ..] => {
            let seen: Vec<String> =
                listeners.iter().map(|listener| format!("{} {}", listener.family, listener.address)).collect();
            let seen = if seen.is_empty() { "nowhere".to_owned() } else { seen.join(", ") };
            let detail = format!("listens on {seen}; expected {} only", expected.address);
            CanaryResult::fail(CanaryId::InheritedListener, RefusalCode::ListenerNotInherited, detail, evidence)
        }
    }
}

/// What the start-up module reports from within the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartupEvidence {
    /// Whether it repeats the word that was given to this very start.
    pub nonce_matches: bool,
    /// Version of the contract it was written for.
    pub contract: String,
    /// The process it runs in.
    pub pid: u32,
    /// Whether every way to execute actions is latched.
    pub latch: bool,
    /// Whether what the server starts goes through the wrapper; `None` where it is not confined.
    pub door: Option<bool>,
    /// `PR_GET_DUMPABLE` of the process; `None` where the system has no such thing.
    pub dumpable: Option<i64>,
    /// `dropped` when ambient plugins and agent definitions are not loaded.
    pub ambient_plugins: String,
}

/// What it must report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartupExpectation {
    /// Version of the reviewed contract.
    pub contract: String,
    /// The process that was started.
    pub pid: u32,
}

/// The start-up module must have run in the process that was started, and its measures must hold now.
pub fn startup_module(observed: &StartupEvidence, expected: &StartupExpectation) -> CanaryResult {
    let checks = [
        (observed.nonce_matches, "the start-up module did not repeat the word given to this start"),
        (observed.contract == expected.contract, "the start-up module is of another contract"),
        (observed.pid == expected.pid, "the start-up module runs in another process than the one started"),
        (observed.latch, "the latch over executing actions is not in place"),
        (observed.door != Some(false), "what the server starts would not be confined"),
        (observed.dumpable == Some(0), "the process is dumpable, so its memory is open to others"),
        (observed.ambient_plugins == "dropped", "ambient plugins would be loaded"),
    ];
    let evidence = json!({
        "nonce_matches": observed.nonce_matches,
        "contract": observed.contract,
        "pid": observed.pid,
        "latch": observed.latch,
        "door": observed.door,
        "dumpable": observed.dumpable,
        "ambient_plugins": observed.ambient_plugins,
    });
    match checks.iter().find(|(holds, _)| !holds) {
        None => CanaryResult::pass(CanaryId::StartupModule, "latch, memory and plugins are guarded", evidence),
        Some((_, why)) => {
            let detail = format!("{why}; stop the server and start it again");
            CanaryResult::fail(CanaryId::StartupModule, RefusalCode::StartupModuleMissing, detail, evidence)
        }
    }
}

/// HTTP statuses of one authenticated read under three keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AuthStatuses {
    /// With the right key.
    pub right: u16,
    /// Without a key.
    pub missing: u16,
    /// With a wrong key.
    pub wrong: u16,
}

/// The right key must be let in with 200, none and a wrong one refused with 401.
pub fn authentication(statuses: AuthStatuses) -> CanaryResult {
    let evidence = json!(statuses);
    if statuses == (AuthStatuses { right: 200, missing: 401, wrong: 401 }) {
        return CanaryResult::pass(CanaryId::Authentication, "only the right key is let in", evidence);
    }
    let detail = format!(
        "answered {} to the right key, {} without one, {} to a wrong one; expected 200, 401, 401",
        statuses.right, statuses.missing, statuses.wrong
    );
    CanaryResult::fail(CanaryId::Authentication, RefusalCode::AuthenticationOpen, detail, evidence)
}

/// The initialisation route, asked without its key, must turn the caller away before it reads the request: 401, 403,
/// 404 or 405. Any other answer (success, a complaint about the body or the state, a failure) means that it was open.
pub fn init_closed(status: u16) -> CanaryResult {
    let evidence = json!({"status": status});
    match status {
        401 | 403 | 404 | 405 => CanaryResult::pass(CanaryId::InitClosed, format!("answered {status}"), evidence),
        _ => {
            let detail = format!("the initialisation route answered {status} to a caller without its key");
            CanaryResult::fail(CanaryId::InitClosed, RefusalCode::InitOpen, detail, evidence)
        }
    }
}

/// What is known of the installed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallationEvidence {
    /// Every installed file equals its recorded hash.
    Verified {
        /// How many files were compared.
        files: u64,
    },
    /// The owner's own installation, of which only the versions were compared.
    Own {
        /// Where it stands.
        executable: String,
    },
    /// Files differ, are missing or were added.
    Altered {
        /// Their paths within the installation.
        files: Vec<String>,
    },
}

/// Installed files must be what was installed.
pub fn installation(observed: &InstallationEvidence) -> CanaryResult {
    match observed {
        InstallationEvidence::Verified { files: 0 } => CanaryResult::fail(
            CanaryId::Installation,
            RefusalCode::InstallationAltered,
            "no file was compared; run `gatepost server install` again",
            json!({"verified_files": 0}),
        ),
        InstallationEvidence::Verified { files } => CanaryResult::pass(
            CanaryId::Installation,
            format!("{files} files equal their recorded hashes"),
            json!({"verified_files": files}),
        ),
        InstallationEvidence::Own { executable } => CanaryResult::pass(
            CanaryId::Installation,
            "the owner's own installation; its files are not verified",
            json!({"own": executable}),
        ),
        InstallationEvidence::Altered { files } => {
            let first = files.first().map_or("an unnamed file", String::as_str);
            let detail = format!("{} installed files were altered, {first} first; install again", files.len().max(1));
            let evidence = json!({"altered": files.iter().take(100).collect::<Vec<_>>(), "count": files.len()});
            CanaryResult::fail(CanaryId::Installation, RefusalCode::InstallationAltered, detail, evidence)
        }
    }
}
