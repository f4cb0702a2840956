//! One owned server a workspace: started on demand, bounded in number, stopped when idle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rules::canary::CanaryResult;
use rules::refusal::{Refusal, RefusalCode};

use crate::server::{self, CANARY_REFRESH, VerifiedServer};
use crate::shared::Shared;
use crate::view::ServerView;

/// Starts of one workspace that may fail within [`CRASH_WINDOW`] before no further one is tried in it.
const MAX_FAILURES: usize = 3;
const CRASH_WINDOW: Duration = Duration::from_secs(60);
/// How often idle servers are looked for.
const IDLE_POLL: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Slot {
    server: Option<Arc<VerifiedServer>>,
    starting: bool,
    stopping: bool,
    failure: Option<Refusal>,
    failed_canaries: Vec<CanaryResult>,
    failures: Vec<Instant>,
    last_used: Option<Instant>,
    /// One start at a time.
    start_lock: Arc<tokio::sync::Mutex<()>>,
}

/// Every owned server, by resolved workspace.
pub(crate) struct Servers {
    shared: Arc<Shared>,
    slots: Mutex<BTreeMap<PathBuf, Slot>>,
}

impl Servers {
    pub(crate) fn new(shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { shared: Arc::clone(shared), slots: Mutex::new(BTreeMap::new()) })
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server of a workspace, if one is up.
    pub(crate) fn running(&self, workspace: &Path) -> Option<Arc<VerifiedServer>> {
        self.slots().get(workspace).and_then(|slot| slot.server.clone()).filter(|server| !server.is_gone())
    }

    /// Any server that is up.
    pub(crate) fn any(&self) -> Option<Arc<VerifiedServer>> {
        self.slots().values().filter_map(|slot| slot.server.clone()).find(|server| !server.is_gone())
    }

    /// The server of a workspace, started when it is not up.
    ///
    /// # Errors
    /// `server_limit`, or why it could not be started.
    pub(crate) async fn ensure(self: &Arc<Self>, workspace: &Path) -> Result<Arc<VerifiedServer>, Refusal> {
        let start_lock = {
            let mut slots = self.slots();
            let slot = slots.entry(workspace.to_path_buf()).or_default();
            slot.last_used = Some(Instant::now());
            Arc::clone(&slot.start_lock)
        };
        let _starting = start_lock.lock().await;
        if let Some(server) = self.running(workspace) {
            return Ok(server);
        }
        self.check_crash_loop(workspace)?;
        self.make_room(workspace).await?;
        self.with_slot(workspace, |slot| slot.starting = true);
        let outcome = server::start(&self.shared, workspace).await;
        match outcome {
            Ok(started) => {
                let started = Arc::new(started);
                self.with_slot(workspace, |slot| {
                    slot.starting = false;
                    slot.failure = None;
                    slot.failed_canaries.clear();
                    slot.server = Some(Arc::clone(&started));
                });
                tokio::spawn(watch(Arc::clone(self), Arc::clone(&started)));
                Ok(started)
            }
            Err(failed) => {
                tracing::warn!(workspace = %workspace.display(), refusal = %failed.refusal, "the server did not start");
                self.with_slot(workspace, |slot| {
                    slot.starting = false;
                    slot.failures.push(Instant::now());
                    slot.failure = Some(failed.refusal.clone());
                    slot.failed_canaries = failed.canaries;
                });
                Err(failed.refusal)
            }
        }
    }

    fn with_slot(&self, workspace: &Path, change: impl FnOnce(&mut Slot)) {
        change(self.slots().entry(workspace.to_path_buf()).or_default());
    }

    fn check_crash_loop(&self, workspace: &Path) -> Result<(), Refusal> {
        let mut slots = self.slots();
        let Some(slot) = slots.get_mut(workspace) else { return Ok(()) };
        slot.failures.retain(|at| at.elapsed() < CRASH_WINDOW);
        if slot.failures.len() < MAX_FAILURES {
            return Ok(());
        }
        let last = slot.failure.as_ref().map(|refusal| refusal.detail.clone()).unwrap_or_default();
        let detail =
            format!("the server failed {MAX_FAILURES} times within a minute; wait, then try again. Last: {last}");
        Err(Refusal::new(RefusalCode::ServerStartFailed, detail))
    }

