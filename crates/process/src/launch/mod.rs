//! Starting the Agent Server so that it is ours: our socket, our keys, our start-up module, and its word for it.

mod bounded;
mod confining;
mod control;
mod further;
mod guarded;
mod held;
mod inspection;
mod layout;
mod leftovers;
mod outer;
mod output;
mod places;
mod predecessor;
mod server;
mod shape;
mod spare;
mod start;
#[cfg(test)]
mod tests;
mod watch;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use host::lock::LockError;
use host::secure_fs::SecureFsError;
use host::{ExitStatus, Secret, Spawner};
use rules::redact::Redactor;
use tokio::sync::oneshot;

pub use confining::{Confining, ProbeTargets, WrapperProgram};
pub use control::{Control, ControlError, Held, MAX_LOG_ENDS};
pub use further::FurtherGrants;
pub use inspection::{Inspection, Listener};
pub use layout::{data_dir, spare_dir};
pub use leftovers::{end_leftovers, leftovers};
pub use server::{OwnedServer, StopReport};
pub use shape::Program;
pub use spare::{SpareSpec, WaitingSpare, become_server, start_spare};
pub use watch::ExitReport;

use control::Announcement;
use server::{Identity, Running};
use start::Started;

/// What a server must say that it did.
const MEASURES: [&str; 6] = ["listener", "dumpable", "listeners_refused", "ambient_plugins_dropped", "latch", "routes"];
/// And where what it starts is confined.
const CONFINING_MEASURE: &str = "door";
/// For a server whose channel closed to show that it has ended.
const CLOSED_WAIT: Duration = Duration::from_secs(1);

/// What to start, and with what.
#[derive(Clone)]
pub struct LaunchSpec {
    /// The program.
    pub program: Program,
    /// The contract's version, which the server must announce.
    pub version: String,
    /// The files of the contract's start-up module: name and whole text.
    pub startup_files: Vec<(String, String)>,
    /// The binding's data directory, see [`data_dir`]. Made when missing; one server at a time.
    pub data_dir: PathBuf,
    /// Where short directories for sockets may stand, if the data directory's path is too long; `/tmp` otherwise.
    pub runtime_dir: Option<PathBuf>,
    /// PATH of the server and of the agent's commands.
    pub path: OsString,
    /// The key of every request: fresh for this start.
    pub session_key: Arc<Secret>,
    /// The key of what the server stores: the same at every start.
    pub secret_key: Arc<Secret>,
    /// Knows both keys and every other secret; the server's output goes through it.
    pub redactor: Arc<Redactor>,
    /// For the announcement.
    pub start_timeout: Duration,
    /// The gatepost binary, for the guards between this process and the server; without it, this process walks the tree.
    pub guard: Option<PathBuf>,
    /// What confines the processes that the server starts; without it nothing does.
    pub confining: Option<Confining>,
}

/// Why no server runs. Whatever was started was ended.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Another server, perhaps of another daemon, has the data directory.
    #[error("{0}: a server of this workspace runs already; stop it first")]
    InUse(LockError),
    /// Private files.
    #[error(transparent)]
    Private(#[from] SecureFsError),
    /// Files, descriptors, threads.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A spare is not fit for this workspace, or did not become its server.
    #[error("the spare could not become the server: {0}")]
    Spare(String),
    /// A spare was to give way before it had imported everything.
    #[error("the spare is not needed")]
    Unneeded,
    /// The processes that the server starts could not be confined.
    #[error("what the server starts could not be confined: {0}")]
    Confinement(String),
    /// What a dead server leaves would not fall to this process.
    #[error("this process is no subreaper, so what a server leaves could not be ended; call become_subreaper first")]
    NotSubreaper,
    /// Processes of an earlier server of this workspace would not go.
    #[error("processes of an earlier server of this workspace cannot be ended: {0:?}; end them by hand")]
    Leftovers(Vec<u32>),
    /// It ended before it announced itself.
    #[error("the server ended before it was ready ({}); its last words:\n{}", said(.status), .log_tail.join("\n"))]
    Exited {
        /// How.
        status: Option<ExitStatus>,
        /// The last lines of its output, redacted.
        log_tail: Vec<String>,
    },
    /// It did not announce itself in time.
    #[error("the server did not announce itself within {limit_s} s ([agent_server] start_timeout_s); its last words:\n{}", .log_tail.join("\n"))]
    TimedOut {
        /// The time it had, in seconds.
        limit_s: u64,
        /// The last lines of its output, redacted.
        log_tail: Vec<String>,
    },
    /// It announced itself as something else; it was never spoken to.
    #[error("the server is not as reviewed: {what}; verify the install. Its last words:\n{}", .log_tail.join("\n"))]
    NotAsReviewed {
        /// What is wrong.
        what: String,
        /// The last lines of its output, redacted.
        log_tail: Vec<String>,
    },
}

