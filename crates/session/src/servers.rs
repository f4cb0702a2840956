//! One owned server a workspace: started when needed, bounded in number, stopped when idle.
//!
//! How one is watched and proved again stands in `watch`, how one that failed comes back by itself in `keeper`.

mod keeper;
mod slot;
mod spare;
mod stops;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rules::lifecycle::{Limits, RestartLimits, ServerEffect, ServerEvent, ServerState, Standing, step};
use rules::refusal::{Refusal, RefusalCode};
use rules::standing::ServerStanding;
use tokio::sync::watch::Sender;

use crate::server::{self, FailedStart, STOP_GRACE, Spares, VerifiedServer};
use crate::shared::Shared;
use crate::view::ServerView;
use slot::Slot;

/// When a server that failed is started again.
pub(crate) const RESTART: RestartLimits = RestartLimits {
    first_wait_ms: 500,
    loop_after: 5,
    loop_wait_ms: 30_000,
    longest_wait_ms: 600_000,
    give_up_after: 10,
    stable_ms: 30_000,
};
/// How long a start waits for a server that is being ended: its grace, the kill, the end of its tree.
const END_WAIT: Duration = Duration::from_secs(40);

/// Every owned server, by resolved workspace.
pub(crate) struct Servers {
    shared: Arc<Shared>,
    slots: Mutex<Slots>,
    spares: Spares,
    /// Counts whatever a start, or the keeper, may wait for.
    changes: Sender<u64>,
    /// Times of decisions count from here: the wall clock may be set.
    origin: Instant,
    /// The same moment on the wall clock.
    origin_wall_ms: i64,
}

#[derive(Default)]
struct Slots {
    by_workspace: BTreeMap<PathBuf, Slot>,
    /// The daemon stops: nothing is started any more.
    closed: bool,
}

impl Slots {
    fn of(&mut self, workspace: &Path) -> &mut Slot {
        self.by_workspace.entry(workspace.to_path_buf()).or_default()
    }
}

/// Which places a start may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    /// A free one, or that of an idle server.
    Any,
    /// Only one that is free.
    Free,
}

/// What a start that wants a place meets.
enum Place {
    Taken,
    /// Something must end first that is ending already.
    Wait,
    /// This idle server can make room.
    Stop(Arc<VerifiedServer>),
}

