//! Talking to the service manager, where one is there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::units::Manager;

/// How long the service manager may take to read its units again.
const RELOAD_LIMIT: Duration = Duration::from_secs(20);
/// How long it may take to stop the daemon: as long as the unit allows it, and a little more.
const STOP_LIMIT: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(50);

/// Has it read its units again; whether it did. launchd reads an agent when it is told to load it.
pub(super) fn reload(manager: Manager) -> bool {
    match manager {
        Manager::Systemd => systemctl(&["daemon-reload"], RELOAD_LIMIT),
        Manager::Launchd => false,
    }
}

/// Has it stop the service, and not start it any more; whether it did.
pub(super) fn stop(manager: Manager) -> bool {
    match manager {
        Manager::Systemd => systemctl(&["disable", "--now", "gatepost.socket", "gatepost.service"], STOP_LIMIT),
        Manager::Launchd => false,
    }
}

/// What is to be typed to start the service.
pub(super) fn to_start(manager: Manager, is_reloaded: bool, units: &[PathBuf]) -> Vec<String> {
    match manager {
        Manager::Systemd => {
            let reload = (!is_reloaded).then(|| "systemctl --user daemon-reload".to_owned());
            let start = "systemctl --user enable --now gatepost.socket gatepost.service".to_owned();
            reload.into_iter().chain([start]).collect()
        }
        Manager::Launchd => {
            units.iter().map(|unit| format!("launchctl bootstrap gui/$(id -u) '{}'", unit.display())).collect()
        }
    }
}

/// What is to be typed after the units were removed.
pub(super) fn to_forget(manager: Manager) -> Vec<String> {
    match manager {
        Manager::Systemd => ["stop gatepost.socket gatepost.service", "daemon-reload"]
            .map(|words| format!("systemctl --user {words}"))
            .to_vec(),
        Manager::Launchd => vec!["launchctl bootout gui/$(id -u)/org.gatepost.daemon".to_owned()],
    }
}

/// Whether a user manager is there and did this. Asked only where its own socket is: without one `systemctl` would look
/// elsewhere.
fn systemctl(words: &[&str], limit: Duration) -> bool {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    if !runtime.is_some_and(|runtime| runtime.join(Path::new("systemd/private")).exists()) {
        return false;
    }
    let quiet = || Stdio::null();
    let command =
        Command::new("systemctl").arg("--user").args(words).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    let Ok(mut child) = command else { return false };
    let begun = Instant::now();
    while begun.elapsed() < limit {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(LOOK),
            Err(_) => break,
        }
    }
    child.kill().ok();
    child.wait().ok();
    false
}