fn said(status: &Option<ExitStatus>) -> String {
    status.map_or_else(|| "status unknown".to_owned(), |status| status.to_string())
}

impl LaunchError {
    fn files(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

/// Start a server and wait until it has announced itself with this start's nonce, the contract's version and every
/// measure. It may not answer requests yet: ask it, within what is left of the start's time.
///
/// # Errors
/// See [`LaunchError`]. When this future is dropped, what was started is ended as well.
pub async fn launch(spawner: &Spawner, spec: LaunchSpec) -> Result<OwnedServer, LaunchError> {
    let deadline = Instant::now() + spec.start_timeout;
    let limit_s = spec.start_timeout.as_secs();
    let version = spec.version.clone();
    let spawner = spawner.clone();
    let started = tokio::task::spawn_blocking(move || start::start(&spawner, &spec));
    let started =
        started.await.map_err(|error| LaunchError::System { what: "cannot start", source: error.into() })??;
    take(started, &version, deadline, limit_s).await
}

/// The server that was started, once it has announced itself as what it is to be.
async fn take(started: Started, version: &str, deadline: Instant, limit_s: u64) -> Result<OwnedServer, LaunchError> {
    let Started { running, control_end, identity } = started;
    let opened = Control::open(control_end, identity.nonce.clone());
    let (control, announced) = opened.map_err(LaunchError::files("cannot open the control channel"))?;
    let checked = match await_announcement(&running, announced, deadline).await {
        Ok(announcement) => check(&announcement, &identity, running.pid(), version).map_err(Unfit::NotAsReviewed),
        Err(unfit) => Err(unfit),
    };
    match checked {
        Ok(()) => Ok(OwnedServer::new(running, control, identity)),
        Err(unfit) => Err(unfit.ended(running, limit_s).await),
    }
}

/// Why a started server is not taken.
enum Unfit {
    Exited(ExitReport),
    NotAsReviewed(String),
    Late,
    Unneeded,
}

impl Unfit {
    /// Ends what was started, and says why.
    async fn ended(self, running: Running, limit_s: u64) -> LaunchError {
        match self {
            Self::Exited(report) => LaunchError::Exited { status: report.status, log_tail: report.log_tail },
            Self::NotAsReviewed(what) => LaunchError::NotAsReviewed { what, log_tail: running.end_now().await },
            Self::Late => LaunchError::TimedOut { limit_s, log_tail: running.end_now().await },
            Self::Unneeded => {
                running.end_now().await;
                LaunchError::Unneeded
            }
        }
    }
}

async fn await_announcement(
    running: &Running,
    announced: oneshot::Receiver<Announcement>,
    deadline: Instant,
) -> Result<Announcement, Unfit> {
    tokio::select! {
        biased;
        announced = announced => match announced {
            Ok(announcement) => Ok(announcement),
            // Mostly the process has ended; then that is the better thing to say.
            Err(_) => Err(running.exit_within(CLOSED_WAIT).await.map_or_else(
                || Unfit::NotAsReviewed("it closed its control channel, or said something else than who it is".to_owned()),
                Unfit::Exited,
            )),
        },
        report = running.exit_within(deadline.saturating_duration_since(Instant::now())) => {
            Err(report.map_or(Unfit::Late, Unfit::Exited))
        }
    }
}

/// Nothing but a full match is spoken to.
fn check(announcement: &Announcement, identity: &Identity, pid: u32, version: &str) -> Result<(), String> {
    if !host::secret::constant_time_eq(announcement.nonce.as_bytes(), identity.nonce.as_bytes()) {
        return Err("it announced itself with another nonce".to_owned());
    }
    if announcement.pid != pid {
        return Err(format!("process {} announced itself, not {pid}", announcement.pid));
    }
    if announcement.contract != version {
        return Err(format!("its start-up module is for version {:.40}, not {version}", announcement.contract));
    }
    let measures = MEASURES.into_iter().chain(identity.confined.is_some().then_some(CONFINING_MEASURE));
    let missing: Vec<&str> =
        measures.filter(|measure| !announcement.measures.iter().any(|done| done == measure)).collect();
    if !missing.is_empty() {
        return Err(format!("it did not take these measures: {}", missing.join(", ")));
    }
    Ok(())
}
