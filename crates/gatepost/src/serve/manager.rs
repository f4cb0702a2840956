//! What a service manager is told (readiness, signs of life, a line on how things stand) and what it asks for: to read the
//! configuration again.

use std::io;
use std::time::Duration;

use sd_notify::NotifyState;
use settings::Settings;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::front::{Begun, Front};
use crate::places::Places;

/// How often it is looked how things stand, unless signs of life are wanted more often.
const LOOK: Duration = Duration::from_secs(10);
/// How long such a look may take; signs of life do not wait longer for it.
const LOOK_LIMIT: Duration = Duration::from_secs(3);
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Whether a service manager follows this process.
pub(super) fn is_there() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty())
}

/// Tells the service manager, where there is one.
pub(super) fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be told");
    }
}

/// Shows that the event loop goes on and says how things stand, until dropped. A sign of life is owed twice in the interval
/// after which the service manager takes the process for hung.
pub(super) async fn keep_telling(front: Front) {
    if !is_there() {
        return;
    }
    let owed = sd_notify::watchdog_enabled().map(|interval| interval / 2);
    let mut ticks = tokio::time::interval(owed.map_or(LOOK, |owed| owed.min(LOOK)));
    let mut told = String::new();
    loop {
        ticks.tick().await;
        let words = tokio::time::timeout(LOOK_LIMIT, words(&front)).await.ok().flatten();
        let mut states = Vec::new();
        if owed.is_some() {
            states.push(NotifyState::Watchdog);
        }
        if let Some(words) = words.filter(|words| *words != told) {
            told = words;
            states.push(NotifyState::Status(&told));
        }
        if !states.is_empty() {
            notify(&states);
        }
    }
}

/// The line, once the start is over.
async fn words(front: &Front) -> Option<String> {
    let status = front.begun()?.supervisor.status().await;
    let servers = status.servers.iter().filter(|server| server.pid.is_some()).count();
    Some(format!("{}: {servers} servers, {} sessions", status.state.as_str(), status.sessions.len()))
}

/// Follows SIGHUP, where it asks to read the configuration again.
pub(super) struct Reloads {
    signal: Option<Signal>,
}

impl Reloads {
    /// Where a service manager follows this process. Elsewhere SIGHUP says that the terminal is closed.
    pub(super) fn listen() -> io::Result<Self> {
        let signal = if is_there() { Some(signal(SignalKind::hangup())?) } else { None };
        Ok(Self { signal })
    }

    /// Reads the configuration again whenever it is asked for, until dropped. `used` is what the daemon runs with.
    pub(super) async fn follow(self, front: Front, places: Places, mut used: Settings) {
        let Some(mut asked) = self.signal else { return };
        while asked.recv().await.is_some() {
            // Told that this is ready, the service manager would take the start for over.
            let Some(begun) = front.begun() else {
                tracing::warn!("the configuration is not taken over: the start is not over");
                continue;
            };
            match NotifyState::monotonic_usec_now() {
                Ok(now) => notify(&[NotifyState::Reloading, now]),
                Err(error) => tracing::warn!(%error, "the service manager is not told that the configuration is read"),
            }
            reload(begun, &places, &mut used);
            notify(&[NotifyState::Ready]);
        }
    }
}

/// Takes over what may change while the daemon runs. With a mistake in it, nothing is taken over.
fn reload(begun: &Begun, places: &Places, used: &mut Settings) {
    let read = match places.settings() {
        Ok(read) => read,
        Err(failure) => return tracing::error!(detail = failure.detail, "the configuration is not taken over"),
    };
    begun.supervisor.set_reviewed_content(read.approval.reviewed_content.clone());
    used.approval.reviewed_content.clone_from(&read.approval.reviewed_content);
    tracing::info!(reviewed_content = used.approval.reviewed_content.len(), "the configuration was read again");
    if differs(used, &read) {
        tracing::warn!("what else changed in the configuration takes effect at the next start");
    }
}

/// Whether they differ in more than where things are, which the command line decides.
fn differs(used: &Settings, read: &Settings) -> bool {
    let mut read = read.clone();
    read.paths.clone_from(&used.paths);
    read != *used
}
