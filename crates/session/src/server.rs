//! One owned server: started, proved, set up. Only what passed its canaries is handed out.

mod spare;
mod spawn;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent_contract::{Client, Contract, EventId, ProfileName, SetupClient};
use host::Secret;
use process::launch::{ExitReport, OwnedServer, Program, StopReport, WaitingSpare};
use rules::canary::{CanaryResult, CanaryScope};
use rules::confinement::Reached;
use rules::redact::Redactor;
use rules::refusal::{Refusal, RefusalCode};
use tokio::sync::watch;

use crate::clock;
use crate::profile::{Provider, ReviewedProfile};
use crate::shared::Shared;
use crate::{confinement, profile, server_canaries, workspace};

pub(crate) use spare::Spares;
pub(crate) use spawn::install_request;

/// Bytes of randomness in a session key.
const SESSION_KEY_BYTES: usize = 32;
/// How often a starting server is asked whether it answers yet.
const READY_POLL: Duration = Duration::from_millis(100);
/// How long a server may take to end after the polite signal.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(8);
/// Canary results older than this prove nothing.
pub(crate) const CANARY_EXPIRY_MS: i64 = 300_000;

/// Canary results and when they were read.
#[derive(Debug, Clone)]
pub(crate) struct ReadCanaries {
    pub(crate) results: Vec<CanaryResult>,
    pub(crate) read_at_ms: i64,
}

/// A server whose canaries passed when it was started. A restart makes another one.
pub(crate) struct VerifiedServer {
    owned: OwnedServer,
    client: Client,
    workspace: PathBuf,
    profile: ReviewedProfile,
    provider: Provider,
    redactor: Arc<Redactor>,
    confinement: Reached,
    canaries: Mutex<ReadCanaries>,
    exited: watch::Receiver<Option<ExitReport>>,
    /// Its end is wanted: nobody puts sessions back for it.
    asked_to_end: AtomicBool,
    ending: AtomicBool,
}

impl VerifiedServer {
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn owned(&self) -> &OwnedServer {
        &self.owned
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The agent profile every session on it must have been launched from.
    pub(crate) fn profile(&self) -> &ReviewedProfile {
        &self.profile
    }

    /// Reads about the model provider.
    pub(crate) fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Knows every live secret, this start's session key too.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// How well what it starts is confined, as one of these processes showed at its start.
    pub(crate) fn confinement(&self) -> &Reached {
        &self.confinement
    }

    /// Random for each start.
    pub(crate) fn start_id(&self) -> &str {
        self.owned.server_start_id()
    }

    /// Installation and server canaries, as last read.
    pub(crate) fn canaries(&self) -> ReadCanaries {
        self.canaries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether its process has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.exited.borrow().is_some()
    }

    /// Resolves once its process has ended.
    pub(crate) async fn gone(&self) {
        let mut exited = self.exited.clone();
        // An error means that the watcher itself is gone, which happens only after the end.
        drop(exited.wait_for(Option::is_some).await);
    }

    /// How it ended, once it has.
    pub(crate) fn exit_report(&self) -> Option<ExitReport> {
        self.exited.borrow().clone()
    }

    /// Its end is wanted from here on, because nobody needs it or the daemon stops.
    pub(crate) fn note_asked_to_end(&self) {
        self.asked_to_end.store(true, Ordering::Release);
    }

    /// Whether its end was wanted.
    pub(crate) fn was_asked_to_end(&self) -> bool {
        self.asked_to_end.load(Ordering::Acquire)
    }

    /// Ends it and everything it started.
    pub(crate) async fn stop(&self) -> StopReport {
        self.ending.store(true, Ordering::Release);
        self.owned.stop(STOP_GRACE).await
    }

    /// Whether it is being ended: its process may run still, and is not to be used any more.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Reads the server canaries again; that of the installation stays as it was at the start.
    pub(crate) async fn read_canaries(&self, contract: &Contract) -> Vec<CanaryResult> {
        let mut results: Vec<CanaryResult> = self.canaries().results.into_iter().filter(is_installation).collect();
        results.extend(server_canaries::read(contract, &self.client, &self.owned).await);
        results
    }

    /// What was read is in force from now on.
    pub(crate) fn set_canaries(&self, results: Vec<CanaryResult>) {
        *self.canaries.lock().unwrap_or_else(PoisonError::into_inner) =
            ReadCanaries { results, read_at_ms: clock::steady_ms() };
    }

    /// Ends it without asking it to stop.
    pub(crate) async fn kill(&self) {
        self.ending.store(true, Ordering::Release);
        self.owned.stop(Duration::ZERO).await;
    }
}

fn is_installation(result: &CanaryResult) -> bool {
    result.canary.scope() == CanaryScope::Installation
}

/// A start that did not lead to a usable server, with what was learned on the way.
pub(crate) struct FailedStart {
    pub(crate) refusal: Refusal,
    pub(crate) canaries: Vec<CanaryResult>,
    /// Whether a launch was tried; if not, something is missing that a person must mend.
    pub(crate) launched: bool,
}

impl FailedStart {
    fn unmet(refusal: Refusal, canaries: Vec<CanaryResult>) -> Self {
        Self { refusal, canaries, launched: false }
    }

