//! `gatepost serve`: the daemon, in the foreground.

mod door;
mod log;
mod open;
mod retention;

use std::time::Duration;

use api_types::ExitCode;
use cli::{Failure, ServeArgs};
use rules::passage::Watch;
use sd_notify::NotifyState;
use serde_json::{Value, json};
use session::Supervisor;

use crate::ContractInForce;
use crate::places::Places;
use crate::signals::StopSignals;
use door::{Door, OwnUserOnly};
use open::Opened;

pub(crate) use open::{PROVED, VERSION};

/// How long every server may take to end, beyond which they are killed.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(60);
/// How long tasks may take to end once nothing is left for them to do.
const RUNTIME_LIMIT: Duration = Duration::from_secs(5);
/// How long what is left of the servers' trees may take to end.
const SWEEP_LIMIT: Duration = Duration::from_secs(10);

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// Why it did not start, or what is left after it stopped.
pub(crate) fn run(
    places: &Places,
    args: &ServeArgs,
    in_force: ContractInForce,
    watch: &Watch,
) -> Result<Value, Failure> {
    let handed_over = Door::handed_over().map_err(|error| open::no_door(&error))?;
    log::start()?;
    // Early: from here on nobody can read the secrets, and whatever a server loses falls to us.
    host::hygiene::harden_self().map_err(|error| system("this process cannot be hardened", &error))?;
    host::hygiene::become_subreaper().map_err(|error| system("orphans would not fall to this process", &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| system("no asynchronous runtime", &error))?;
    // Before anything is opened, so that a signal never cuts off a first write.
    let signals = runtime
        .block_on(async { StopSignals::listen() })
        .map_err(|error| system("signals cannot be followed", &error))?;
    let (opened, lock) = open::open(places, args, in_force, watch, handed_over)?;
    // Ends with the last clone, and the servers with it: kept until they were stopped in order.
    let spawner = opened.dependencies.spawner.clone();
    let served = runtime.block_on(serve(opened, &signals));
    runtime.shutdown_timeout(RUNTIME_LIMIT);
    let left = sweep();
    drop((spawner, lock));
    served?;
    if left > 0 {
        let detail = format!("the daemon stopped, but {left} processes of its servers are left; end them by hand");
        return Err(Failure::new(ExitCode::Failed, "processes_left", detail).field("leftover_processes", left));
    }
    tracing::info!("stopped");
    Ok(json!({"leftover_processes": 0}))
}

async fn serve(opened: Opened, signals: &StopSignals) -> Result<(), Failure> {
    let Opened { dependencies, door, journal, retention_days } = opened;
    let supervisor = Supervisor::start(dependencies)
        .await
        .map_err(|refusal| Failure::new(ExitCode::Failed, refusal.code.as_str(), refusal.detail))?;
    let listener = door.listener().map_err(|error| system("the socket cannot be listened on", &error))?;
    tokio::spawn(retention::prune_daily(journal, retention_days));
    tracing::info!(socket = %door.path().display(), version = open::VERSION, "listening");
    notify(&[NotifyState::Ready]);
    let stop = {
        let signals = signals.clone();
        async move {
            signals.asked().await;
            tracing::info!("stopping; a second signal hurries");
            notify(&[NotifyState::Stopping]);
            // The name goes first, so that a client is told at once that nobody listens.
            drop(door);
        }
    };
    let serving =
        api::serve(listener, supervisor.clone(), OwnUserOnly::of_this_process(), api::Limits::default(), stop);
    tokio::select! {
        report = serving => tracing::debug!(?report, "connections are drained"),
        () = signals.hurried() => tracing::warn!("connections are cut off"),
    }
    end_servers(&supervisor, signals).await;
    Ok(())
}

/// Ends every server in order; in a hurry, or when that takes too long, at once.
async fn end_servers(supervisor: &Supervisor, signals: &StopSignals) {
    let shutdown = supervisor.shutdown();
    tokio::pin!(shutdown);
    tokio::select! {
        left = &mut shutdown => return tracing::debug!(left, "servers are ended"),
        () = signals.hurried() => tracing::warn!("servers are killed"),
        () = tokio::time::sleep(SHUTDOWN_LIMIT) => tracing::warn!("servers did not end in time and are killed"),
    }
    host::child::kill_all_held();
    if tokio::time::timeout(SHUTDOWN_LIMIT, &mut shutdown).await.is_err() {
        tracing::error!("servers could not be ended");
    }
}

/// Ends what is still there: a server that was starting, and whatever fell to us.
fn sweep() -> usize {
    host::child::kill_all_held();
    match host::tree::end_descendants(&[], SWEEP_LIMIT) {
        Ok(report) => report.left.len(),
        Err(error) => {
            tracing::warn!(%error, "whether processes are left cannot be told");
            0
        }
    }
}

/// Tells the service manager, where there is one.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be told");
    }
}

fn system(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(ExitCode::Failed, "system", format!("{what}: {error}"))
}
