//! Bringing sessions back: those whose server ended without being asked to, and after a start of the daemon those with
//! something that waits to be done.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rules::lifecycle::{doubled_ms, jittered_ms};
use rules::refusal::{Refusal, RefusalCode};
use serde_json::json;

use super::{RESTART, Servers, jitter_permille};
use crate::act::fit_for_sessions;
use crate::session::Session;
use crate::state::Returning;

/// When nothing else wakes the keeper.
const LOOK: Duration = Duration::from_secs(60);
/// After `server_limit`, unless a server ends before.
const NO_PLACE_WAIT_MS: u64 = 5_000;
/// First and longest wait of a session that could not be put on its server; each is twice the one before. It is never given up:
/// what waits in it is to be done without anybody asking.
const FIRST_RETRY_MS: u64 = 250;
const LONGEST_RETRY_MS: u64 = 600_000;
/// After so many tries a session is not worth the place of another workspace's idle server any more.
const TRIES_WORTH_A_PLACE: u32 = 3;

impl Servers {
    /// Starts servers that sessions need back, each when its time has come. Runs until the daemon stops.
    pub(crate) async fn keep(self: Arc<Self>) {
        let mut changes = self.changes.subscribe();
        loop {
            let wait = match self.bring_back_due() {
                Some(at_ms) => Duration::from_millis(at_ms.saturating_sub(self.now_ms()).max(1)).min(LOOK),
                None => LOOK,
            };
            if self.slots().closed {
                return;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Begins what is due; says when the next is.
    fn bring_back_due(self: &Arc<Self>) -> Option<u64> {
        let now_ms = self.now_ms();
        let mut next: Option<u64> = None;
        for (workspace, not_before_ms) in self.wanted() {
            let mut slots = self.slots();
            if slots.closed {
                return None;
            }
            let slot = slots.of(&workspace);
            if slot.being_kept {
                continue;
            }
            let start_at_ms = if slot.up().is_some() { Some(0) } else { slot.failures.next_by_itself(RESTART) };
            let Some(start_at_ms) = start_at_ms else { continue };
            let at_ms = start_at_ms.max(not_before_ms).max(slot.no_place_until_ms);
            if at_ms > now_ms {
                next = Some(next.map_or(at_ms, |before| before.min(at_ms)));
                continue;
            }
            slot.being_kept = true;
            tokio::spawn(bring_back(Arc::clone(self), workspace));
        }
        next
    }

    /// Workspaces with sessions that are to come back, and the first time for one of them.
    fn wanted(&self) -> Vec<(PathBuf, u64)> {
        let mut wanted: std::collections::BTreeMap<PathBuf, u64> = std::collections::BTreeMap::new();
        for session in self.shared.sessions() {
            if let Some(returning) = session.returning() {
                let at_ms = wanted.entry(session.workspace().to_path_buf()).or_insert(u64::MAX);
                *at_ms = returning.not_before_ms.min(*at_ms);
            }
        }
        wanted.into_iter().collect()
    }

    /// A server was started: whatever could not be put on the one before is tried at once.
    pub(super) fn try_sessions_now(&self, workspace: &Path) {
        for session in self.shared.sessions().iter().filter(|session| session.workspace() == workspace) {
            if let Some(returning) = &mut session.current().returning {
                returning.not_before_ms = 0;
            }
        }
    }

    /// The sessions of a workspace that are on no server know why, or that nothing stands in the way any more.
    pub(super) fn tell_sessions(&self, workspace: &Path, refusal: Option<&Refusal>) {
        for session in self.shared.sessions().iter().filter(|session| session.workspace() == workspace) {
            session.note_unreachable(refusal.cloned());
        }
    }

    /// The same for a failure; sessions that wait for their server have the beginning of a crash loop in their events.
    pub(super) async fn tell_failure(&self, workspace: &Path, failure: &Refusal) {
        let looping = self.crash_loop(workspace);
        self.tell_sessions(workspace, Some(looping.as_ref().unwrap_or(failure)));
        let begins = self.slots().of(workspace).failures.in_a_row() == RESTART.loop_after;
        let Some(refusal) = looping.filter(|_| begins) else { return };
        let payload = json!({"event": "server_crash_looping", "detail": refusal.detail});
        for session in self.shared.sessions().iter().filter(|session| session.workspace() == workspace) {
            if session.returning().is_some()
                && let Err(refusal) = session.note_event("lifecycle", payload.clone()).await
            {
                tracing::warn!(session = session.id().as_str(), %refusal, "a crash loop could not be journaled");
            }
        }
    }

    async fn bring_back_sessions(self: &Arc<Self>, workspace: &Path) {
        let is_new =
            |session: &Arc<Session>| session.returning().is_some_and(|returning| returning.tries < TRIES_WORTH_A_PLACE);
        let of_workspace = |session: &&Arc<Session>| session.workspace() == workspace;
        let found = if self.shared.sessions().iter().filter(of_workspace).any(is_new) {
            self.ensure(workspace).await
        } else {
            self.ensure_in_free_place(workspace).await
        };
        let server = match found {
            Ok(server) => server,
            Err(refusal) => {
                tracing::debug!(workspace = %workspace.display(), %refusal, "sessions wait on for their server");
                if refusal.code == RefusalCode::ServerLimit {
                    self.slots().of(workspace).no_place_until_ms = self.now_ms().saturating_add(NO_PLACE_WAIT_MS);
                    self.tell_sessions(workspace, Some(&refusal));
                }
                return;
            }
        };
        for session in self.shared.sessions().iter().filter(|session| session.workspace() == workspace) {
            let due = session.returning().filter(|returning| returning.not_before_ms <= self.now_ms());
            let Some(returning) = due else { continue };
            let bound = match fit_for_sessions(&server) {
                Ok(()) => session.bind(&server).await,
                Err(refusal) => Err(refusal),
            };
            let Err(refusal) = bound else {
                self.slots().of(workspace).last_used = Some(Instant::now());
                continue;
            };
            let id = session.id().as_str();
            if returning.tries == 0 {
                tracing::warn!(session = id, %refusal, "a session could not be put on its server; it is tried on");
            } else {
                tracing::debug!(session = id, %refusal, "a session could not be put on its server again");
            }
            self.note_not_back(session, refusal);
        }
    }

    fn note_not_back(&self, session: &Session, refusal: Refusal) {
        let gone_for_good = refusal.code == RefusalCode::ConversationNotFound;
        let mut state = session.state();
        state.returning = state.returning.filter(|_| !gone_for_good).map(|before| {
            let whole_ms = doubled_ms(FIRST_RETRY_MS, before.tries, LONGEST_RETRY_MS);
            let not_before_ms = self.now_ms().saturating_add(jittered_ms(whole_ms, jitter_permille()));
            Returning { tries: before.tries.saturating_add(1), not_before_ms, ..before }
        });
        drop(state);
        session.note_unreachable(Some(refusal));
    }
}

async fn bring_back(servers: Arc<Servers>, workspace: PathBuf) {
    servers.bring_back_sessions(&workspace).await;
    servers.slots().of(&workspace).being_kept = false;
    servers.note_change();
}
