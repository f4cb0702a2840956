//! `gatepost serve`: the daemon, in the foreground.

mod door;
mod front;
mod log;
mod manager;
mod open;
mod records;
mod retention;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use api::{PeerPolicy as _, PeerVerdict};
use api_types::ExitCode;
use cli::{Failure, ServeArgs};
use rules::passage::Watch;
use sd_notify::NotifyState;
use serde_json::{Value, json};
use session::{Dependencies, KnownSecrets, Supervisor};
use tokio::sync::oneshot;

use crate::places::Places;
use crate::signals::{Hangup, StopSignals};
use crate::{ContractInForce, Guards};
use door::{Door, OwnUserOnly};
use front::{Begun, Front};
use manager::{Reloads, notify};
use open::Opened;
use records::NotOpened;

pub(crate) use open::{VERSION, lock, lock_path};

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
    guards: Guards,
) -> Result<Value, Failure> {
    let handed_over = Door::handed_over().map_err(|error| open::no_door(&error))?;
    let known_secrets = Arc::new(KnownSecrets::default());
    let logging = log::start(Arc::clone(&known_secrets))?;
    // Early: whatever a server loses falls to us.
    host::hygiene::become_subreaper().map_err(|error| system("orphans would not fall to this process", &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| system("no asynchronous runtime", &error))?;
    // Before anything is opened, so that a signal never cuts off a first write.
    let (signals, reloads) = runtime
        .block_on(async {
            let hangup = if manager::is_there() { Hangup::IsNotForUs } else { Hangup::Stops };
            Ok((StopSignals::listen(hangup)?, Reloads::listen()?))
        })
        .map_err(|error: std::io::Error| system("signals cannot be followed", &error))?;
    let (mut opened, lock) = open::open(places, args, in_force, watch, handed_over, known_secrets, &logging)?;
    if !guards.tree {
        opened.dependencies.guard = None;
    }
    // Ends with the last clone, and the servers with it: kept until they were stopped in order.
    let spawner = opened.dependencies.spawner.clone();
    let used = opened.dependencies.settings.clone();
    let served = runtime.block_on(async {
        let front = Front::new(Arc::clone(&opened.dependencies.owner_token), opened.dependencies.contract.version());
        tokio::spawn(reloads.follow(front.clone(), places.clone(), used));
        tokio::spawn(manager::keep_telling(front.clone()));
        serve(opened, front, &signals, guards).await
    });
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

/// Listens first, so that whoever asks is told where the start stands; checks the records, and only then does anything.
async fn serve(opened: Opened, front: Front, signals: &StopSignals, guards: Guards) -> Result<(), Failure> {
    let Opened { dependencies, door, retention_days } = opened;
    let state_dir = dependencies.settings.paths.state_dir.clone();
    let listener = door.listener().map_err(|error| system("the socket cannot be listened on", &error))?;
    tracing::info!(socket = %door.path().display(), version = open::VERSION, "listening");
    notify(&[NotifyState::Status("checking the records")]);
    let (tell_failed, failed) = oneshot::channel();
    let beginning = tokio::spawn(begin(front.clone(), dependencies, retention_days, tell_failed));
    let (keep_failure, failure) = oneshot::channel();
    let stop = {
        let signals = signals.clone();
        async move {
            tokio::select! {
                () = signals.asked() => tracing::info!("stopping; a second signal hurries"),
                Ok(why) = failed => { keep_failure.send(why).ok(); }
            }
            notify(&[NotifyState::Stopping]);
            // The name goes first, so that a client is told at once that nobody listens.
            drop(door);
        }
    };
    let own_user_only = OwnUserOnly::of_this_process();
    let peers = move |connection: BorrowedFd<'_>| {
        if guards.peers { own_user_only.check(connection) } else { PeerVerdict::Admit }
    };
    let serving = api::serve(listener, front.clone(), peers, api::Limits::default(), stop);
    tokio::select! {
        report = serving => tracing::debug!(?report, "connections are drained"),
        () = signals.hurried() => tracing::warn!("connections are cut off"),
    }
    // A start that has not got as far as the controller has done nothing that would have to be ended.
    beginning.abort();
    if let Some(begun) = front.begun() {
        end_servers(&begun.supervisor, signals).await;
        let records = begun.records.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || records::close(&state_dir, &records)).await {
            tracing::error!(%error, "the records were not closed");
        }
    }
    failure.await.map_or(Ok(()), Err)
}

/// Checks the records and lets the controller take over; or says why it cannot.
async fn begin(front: Front, dependencies: Dependencies, retention_days: u64, failed: oneshot::Sender<Failure>) {
    let (state_dir, key) = (dependencies.settings.paths.state_dir.clone(), Arc::clone(&dependencies.signing_key));
    let opened = match tokio::task::spawn_blocking(move || records::open(&state_dir, &key)).await {
        Ok(opened) => opened,
        Err(error) => Err(NotOpened::Failed(Failure::new(ExitCode::Failed, "internal", error.to_string()))),
    };
    let begun = match opened {
        Ok(records) => match Supervisor::start(dependencies, records.clone()).await {
            Ok(supervisor) => Ok(Begun { supervisor, records }),
            Err(refusal) => Err(records::unreadable(refusal)),
        },
        Err(why) => Err(why),
    };
    match begun {
        Ok(begun) => {
            tokio::spawn(retention::prune_daily(begun.records.journal.clone(), retention_days));
            front.begin(begun);
            tracing::info!("ready");
            notify(&[NotifyState::Ready, NotifyState::Status("ready")]);
        }
        Err(NotOpened::Damaged(finding)) => {
            tracing::error!(
                code = finding.code.as_str(),
                detail = finding.detail,
                "nothing can be done: see the remedy"
            );
            // The start is over, and what there is to say is said: a service manager must not end it for being late.
            notify(&[NotifyState::Ready, NotifyState::Status("the ledger is damaged; see `gatepost status`")]);
            front.refuse(finding);
        }
        Err(NotOpened::Failed(failure)) => {
            failed.send(failure).ok();
        }
    }
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

fn system(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(ExitCode::Failed, "system", format!("{what}: {error}"))
}
