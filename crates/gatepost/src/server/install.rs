//! `server install`, and the same as a part of the demonstration.

use std::io::stderr;
use std::time::{Duration, Instant};

use api_types::ExitCode;
use cli::Failure;
use cli::progress::{Progress, duration};
use process::install::{InstallError, InstallPhase, InstallRequest, Installed};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::signals::{Hangup, StopSignals};
use crate::{Look, say};

/// How long an interrupted install may take to clean up after its tools were ended.
const CLEAN_UP: Duration = Duration::from_secs(20);
/// How long the tools of an interrupted install may take to end.
const TOOLS_END: Duration = Duration::from_secs(10);

/// An install that stands, and whether it was made now.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) installed: Installed,
    pub(crate) already_installed: bool,
    pub(crate) elapsed_ms: u64,
}

/// `gatepost server install`.
pub(super) fn run(request: InstallRequest<'static>, look: Look) -> Result<Value, Failure> {
    host::hygiene::become_subreaper().map_err(|error| broken(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| broken(&error))?;
    let ready = runtime.block_on(async {
        let signals = StopSignals::listen(Hangup::Stops).map_err(|error| broken(&error))?;
        ensure(request, look, &signals).await
    })?;
    if !look.json {
        say(&words(&ready));
    }
    Ok(object(&ready))
}

/// Installs what is asked for unless it stands already. Told to stop, it ends the tools it runs and leaves nothing that could
/// be taken for an install.
///
/// # Errors
/// Why there is no install.
pub(crate) async fn ensure(
    request: InstallRequest<'static>,
    look: Look,
    signals: &StopSignals,
) -> Result<Ready, Failure> {
    let began = Instant::now();
    if let Some(installed) = process::install::find_for(&request) {
        return Ok(Ready { installed, already_installed: true, elapsed_ms: elapsed_ms(began) });
    }
    let (answer, mut answered) = oneshot::channel();
    std::thread::Builder::new()
        .name("install".to_owned())
        .spawn(move || {
            // Nobody waits for it any more only when this process is ending.
            answer.send(install(&request, look)).ok();
        })
        .map_err(|error| broken(&error))?;
    let ended = tokio::select! {
        ended = &mut answered => ended,
        () = signals.asked() => {
            let swept = tokio::task::spawn_blocking(|| host::tree::end_descendants(&[], TOOLS_END)).await;
            let cleaned = tokio::time::timeout(CLEAN_UP, &mut answered).await.is_ok();
            return Err(interrupted(cleaned && matches!(swept, Ok(Ok(report)) if report.left.is_empty())));
        }
    };
    let installed = ended.map_err(|_| broken(&std::io::Error::other("the installing thread ended")))?;
    let installed = installed.map_err(|error| failed(&error))?;
    Ok(Ready { installed, already_installed: false, elapsed_ms: elapsed_ms(began) })
}

fn install(request: &InstallRequest<'_>, look: Look) -> Result<Installed, InstallError> {
    let progress = std::cell::RefCell::new(Progress::new(look.live_progress));
    let installed = process::install::install(request, &|report| {
        let phase = phase(report.phase);
        let detail = match report.percent {
            Some(percent) => format!("{} ({percent} %)", report.detail),
            None if report.detail == phase => String::new(),
            None => report.detail,
        };
        progress.borrow_mut().tell_share(&mut stderr(), phase, &detail, report.elapsed_ms, report.percent);
    });
    progress.borrow_mut().clear(&mut stderr());
    installed
}

fn phase(phase: InstallPhase) -> &'static str {
    match phase {
        InstallPhase::Waiting => "waiting for another install",
        InstallPhase::Preparing => "preparing",
        InstallPhase::Environment => "making the environment",
        InstallPhase::BuildRequirements => "installing what building needs",
        InstallPhase::Requirements => "installing the Agent Server",
        InstallPhase::Bytecode => "compiling",
        InstallPhase::Manifest => "recording every file",
        InstallPhase::Done => "done",
    }
}

fn words(ready: &Ready) -> String {
    let Installed { version, root, python, .. } = &ready.installed;
    let how = if ready.already_installed {
        "already installed".to_owned()
    } else {
        format!("installed in {}", duration(ready.elapsed_ms))
    };
    format!("Agent Server {version}, {how}\n  {}\n  Python {python}\n", root.display())
}

/// The one object of `--json`.
pub(crate) fn object(ready: &Ready) -> Value {
    let mut object = super::list::object(&ready.installed);
    object["already_installed"] = json!(ready.already_installed);
    object["elapsed_ms"] = json!(ready.elapsed_ms);
    object
}

fn failed(error: &InstallError) -> Failure {
    let (exit, code) = match error {
        InstallError::Python(_) => (ExitCode::Failed, "python_not_found"),
        InstallError::Busy { .. } => (ExitCode::Conflict, "install_busy"),
        InstallError::Version(_) => (ExitCode::Usage, "version_not_reviewed"),
        InstallError::Lock(_)
        | InstallError::Tool { .. }
        | InstallError::NotAsLocked(_)
        | InstallError::Files { .. } => (ExitCode::Failed, "install_failed"),
    };
    Failure::new(exit, code, error.to_string())
}

fn interrupted(cleaned: bool) -> Failure {
    let detail = if cleaned {
        "the install was interrupted; nothing of it is left"
    } else {
        "the install was interrupted; the next one removes what is left of it"
    };
    Failure::new(ExitCode::Failed, "interrupted", detail)
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::new(ExitCode::Failed, "system", error.to_string())
}

fn elapsed_ms(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn ready(already_installed: bool) -> Ready {
        let installed = Installed {
            version: "1.2.3".to_owned(),
            root: "/s/servers/1.2.3-abc".into(),
            executable: "/s/servers/1.2.3-abc/bin/python".into(),
            python: "3.12.1".to_owned(),
            distributions: BTreeMap::from([("a".to_owned(), "1".to_owned())]),
            manifest_sha256: "ff".to_owned(),
        };
        Ready { installed, already_installed, elapsed_ms: 61_000 }
    }

    #[test]
    fn the_object_says_what_stands_where_and_whether_it_is_new() {
        let expected = json!({
            "version": "1.2.3", "root": "/s/servers/1.2.3-abc", "python": "3.12.1", "distributions": 1,
            "manifest_sha256": "ff", "already_installed": true, "elapsed_ms": 61_000,
        });
        assert_eq!(object(&ready(true)), expected);
        assert!(words(&ready(true)).contains("already installed"));
        assert!(words(&ready(false)).contains("1 min 1 s"));
    }

    #[test]
    fn an_install_that_is_going_on_elsewhere_is_a_conflict() {
        let busy = failed(&InstallError::Busy { waited_s: 9, lock: "/l".into() });
        assert_eq!((busy.exit, busy.code.as_str()), (ExitCode::Conflict, "install_busy"));
        let tool = failed(&InstallError::Tool { what: "pip", detail: "no".to_owned() });
        assert_eq!((tool.exit, tool.code.as_str()), (ExitCode::Failed, "install_failed"));
    }
}
