//! Ending servers: one, those that nobody uses, all.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rules::lifecycle::ServerEvent;

use super::Servers;
use super::slot::Slot;
use crate::server::VerifiedServer;

/// How often idle servers are looked for.
const IDLE_POLL: Duration = Duration::from_secs(30);

impl Servers {
    /// Stops servers that nobody used for the configured time. Runs until the daemon stops.
    pub(crate) async fn stop_idle(self: Arc<Self>) {
        let Some(limit) = self.shared.settings.agent_server.idle_stop() else { return };
        loop {
            tokio::time::sleep(IDLE_POLL).await;
            let unused: Vec<Arc<VerifiedServer>> = {
                let slots = self.slots();
                let unused = |slot: &&Slot| slot.last_used.is_some_and(|at| at.elapsed() >= limit);
                slots.by_workspace.values().filter(unused).filter_map(Slot::up).collect()
            };
            for server in unused.into_iter().filter(|server| !self.is_busy(server)) {
                tracing::info!(workspace = %server.workspace().display(), "the idle server is stopped");
                self.stop(&server).await;
            }
        }
    }

    /// Stops one server; says how many processes are left.
    pub(super) async fn stop(&self, server: &Arc<VerifiedServer>) -> usize {
        server.note_asked_to_end();
        self.advance(server.workspace(), ServerEvent::StopRequested);
        server.stop().await.leftover_processes
    }

    /// Stops every server, those that are starting too, and starts none any more; says how many processes are left.
    pub(crate) async fn stop_all(&self) -> usize {
        let (workspaces, servers): (Vec<PathBuf>, Vec<Arc<VerifiedServer>>) = {
            let mut slots = self.slots();
            slots.closed = true;
            let servers = slots.by_workspace.values().filter_map(|slot| slot.server.clone()).collect();
            (slots.by_workspace.keys().cloned().collect(), servers)
        };
        servers.iter().for_each(|server| server.note_asked_to_end());
        for workspace in &workspaces {
            self.advance(workspace, ServerEvent::StopRequested);
        }
        // Together: each may take its grace.
        let stops = futures_util::future::join_all(servers.iter().map(|server| server.stop())).await;
        let left: usize = stops.iter().map(|report| report.leftover_processes).sum();
        // A start that was under way ends what it began once it sees that nobody may use it.
        for workspace in &workspaces {
            let start_lock = Arc::clone(&self.slots().of(workspace).start_lock);
            drop(start_lock.lock().await);
        }
        left + self.spares.close().await
    }
}
