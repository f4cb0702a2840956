//! The daemon, if one runs: whether it answers, and what it finds itself.

use std::time::Duration;

use api_types::{ExitCode, Health, OverallState, Status};
use cli::{Daemon, Failure};

use super::super::finding::Finding;
use crate::places::Places;

const CHECK: &str = "daemon";
/// How long each answer may take.
const WITHIN: Duration = Duration::from_secs(10);

/// What asking it came to.
pub(super) struct Asked {
    /// Something serves the socket.
    pub(super) runs: bool,
    pub(super) findings: Vec<Finding>,
}

/// Asks it. A daemon that does not run is no fault.
///
/// # Errors
/// No runtime could be had to ask with.
pub(super) fn all(places: &Places) -> Result<Asked, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(ExitCode::Failed, "system", format!("no asynchronous runtime: {error}")))?;
    let daemon = Daemon::new(places.paths.socket.clone(), places.token());
    let asked = runtime.block_on(async {
        daemon.get::<Health>("/v1/healthz", WITHIN).await?;
        daemon.get::<Status>("/v1/status", WITHIN).await
    });
    Ok(match asked {
        Ok(status) => Asked { runs: true, findings: answered(&status) },
        Err(failure) => Asked { runs: failure.exit != ExitCode::DaemonNotRunning, findings: vec![silent(failure)] },
    })
}

fn silent(failure: Failure) -> Finding {
    if failure.exit == ExitCode::DaemonNotRunning {
        return Finding::warning(CHECK, failure.detail, "`gatepost serve`");
    }
    let remedy = failure.hint.unwrap_or_else(|| "look at the daemon's log; stop it and start it again".to_owned());
    Finding::failed(CHECK, format!("{}: {}", failure.code, failure.detail), remedy)
}

fn answered(status: &Status) -> Vec<Finding> {
    let about = format!("gatepost {}, process {}", status.gatepost_version, status.pid);
    let remedy = "`gatepost status` says what is wrong and what mends it";
    let mut findings = vec![match status.state {
        OverallState::Ready => Finding::ok(CHECK, format!("{about}, is ready")),
        OverallState::Degraded => Finding::failed(CHECK, format!("{about}, is degraded"), remedy),
        OverallState::Blocked => Finding::failed(CHECK, format!("{about}, is blocked"), remedy),
        OverallState::Starting => Finding::warning(CHECK, format!("{about}, is starting"), "ask again in a moment"),
        OverallState::Stopping => {
            Finding::warning(CHECK, format!("{about}, is stopping"), "start it again once it has ended")
        }
    }];
    if status.gatepost_version != crate::serve::VERSION {
        let detail = format!("the daemon is {}, this program {}", status.gatepost_version, crate::serve::VERSION);
        findings.push(Finding::warning(CHECK, detail, "restart the daemon with the program you use"));
    }
    let own = status.findings.iter();
    findings
        .extend(own.map(|own| Finding::failed(CHECK, format!("{}: {}", own.code, own.detail), own.remedy.as_str())));
    findings
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::State;
    use super::*;

    fn status(state: OverallState, version: &str) -> Status {
        Status {
            state,
            remedy: None,
            gatepost_version: version.to_owned(),
            pid: 7,
            contract_version: "1.40.0".to_owned(),
            installed: None,
            servers: Vec::new(),
            spare: None,
            sessions: Vec::new(),
            confinement_level: "weak".to_owned(),
            confinement_missing: Vec::new(),
            confinement_notes: Vec::new(),
            refused_peers: api_types::RefusedPeers::default(),
            findings: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn what_the_daemon_finds_is_told_with_its_remedy() {
        let ready = answered(&status(OverallState::Ready, crate::serve::VERSION));
        assert_eq!(ready.iter().map(|finding| finding.state).collect::<Vec<_>>(), [State::Ok]);
        let mut blocked = status(OverallState::Blocked, crate::serve::VERSION);
        blocked.findings.push(api_types::Finding {
            code: "server_not_installed".to_owned(),
            detail: "none".to_owned(),
            remedy: "install it".to_owned(),
        });
        let told = answered(&blocked);
        assert!(told.iter().all(|finding| finding.state == State::Failed), "{told:?}");
        assert_eq!(told[1].remedy.as_deref(), Some("install it"));
        assert!(told[1].detail.contains("server_not_installed"), "{}", told[1].detail);
    }

    #[test]
    fn another_version_is_warned_of() {
        assert_eq!(answered(&status(OverallState::Ready, "0.0.0"))[1].state, State::Warning);
    }

    #[test]
    fn not_running_is_a_warning_and_not_trusted_a_failure() {
        let none = Failure::new(ExitCode::DaemonNotRunning, "daemon_not_running", "nothing answers");
        let finding = silent(none);
        assert_eq!((finding.state, finding.remedy.as_deref()), (State::Warning, Some("`gatepost serve`")));
        let foreign = Failure::new(ExitCode::NotPermitted, "socket_not_trusted", "user 7 serves it");
        assert_eq!(silent(foreign).state, State::Failed);
    }
}
