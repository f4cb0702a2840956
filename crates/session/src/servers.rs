//! One owned server a workspace: started on demand, bounded in number, stopped when idle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use process::launch::Held;
use rules::canary::CanaryResult;
use rules::lifecycle::{Limits, ServerEffect, ServerEvent, ServerState, step};
use rules::refusal::{Refusal, RefusalCode};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use crate::server::{self, CANARY_REFRESH, STOP_GRACE, VerifiedServer};
use crate::shared::Shared;
use crate::view::ServerView;

/// Starts of one workspace that may fail within [`CRASH_WINDOW`] before no further one is tried in it.
const MAX_FAILURES: usize = 3;
const CRASH_WINDOW: Duration = Duration::from_secs(60);
/// How often idle servers are looked for.
const IDLE_POLL: Duration = Duration::from_secs(30);

struct Slot {
    state: ServerState,
    /// Published while the state is `Ready`.
    server: Option<Arc<VerifiedServer>>,
    /// Canaries of the last start that failed.
    failed_canaries: Vec<CanaryResult>,
    failures: Vec<Instant>,
    last_used: Option<Instant>,
    /// One start at a time.
    start_lock: Arc<tokio::sync::Mutex<()>>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            state: ServerState::Stopped,
            server: None,
            failed_canaries: Vec::new(),
            failures: Vec::new(),
            last_used: None,
            start_lock: Arc::default(),
        }
    }
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
        if !self.advance(workspace, ServerEvent::StartRequested).contains(&ServerEffect::Spawn) {
            return Err(Refusal::new(RefusalCode::ServerUnavailable, "the server is being stopped; try again"));
        }
        match server::start(&self.shared, workspace).await {
            Ok(started) => {
                let started = Arc::new(started);
                self.with_slot(workspace, |slot| {
                    slot.failed_canaries.clear();
                    slot.server = Some(Arc::clone(&started));
                });
                // Without `Publish` a stop came in between: nobody may use it.
                if !self.advance(workspace, ServerEvent::Proved).contains(&ServerEffect::Publish) {
                    started.stop().await;
                    self.advance(workspace, ServerEvent::Exited(stopped()));
                    return Err(stopped());
                }
                tokio::spawn(watch(Arc::clone(self), Arc::clone(&started)));
                Ok(started)
            }
            Err(failed) => {
                tracing::warn!(workspace = %workspace.display(), refusal = %failed.refusal, "the server did not start");
                self.with_slot(workspace, |slot| {
                    slot.failures.push(Instant::now());
                    slot.failed_canaries = failed.canaries;
                });
                // The start has ended whatever it began.
                self.advance(workspace, ServerEvent::Exited(failed.refusal.clone()));
                Err(failed.refusal)
            }
        }
    }

    /// One step of the slot's life; a server that is withdrawn is no longer handed out.
    fn advance(&self, workspace: &Path, event: ServerEvent) -> Vec<ServerEffect> {
        let now_ms = u64::try_from(crate::clock::now_ms()).unwrap_or(0);
        let limits = Limits {
            start_timeout_ms: self.shared.settings.agent_server.start_timeout_s.saturating_mul(1000),
            stop_grace_ms: u64::try_from(STOP_GRACE.as_millis()).unwrap_or(u64::MAX),
        };
        let mut slots = self.slots();
        let slot = slots.entry(workspace.to_path_buf()).or_default();
        let state = std::mem::replace(&mut slot.state, ServerState::Stopped);
        let (next, effects) = step(state, event, now_ms, limits);
        slot.state = next;
        if effects.contains(&ServerEffect::Withdraw) {
            slot.server = None;
        }
        effects
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
        let last = slot.failure().map(|refusal| refusal.detail).unwrap_or_default();
        let detail =
            format!("the server failed {MAX_FAILURES} times within a minute; wait, then try again. Last: {last}");
        Err(Refusal::new(RefusalCode::ServerStartFailed, detail))
    }

    /// Stops the longest idle server when as many run as may.
    async fn make_room(&self, workspace: &Path) -> Result<(), Refusal> {
        let max_servers = self.shared.settings.agent_server.max_servers;
        let victim = {
            let slots = self.slots();
            let up = slots.iter().filter(|(path, slot)| path.as_path() != workspace && slot.holds_process()).count();
            if up < max_servers {
                return Ok(());
            }
            let idle = slots.values().filter(|slot| slot.server.as_ref().is_some_and(|server| !self.is_busy(server)));
            idle.min_by_key(|slot| slot.last_used).and_then(|slot| slot.server.clone())
        };
        match victim {
            Some(server) => {
                self.stop(&server).await;
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
                self.stop(&server).await;
            }
        }
    }

    /// Reads a server's canaries again; one whose identity, listener or authentication fails is killed.
    ///
    /// # Errors
    /// The first failure.
    pub(crate) async fn prove_again(&self, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        let verdict = server.refresh_canaries(&self.shared).await;
        if let Err(refusal) = &verdict
            && server.must_not_be_spoken_to()
        {
            // What it failed stays in sight when it is gone.
            let results = server.canaries().results;
            self.with_slot(server.workspace(), |slot| slot.failed_canaries = results);
            // It is not asked to stop: what it is cannot be trusted any more.
            self.advance(server.workspace(), ServerEvent::Disproved(refusal.clone()));
            server.kill().await;
        }
        verdict
    }

    /// Stops one server; says how many processes are left.
    async fn stop(&self, server: &Arc<VerifiedServer>) -> usize {
        self.advance(server.workspace(), ServerEvent::StopRequested);
        server.stop().await.leftover_processes
    }

    /// Stops every server, those that are starting too; says how many processes are left.
    pub(crate) async fn stop_all(&self) -> usize {
        let (workspaces, servers): (Vec<PathBuf>, Vec<Arc<VerifiedServer>>) = {
            let slots = self.slots();
            (slots.keys().cloned().collect(), slots.values().filter_map(|slot| slot.server.clone()).collect())
        };
        for workspace in &workspaces {
            self.advance(workspace, ServerEvent::StopRequested);
        }
        // Together: each may take its grace.
        let stops = futures_util::future::join_all(servers.iter().map(|server| server.stop())).await;
        let left = stops.iter().map(|report| report.leftover_processes).sum();
        // A start that was under way ends what it began once it sees that nobody may use it.
        for workspace in &workspaces {
            let start_lock = self.slots().get(workspace).map(|slot| Arc::clone(&slot.start_lock));
            if let Some(start_lock) = start_lock {
                drop(start_lock.lock().await);
            }
        }
        left
    }

    /// The latch inside a server stopped an action that was not granted: readers are told.
    async fn note_held(&self, held: &Held) {
        tracing::warn!(session = held.conversation_id, actions = ?held.event_ids, "an action without a grant was held");
        let Some(session) = self.shared.session(&held.conversation_id) else { return };
        let payload = json!({"event": "action_held", "actions": held.event_ids});
        if let Err(refusal) = session.note_event("lifecycle", payload).await {
            tracing::warn!(session = held.conversation_id, %refusal, "a held action could not be journaled");
        }
    }

    /// As status shows them.
    pub(crate) fn views(&self) -> Vec<ServerView> {
        self.slots().iter().map(|(workspace, slot)| slot.view(workspace)).collect()
    }
}

