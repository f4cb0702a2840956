//! Keeping the spare: made when the servers are up and quiet, and made anew when it was used.

use std::sync::Arc;
use std::time::Duration;

use rules::lifecycle::{ServerState, SpareNeed, SpareStep, spare_step};
use rules::standing::{self, SpareStanding};

use super::Servers;
use crate::view::SpareView;

/// After a server came up: its first session has the processor for itself.
const SETTLE_MS: u64 = 3_000;
/// When nothing else wakes the keeper.
const LOOK: Duration = Duration::from_secs(60);

impl Servers {
    /// Keeps one spare, if the configuration asks for it. Runs until the daemon stops.
    pub(crate) async fn keep_spare(self: Arc<Self>) {
        if !self.shared.settings.agent_server.standby {
            return;
        }
        let mut changes = self.changes.subscribe();
        loop {
            let wait = match spare_step(self.spare_need(), self.now_ms(), SETTLE_MS) {
                SpareStep::Make => {
                    if let Some(like) = self.any() {
                        self.spares.make(&self.shared, &like).await;
                    }
                    LOOK
                }
                SpareStep::WaitUntil { at_ms } => Duration::from_millis(at_ms.saturating_sub(self.now_ms()).max(1)),
                SpareStep::Rest => LOOK,
            };
            if self.slots().closed {
                return;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = self.spares.changed() => {}
                () = tokio::time::sleep(wait.min(LOOK)) => {}
            }
        }
    }

    fn spare_need(&self) -> SpareNeed {
        let spare = self.spares.look();
        let slots = self.slots();
        let all = || slots.by_workspace.values();
        let is_starting = |state: &ServerState| matches!(state, ServerState::Starting { .. });
        SpareNeed {
            is_wanted: !slots.closed,
            state: spare.state,
            starting: all().filter(|slot| is_starting(&slot.state)).count(),
            any_ready: all().any(|slot| slot.up().is_some()),
            last_ready_at_ms: all().map(|slot| slot.ready_at_ms).max().unwrap_or(0),
            next_try_at_ms: spare.next_try_at_ms,
        }
    }

    /// As status shows it; `None` without a spare in the configuration.
    pub(crate) fn spare_view(&self) -> Option<SpareView> {
        self.shared.settings.agent_server.standby.then(|| {
            let look = self.spares.look();
            let state = standing::spare(look.state, look.reason.is_some());
            let has_failed = state == SpareStanding::Failed;
            let next_try_at_ms = look.next_try_at_ms.filter(|_| has_failed);
            SpareView {
                state,
                pid: look.pid,
                reason: look.reason.filter(|_| has_failed),
                next_try_at: next_try_at_ms.map(|at_ms| crate::clock::rfc3339(self.wall_ms(at_ms))),
            }
        })
    }
}