impl Servers {
    pub(crate) fn new(shared: &Arc<Shared>) -> Arc<Self> {
        let origin = Instant::now();
        Arc::new(Self {
            shared: Arc::clone(shared),
            slots: Mutex::default(),
            spares: Spares::new(origin, RESTART),
            changes: Sender::new(0),
            origin,
            origin_wall_ms: crate::clock::now_ms(),
        })
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The same moment on the wall clock as it was at the daemon's start, in milliseconds, for people.
    fn wall_ms(&self, at_ms: u64) -> i64 {
        self.origin_wall_ms.saturating_add(i64::try_from(at_ms).unwrap_or(i64::MAX))
    }

    fn note_change(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The server of a workspace, if one is up.
    pub(crate) fn running(&self, workspace: &Path) -> Option<Arc<VerifiedServer>> {
        self.slots().by_workspace.get(workspace).and_then(Slot::up)
    }

    /// Any server that is up.
    pub(crate) fn any(&self) -> Option<Arc<VerifiedServer>> {
        self.slots().by_workspace.values().find_map(Slot::up)
    }

    /// The server of a workspace, started when it is not up. One that failed is not started before its time: a short wait is
    /// waited out, a crash loop refuses.
    ///
    /// # Errors
    /// `server_limit`, `server_crash_looping`, `shutting_down`, or why it could not be started.
    pub(crate) async fn ensure(self: &Arc<Self>, workspace: &Path) -> Result<Arc<VerifiedServer>, Refusal> {
        self.slots().of(workspace).last_used = Some(Instant::now());
        self.find(workspace, Want::Any).await
    }

    /// The same for nobody's request: no idle server makes room for it, and it counts as no use.
    ///
    /// # Errors
    /// As [`Self::ensure`].
    async fn ensure_in_free_place(self: &Arc<Self>, workspace: &Path) -> Result<Arc<VerifiedServer>, Refusal> {
        self.find(workspace, Want::Free).await
    }

    async fn find(self: &Arc<Self>, workspace: &Path, want: Want) -> Result<Arc<VerifiedServer>, Refusal> {
        let start_lock = Arc::clone(&self.slots().of(workspace).start_lock);
        let _starting = start_lock.lock().await;
        if let Some(server) = self.running(workspace) {
            return Ok(server);
        }
        self.wait_out(workspace).await?;
        self.take_place(workspace, want).await?;
        let outcome = self.start(workspace).await;
        match &outcome {
            Ok(_) => {
                self.tell_sessions(workspace, None);
                self.try_sessions_now(workspace);
            }
            Err(refusal) => self.tell_failure(workspace, refusal).await,
        }
        self.note_change();
        outcome
    }

    async fn start(self: &Arc<Self>, workspace: &Path) -> Result<Arc<VerifiedServer>, Refusal> {
        let started = match server::start(&self.shared, workspace, &self.spares).await {
            Ok(started) => Arc::new(started),
            Err(failed) => return Err(self.note_failed_start(workspace, failed)),
        };
        {
            let (mut slots, now_ms) = (self.slots(), self.now_ms());
            let slot = slots.of(workspace);
            slot.failed_canaries.clear();
            slot.failures = slot.failures.proved();
            slot.ready_at_ms = now_ms;
            slot.server = Some(Arc::clone(&started));
        }
        // Without `Publish` a stop came in between: nobody may use it.
        if !self.advance(workspace, ServerEvent::Proved).contains(&ServerEffect::Publish) {
            started.stop().await;
            self.advance(workspace, ServerEvent::Exited(stopped()));
            return Err(stopped());
        }
        tokio::spawn(watch::watch(Arc::clone(self), Arc::clone(&started)));
        Ok(started)
    }

    /// The start has ended whatever it began.
    fn note_failed_start(&self, workspace: &Path, failed: FailedStart) -> Refusal {
        tracing::warn!(workspace = %workspace.display(), refusal = %failed.refusal, "the server did not start");
        {
            let (mut slots, now_ms) = (self.slots(), self.now_ms());
            let slot = slots.of(workspace);
            slot.failed_canaries = failed.canaries;
            slot.failures = if failed.launched {
                slot.failures.failed(0, now_ms, jitter_permille(), RESTART)
            } else {
                slot.failures.unmet()
            };
        }
        self.advance(workspace, ServerEvent::Exited(failed.refusal.clone()));
        failed.refusal
    }

    /// One step of the slot's life; a server that is withdrawn is no longer handed out.
    fn advance(&self, workspace: &Path, event: ServerEvent) -> Vec<ServerEffect> {
        let effects = self.advance_in(&mut self.slots(), workspace, event);
        self.note_change();
        effects
    }

    fn advance_in(&self, slots: &mut Slots, workspace: &Path, event: ServerEvent) -> Vec<ServerEffect> {
        let limits = Limits {
            start_timeout_ms: self.shared.settings.agent_server.start_timeout_s.saturating_mul(1000),
            stop_grace_ms: u64::try_from(STOP_GRACE.as_millis()).unwrap_or(u64::MAX),
        };
        let slot = slots.of(workspace);
        let state = std::mem::replace(&mut slot.state, ServerState::Stopped);
        let (next, effects) = step(state, event, self.now_ms(), limits);
        slot.state = next;
        if effects.contains(&ServerEffect::Withdraw) {
            slot.server = None;
        }
        effects
    }

    /// Waits until the last failure is long enough ago, when that is soon.
    async fn wait_out(&self, workspace: &Path) -> Result<(), Refusal> {
        let mut changes = self.changes.subscribe();
        loop {
            let standing = {
                let mut slots = self.slots();
                if slots.closed {
                    return Err(Refusal::new(RefusalCode::ShuttingDown, "the daemon is stopping"));
                }
                slots.of(workspace).failures.standing(self.now_ms(), RESTART)
            };
            match standing {
                Standing::Free => return Ok(()),
                Standing::BackingOff { next_try_at_ms } => {
                    let wait = Duration::from_millis(next_try_at_ms.saturating_sub(self.now_ms()));
                    drop(tokio::time::timeout(wait, changes.changed()).await);
                }
                Standing::CrashLooping { .. } | Standing::GivenUp { .. } => {
                    if let Some(refusal) = self.crash_loop(workspace) {
                        return Err(refusal);
                    }
                }
            }
        }
    }

    /// What sessions of a workspace are told whose server fails again and again, until its next try is due.
    fn crash_loop(&self, workspace: &Path) -> Option<Refusal> {
        let mut slots = self.slots();
        let slot = slots.of(workspace);
        let in_a_row = slot.failures.in_a_row();
        let at = |at_ms| crate::clock::rfc3339(self.wall_ms(at_ms));
        let what_next = match slot.failures.standing(self.now_ms(), RESTART) {
            Standing::Free | Standing::BackingOff { .. } => return None,
            Standing::CrashLooping { next_try_at_ms } => format!("the next try is at {}", at(next_try_at_ms)),
            Standing::GivenUp { not_before_ms } => format!(
                "it is not started by itself any more: mend the cause, then ask again, after {}",
                at(not_before_ms)
            ),
        };
        let last = slot.failure().map(|refusal| refusal.to_string()).unwrap_or_default();
        let detail = format!("the server failed {in_a_row} times in a row; {what_next}. Last: {last}");
        Some(Refusal::new(RefusalCode::ServerCrashLooping, detail))
    }

    /// Takes one of the places there are, stopping the longest idle server when none is free.
    async fn take_place(&self, workspace: &Path, want: Want) -> Result<(), Refusal> {
        let deadline = tokio::time::Instant::now() + END_WAIT;
        let mut changes = self.changes.subscribe();
        loop {
            match self.try_take_place(workspace, want)? {
                Place::Taken => return Ok(()),
                Place::Stop(idle) => drop(self.stop(&idle).await),
                Place::Wait => {}
            }
            if tokio::time::timeout_at(deadline, changes.changed()).await.is_err() {
                let detail = "a server is still being ended; try again";
                return Err(Refusal::new(RefusalCode::ServerUnavailable, detail));
            }
        }
    }

    /// Counting and taking are one step, so that two starts never take the same place.
    fn try_take_place(&self, workspace: &Path, want: Want) -> Result<Place, Refusal> {
        let mut slots = self.slots();
        if slots.closed {
            return Err(Refusal::new(RefusalCode::ShuttingDown, "the daemon is stopping"));
        }
        if slots.of(workspace).holds_process() {
            return Ok(Place::Wait);
        }
        let max_servers = self.shared.settings.agent_server.max_servers;
        let others = || slots.by_workspace.values();
        if others().filter(|slot| slot.holds_process()).count() < max_servers {
            self.advance_in(&mut slots, workspace, ServerEvent::StartRequested);
            return Ok(Place::Taken);
        }
        if others().any(Slot::is_ending) {
            return Ok(Place::Wait);
        }
        let idle = others().filter(|slot| slot.up().is_some_and(|server| !self.is_busy(&server)));
        if want == Want::Any
            && let Some(server) = idle.min_by_key(|slot| slot.last_used).and_then(Slot::up)
        {
            return Ok(Place::Stop(server));
        }
        let detail = match want {
            Want::Any => format!("{max_servers} servers run and none is idle; close a session or raise max_servers"),
            Want::Free => format!(
                "{max_servers} servers run, and a session that could not be put on its server again and again takes no \
                 place of another by itself; ask for it, or raise max_servers"
            ),
        };
        Err(Refusal::new(RefusalCode::ServerLimit, detail))
    }

    /// One with a pending, running or queued session is not idle.
    fn is_busy(&self, server: &Arc<VerifiedServer>) -> bool {
        self.shared
            .sessions()
            .iter()
            .filter(|session| session.follows(server))
            .any(|session| session.is_busy() || session.pending_actions() > 0)
    }

    /// As status shows them.
    pub(crate) fn views(&self) -> Vec<ServerView> {
        let wall = |at_ms| crate::clock::rfc3339(self.wall_ms(at_ms));
        self.slots().by_workspace.iter().map(|(workspace, slot)| slot.view(workspace, wall)).collect()
    }

    /// Where the server of a workspace stands.
    pub(crate) fn standing(&self, workspace: &Path) -> ServerStanding {
        self.slots().by_workspace.get(workspace).map_or(ServerStanding::Stopped, Slot::standing)
    }

    /// Why no session could be taken, when every server there was fails again and again.
    pub(crate) fn all_crash_looping(&self) -> Option<Refusal> {
        let slots = self.slots();
        let all = !slots.by_workspace.is_empty() && slots.by_workspace.values().all(Slot::is_down_for_good);
        all.then(|| {
            let detail = "every server fails again and again; `gatepost status` names the reasons and the next tries";
            Refusal::new(RefusalCode::ServerCrashLooping, detail)
        })
    }
}

fn stopped() -> Refusal {
    Refusal::new(RefusalCode::ServerUnavailable, "the server was stopped while it started; try again")
}

pub(crate) fn jitter_permille() -> u16 {
    u16::try_from(uuid::Uuid::new_v4().as_u128() % 1001).unwrap_or(0)
}