    /// Stops the longest idle server when as many run as may.
    async fn make_room(&self, workspace: &Path) -> Result<(), Refusal> {
        let max_servers = self.shared.settings.agent_server.max_servers;
        let victim = {
            let slots = self.slots();
            let is_up = |slot: &Slot| slot.starting || slot.server.as_ref().is_some_and(|server| !server.is_gone());
            let up = slots.iter().filter(|(path, slot)| path.as_path() != workspace && is_up(slot)).count();
            if up < max_servers {
                return Ok(());
            }
            let idle = slots.values().filter(|slot| slot.server.as_ref().is_some_and(|server| !self.is_busy(server)));
            idle.min_by_key(|slot| slot.last_used).and_then(|slot| slot.server.clone())
        };
        match victim {
            Some(server) => {
                server.stop().await;
                Ok(())
            }
            None => {
                let detail =
                    format!("{max_servers} servers run and none is idle; close a session or raise max_servers");
                Err(Refusal::new(RefusalCode::ServerLimit, detail))
            }
        }
    }

    /// One with a pending, running or queued session is not idle.
    fn is_busy(&self, server: &Arc<VerifiedServer>) -> bool {
        self.shared
            .sessions()
            .iter()
            .filter(|session| session.follows(server))
            .any(|session| session.is_busy() || session.summary().pending_actions > 0)
    }

    /// Stops servers that nobody used for the configured time. Runs until the daemon stops.
    pub(crate) async fn stop_idle(self: Arc<Self>) {
        let Some(limit) = self.shared.settings.agent_server.idle_stop() else { return };
        loop {
            tokio::time::sleep(IDLE_POLL).await;
            let idle: Vec<Arc<VerifiedServer>> = {
                let slots = self.slots();
                slots
                    .values()
                    .filter(|slot| slot.last_used.is_some_and(|at| at.elapsed() >= limit))
                    .filter_map(|slot| slot.server.clone())
                    .filter(|server| !server.is_gone() && !self.is_busy(server))
                    .collect()
            };
            for server in idle {
                tracing::info!(workspace = %server.workspace().display(), "the idle server is stopped");
                server.stop().await;
            }
        }
    }

    /// Stops every server; says how many processes are left.
    pub(crate) async fn stop_all(&self) -> usize {
        let servers: Vec<Arc<VerifiedServer>> = {
            let mut slots = self.slots();
            slots.values_mut().for_each(|slot| slot.stopping = true);
            slots.values().filter_map(|slot| slot.server.clone()).collect()
        };
        let mut left = 0;
        for server in servers {
            left += server.stop().await.leftover_processes;
        }
        left
    }

    /// As status shows them.
    pub(crate) fn views(&self) -> Vec<ServerView> {
        self.slots().iter().map(|(workspace, slot)| slot.view(workspace)).collect()
    }
}

impl Slot {
    fn view(&self, workspace: &Path) -> ServerView {
        let up = self.server.as_ref().filter(|server| !server.is_gone());
        let state = match (up, self.starting, self.stopping, &self.failure) {
            (_, _, true, _) => "stopping",
            (Some(_), _, _, _) => "ready",
            (None, true, _, _) => "starting",
            (None, false, _, Some(_)) => "failed",
            (None, false, _, None) => "stopped",
        };
        ServerView {
            workspace: workspace.to_string_lossy().into_owned(),
            state: state.to_owned(),
            version: up.map(|server| server.client().contract().version().to_owned()),
            server_start_id: up.map(|server| server.start_id().to_owned()),
            launch_config_digest: up.map(|server| server.owned().launch_config_digest().to_owned()),
            pid: up.map(|server| server.owned().pid()),
            canaries: up.map_or_else(|| self.failed_canaries.clone(), |server| server.canaries().results),
            reason: if up.is_some() { None } else { self.failure.clone() },
        }
    }
}

/// Reads the canaries again and again, and notes the end.
async fn watch(servers: Arc<Servers>, server: Arc<VerifiedServer>) {
    loop {
        tokio::select! {
            () = server.gone() => break,
            () = tokio::time::sleep(CANARY_REFRESH) => {
                if let Err(refusal) = server.refresh_canaries(&servers.shared).await {
                    tracing::warn!(workspace = %server.workspace().display(), %refusal, "a server canary failed");
                }
            }
        }
    }
    let report = server.exit_report();
    let status = report.as_ref().and_then(|report| report.status).map(|status| status.to_string());
    tracing::info!(workspace = %server.workspace().display(), ?status, "the server has ended");
    let workspace = server.workspace().to_path_buf();
    servers.with_slot(&workspace, |slot| {
        if slot.server.as_ref().is_some_and(|current| Arc::ptr_eq(current, &server)) {
            slot.server = None;
            if !slot.stopping {
                slot.failures.push(Instant::now());
            }
        }
    });
}