impl Slot {
    fn holds_process(&self) -> bool {
        match self.state {
            ServerState::Starting { .. } | ServerState::Ready | ServerState::Stopping { .. } => true,
            ServerState::Stopped | ServerState::Failed { .. } => false,
        }
    }

    fn failure(&self) -> Option<Refusal> {
        match &self.state {
            ServerState::Failed { reason } => Some(reason.clone()),
            ServerState::Stopped | ServerState::Starting { .. } | ServerState::Ready | ServerState::Stopping { .. } => {
                None
            }
        }
    }

    fn view(&self, workspace: &Path) -> ServerView {
        let up = self.server.as_ref().filter(|server| !server.is_gone());
        ServerView {
            workspace: workspace.to_string_lossy().into_owned(),
            state: self.state.as_str().to_owned(),
            version: up.map(|server| server.client().contract().version().to_owned()),
            server_start_id: up.map(|server| server.start_id().to_owned()),
            launch_config_digest: up.map(|server| server.owned().launch_config_digest().to_owned()),
            pid: up.map(|server| server.owned().pid()),
            canaries: up.map_or_else(|| self.failed_canaries.clone(), |server| server.canaries().results),
            reason: self.failure(),
        }
    }
}

/// Reads the canaries again and again, and notes the end.
async fn watch(servers: Arc<Servers>, server: Arc<VerifiedServer>) {
    let workspace = server.workspace().to_path_buf();
    let mut held = server.owned().control().held();
    loop {
        tokio::select! {
            () = server.gone() => break,
            report = held.recv() => match report {
                Ok(report) => servers.note_held(&report).await,
                // Missed reports were of actions that did not run either.
                Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "reports of held actions were missed"),
                // The channel closed, so the server is ending.
                Err(RecvError::Closed) => server.gone().await,
            },
            () = tokio::time::sleep(CANARY_REFRESH) => {
                if let Err(refusal) = servers.prove_again(&server).await {
                    tracing::warn!(workspace = %workspace.display(), %refusal, "a server canary failed");
                }
            }
        }
    }
    let report = server.exit_report();
    let status =
        report.and_then(|report| report.status).map_or_else(|| "unknown".to_owned(), |status| status.to_string());
    tracing::info!(workspace = %workspace.display(), status, "the server has ended");
    servers.with_slot(&workspace, |slot| {
        if slot.state == ServerState::Ready {
            slot.failures.push(Instant::now());
        }
    });
    let reason = Refusal::new(RefusalCode::ServerUnavailable, format!("the server ended by itself ({status})"));
    servers.advance(&workspace, ServerEvent::Exited(reason));
    servers.with_slot(&workspace, |slot| slot.server = None);
}

fn stopped() -> Refusal {
    Refusal::new(RefusalCode::ServerUnavailable, "the server was stopped while it started; try again")
}