    fn launched(refusal: Refusal, canaries: Vec<CanaryResult>) -> Self {
        Self { refusal, canaries, launched: true }
    }
}

/// Starts the server of a workspace, from the spare if one fits, proves it, and sets its profiles up. What fails is ended.
pub(crate) async fn start(shared: &Shared, directory: &Path, spares: &Spares) -> Result<VerifiedServer, FailedStart> {
    let unmet = |refusal| FailedStart::unmet(refusal, Vec::new());
    let findings = workspace::scan(directory).map_err(unmet)?;
    let content = rules::canary::workspace_content(&findings, &shared.reviewed_content());
    if let Some(refusal) = content.refusal() {
        return Err(FailedStart::unmet(refusal, vec![content]));
    }
    let program = spawn::program(shared).map_err(unmet)?;
    if let Some(spare) = spares.take(&program).await {
        match start_with(shared, directory, program.clone(), spare.installation, Some(spare.waiting)).await {
            Ok(server) => {
                spares.note_used();
                return Ok(server);
            }
            // Never a reason for a session to fail: the server is started as if there had been none.
            Err(failed) => spares.note_failed(0, failed.refusal),
        }
    }
    let installation = spawn::installation(shared, &program).await;
    start_with(shared, directory, program, installation, None).await
}

async fn start_with(
    shared: &Shared,
    directory: &Path,
    program: Program,
    installation: CanaryResult,
    spare: Option<WaitingSpare>,
) -> Result<VerifiedServer, FailedStart> {
    if let Some(refusal) = installation.refusal() {
        return Err(FailedStart::unmet(refusal, vec![installation]));
    }
    let deadline = Instant::now() + Duration::from_secs(shared.settings.agent_server.start_timeout_s);
    let session_key = Secret::random_hex(SESSION_KEY_BYTES).map_err(no_randomness);
    let session_key = Arc::new(session_key.map_err(|refusal| FailedStart::unmet(refusal, Vec::new()))?);
    let redactor = Arc::new(shared.redactor(&session_key));
    let spec = spawn::spec(shared, directory, program, &session_key, &redactor);
    let owned = match spare {
        Some(spare) => process::launch::become_server(spare, spec).await,
        None => process::launch::launch(&shared.spawner, spec).await,
    };
    let owned = owned.map_err(|error| FailedStart::launched(spawn::failed(&error), Vec::new()))?;
    match prove(shared, directory, &owned, &session_key, deadline).await {
        Ok(proved) => {
            let mut results = vec![installation];
            results.extend(proved.canaries);
            let exited = owned.exited();
            Ok(VerifiedServer {
                owned,
                client: proved.client,
                workspace: directory.to_path_buf(),
                profile: proved.profile,
                provider: proved.provider,
                redactor,
                confinement: proved.confinement,
                canaries: Mutex::new(ReadCanaries { results, read_at_ms: clock::steady_ms() }),
                exited,
                asked_to_end: AtomicBool::new(false),
                ending: AtomicBool::new(false),
            })
        }
        Err(failed) => {
            owned.stop(Duration::ZERO).await;
            Err(failed)
        }
    }
}

struct Proved {
    client: Client,
    profile: ReviewedProfile,
    provider: Provider,
    confinement: Reached,
    canaries: Vec<CanaryResult>,
}

async fn prove(
    shared: &Shared,
    directory: &Path,
    owned: &OwnedServer,
    session_key: &Arc<Secret>,
    deadline: Instant,
) -> Result<Proved, FailedStart> {
    let client = Client::watched(shared.contract, owned.port(), Arc::clone(session_key), shared.watch.clone());
    wait_until_ready(owned, &client, deadline).await.map_err(|refusal| FailedStart::launched(refusal, Vec::new()))?;
    let canaries = server_canaries::read(shared.contract, &client, owned).await;
    if let Err(refusal) = rules::canary::passed(&canaries, &[CanaryScope::Server]) {
        return Err(FailedStart::launched(refusal, canaries));
    }
    let confinement = confinement::prove(shared, owned).await;
    shared.set_confinement(confinement.clone());
    if let Err(refusal) = confinement::check(shared, &confinement) {
        return Err(FailedStart::launched(refusal, canaries));
    }
    let setup = SetupClient::new(shared.contract, owned.port(), Arc::clone(session_key));
    match profile::set_up(shared, &setup).await {
        Ok(profile) => {
            let means = owned.armament().map_or("none", |armament| armament.means.as_str());
            tracing::info!(
                workspace = %directory.display(),
                pid = owned.pid(),
                guards = ?owned.guard_pids(),
                means,
                "the server is proved and ready"
            );
            Ok(Proved { client, profile, provider: Provider::new(setup), confinement, canaries })
        }
        Err(refusal) => Err(FailedStart::launched(refusal, canaries)),
    }
}

/// The server has announced itself; now it must answer.
async fn wait_until_ready(owned: &OwnedServer, client: &Client, deadline: Instant) -> Result<(), Refusal> {
    loop {
        let error = match client.server_info().await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        if let Some(report) = owned.exited().borrow().as_ref() {
            let status = report.status.map_or_else(|| "status unknown".to_owned(), |status| status.to_string());
            let detail = format!("the server ended before it answered ({status}):\n{}", report.log_tail.join("\n"));
            return Err(Refusal::new(RefusalCode::ServerStartFailed, detail));
        }
        if Instant::now() >= deadline {
            let detail = format!("the server did not answer in time ({error}):\n{}", owned.log_tail().join("\n"));
            return Err(Refusal::new(RefusalCode::ServerStartFailed, detail));
        }
        tokio::time::sleep(READY_POLL).await;
    }
}

fn no_randomness(error: std::io::Error) -> Refusal {
    Refusal::new(RefusalCode::Internal, error.to_string())
}

/// A name that is fixed in this program or checked by its configuration.
pub(crate) fn profile_name(name: &str) -> Result<ProfileName, Refusal> {
    ProfileName::parse(name).map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))
}

/// An event id of the server's own log.
pub(crate) fn event_id(id: &str) -> Result<EventId, Refusal> {
    EventId::parse(id).map_err(|error| Refusal::new(RefusalCode::UpstreamMalformed, error.to_string()))
}
