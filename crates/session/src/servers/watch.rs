//! Watching a server: its end, what its latch held, and whether it still proves itself.

use std::sync::Arc;
use std::time::Duration;

use process::launch::Held;
use rules::canary::CanaryScope;
use rules::lifecycle::{Proof, ProofLimits, ServerEvent, ServerState, prove};
use rules::refusal::{Refusal, RefusalCode};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use super::{RESTART, Servers, jitter_permille};
use crate::resting_round::watch_resting;
use crate::server::VerifiedServer;

/// With at most 20 s for one read, three of them end before the results that they replace are too old to prove anything.
const PROOF: ProofLimits = ProofLimits { reads: 3, first_pause_ms: 1000 };

/// How long a daemon that stops waits for word of the servers' ends to be recorded.
const NOTED_WITHIN: Duration = Duration::from_secs(3);

/// Reads the canaries again and again, and notes the end. It is counted from the call on, not only once it runs.
pub(super) fn watch(servers: Arc<Servers>, server: Arc<VerifiedServer>) -> impl Future<Output = ()> + Send {
    servers.slots().of(server.workspace()).watched += 1;
    watch_to_end(servers, server)
}

async fn watch_to_end(servers: Arc<Servers>, server: Arc<VerifiedServer>) {
    let workspace = server.workspace().to_path_buf();
    let mut held = server.owned().control().held();
    let interval = Duration::from_secs(servers.shared.settings.agent_server.probe_interval_s);
    tokio::spawn(watch_resting(Arc::clone(&servers.shared), Arc::clone(&server)));
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
            () = tokio::time::sleep(interval) => {
                if let Err(refusal) = servers.prove_again(&server).await {
                    tracing::warn!(workspace = %workspace.display(), %refusal, "a server canary failed");
                }
            }
        }
    }
    servers.note_end(&server).await;
}

impl Servers {
    /// Reads a server's canaries again. One that answers wrongly, or does not answer for several reads, is killed; what
    /// was read before stays in force until that is known.
    ///
    /// # Errors
    /// The first failure.
    pub(crate) async fn prove_again(&self, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        for reads in 1.. {
            let results = tokio::select! {
                results = server.read_canaries(self.shared.contract) => results,
                () = server.gone() => return Err(gone()),
            };
            let verdict = prove(&results, reads, PROOF);
            self.slots().of(server.workspace()).unanswered = match &verdict {
                Proof::ReadAgain { .. } => results.iter().filter(|result| result.is_unreadable()).cloned().collect(),
                Proof::Holds | Proof::Fails(_) => Vec::new(),
            };
            match verdict {
                Proof::Holds => {
                    let verdict = rules::canary::passed(&results, &[CanaryScope::Installation, CanaryScope::Server]);
                    server.set_canaries(results);
                    return verdict;
                }
                Proof::ReadAgain { after_ms } => {
                    tracing::info!(workspace = %server.workspace().display(), reads, "the server did not answer in time");
                    tokio::time::sleep(Duration::from_millis(after_ms)).await;
                }
                Proof::Fails(refusal) => {
                    // What it failed stays in sight when it is gone.
                    self.slots().of(server.workspace()).failed_canaries.clone_from(&results);
                    server.set_canaries(results);
                    // It is not asked to stop: what it is cannot be trusted any more.
                    self.advance(server.workspace(), ServerEvent::Disproved(refusal.clone()));
                    server.kill().await;
                    return Err(refusal);
                }
            }
        }
        Err(gone())
    }

    /// The latch inside a server stopped an action that was not granted: readers are told.
    async fn note_held(&self, held: &Held) {
        tracing::warn!(session = held.conversation_id, actions = ?held.event_ids, "an action without a grant was held");
        let Some(session) = self.shared.session(&held.conversation_id) else { return };
        // A session at rest in which something goes on is followed again.
        session.note_look();
        let payload = json!({"event": "action_held", "actions": held.event_ids});
        if let Err(refusal) = session.note_event("lifecycle", payload).await {
            tracing::warn!(session = held.conversation_id, %refusal, "a held action could not be journaled");
        }
    }

    /// Waits until the sessions were told of the end of every server that has ended, so that it is recorded before the records
    /// are closed.
    pub(crate) async fn ends_noted(&self) {
        let mut changes = self.changes.subscribe();
        let noted = async {
            while self.slots().by_workspace.values().any(|slot| slot.watched > 0) {
                if changes.changed().await.is_err() {
                    break;
                }
            }
        };
        if tokio::time::timeout(NOTED_WITHIN, noted).await.is_err() {
            tracing::warn!("word of a server's end was not recorded in time");
        }
    }

    /// The server's process has ended: its sessions are told, and those it left without being asked to come back.
    async fn note_end(&self, server: &Arc<VerifiedServer>) {
        let workspace = server.workspace();
        let report = server.exit_report();
        let status = report
            .as_ref()
            .and_then(|report| report.status)
            .map_or_else(|| "status unknown".to_owned(), |status| status.to_string());
        tracing::info!(workspace = %workspace.display(), status, "the server has ended");
        let last_words = report.map(|report| report.log_tail.join("\n")).unwrap_or_default();
        let detail = format!("the server ended by itself ({status}); its last words:\n{last_words}");
        {
            let (mut slots, now_ms) = (self.slots(), self.now_ms());
            let slot = slots.of(workspace);
            let asked = server.was_asked_to_end() || matches!(slot.state, ServerState::Stopping { because: None, .. });
            if !asked {
                let lived_ms = now_ms.saturating_sub(slot.ready_at_ms);
                slot.failures = slot.failures.failed(lived_ms, now_ms, jitter_permille(), RESTART);
            }
        }
        for session in self.shared.sessions() {
            session.note_server_gone(server).await;
        }
        let refusal = Refusal::new(RefusalCode::ServerUnavailable, detail);
        self.advance(workspace, ServerEvent::Exited(refusal));
        {
            let mut slots = self.slots();
            let slot = slots.of(workspace);
            slot.server = None;
            slot.unanswered.clear();
            slots.by_workspace.values_mut().for_each(|slot| slot.no_place_until_ms = 0);
        }
        if let Some(refusal) = self.crash_loop(workspace) {
            self.tell_failure(workspace, &refusal).await;
        }
        let mut slots = self.slots();
        let slot = slots.of(workspace);
        slot.watched = slot.watched.saturating_sub(1);
        drop(slots);
        self.note_change();
    }
}

fn gone() -> Refusal {
    Refusal::new(RefusalCode::ServerUnavailable, "the server has ended; try again")
}
