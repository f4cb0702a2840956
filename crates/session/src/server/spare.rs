//! The one spare of the daemon: made ahead, waiting, and given to the next server that is needed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use process::launch::{ExitReport, LaunchError, Program, WaitingSpare};
use rules::canary::CanaryResult;
use rules::lifecycle::{Failures, RestartLimits, SpareFit, SpareState, spare_fit};
use rules::refusal::{Refusal, RefusalCode};
use tokio::sync::{Notify, watch};

use super::{VerifiedServer, spawn};
use crate::shared::Shared;

/// A spare that waits.
pub(crate) struct Spare {
    pub(super) waiting: WaitingSpare,
    /// Of the files that it has imported, read before it imported them.
    pub(super) installation: CanaryResult,
    program_digest: String,
    since: Instant,
}

#[derive(Default)]
enum Holding {
    #[default]
    None,
    /// Told true, it gives way.
    Starting(watch::Sender<bool>),
    Waiting(Box<Spare>),
}

#[derive(Default)]
struct Slot {
    held: Holding,
    failures: Failures,
    reason: Option<Refusal>,
    closed: bool,
}

/// The place of the one spare.
pub(crate) struct Spares {
    slot: Mutex<Slot>,
    /// Held while one is made.
    making: tokio::sync::Mutex<()>,
    changed: Notify,
    limits: RestartLimits,
    /// Times count from here, as those of the servers.
    origin: Instant,
}

/// What there is.
pub(crate) struct SpareLook {
    pub(crate) state: SpareState,
    /// Of one that waits.
    pub(crate) pid: Option<u32>,
    /// Why the last one failed.
    pub(crate) reason: Option<Refusal>,
    /// When failures let one be made by itself; `None` when they do not any more.
    pub(crate) next_try_at_ms: Option<u64>,
}

impl Spares {
    pub(crate) fn new(origin: Instant, limits: RestartLimits) -> Self {
        Self { slot: Mutex::default(), making: tokio::sync::Mutex::default(), changed: Notify::new(), limits, origin }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn look(&self) -> SpareLook {
        let slot = self.slot();
        let (state, pid) = match &slot.held {
            Holding::None => (SpareState::None, None),
            Holding::Starting(_) => (SpareState::Starting, None),
            Holding::Waiting(spare) => (SpareState::Waiting, Some(spare.waiting.pid())),
        };
        SpareLook { state, pid, reason: slot.reason.clone(), next_try_at_ms: slot.failures.next_by_itself(self.limits) }
    }

    /// Resolves when there may be something to do about it: one was taken, or the one that waits ended.
    pub(crate) async fn changed(&self) {
        let exited = match &self.slot().held {
            Holding::Waiting(spare) => Some(spare.waiting.exited()),
            Holding::None | Holding::Starting(_) => None,
        };
        let end = async {
            match exited {
                Some(mut exited) => drop(exited.wait_for(Option::is_some).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.changed.notified() => {}
            () = end => self.drop_ended(),
        }
    }

    /// One that ended by itself while it waited is a failure.
    fn drop_ended(&self) {
        let mut slot = self.slot();
        let report = match &slot.held {
            Holding::Waiting(spare) => spare.waiting.exited().borrow().clone().map(|report| (report, lived_ms(spare))),
            Holding::None | Holding::Starting(_) => None,
        };
        if let Some((report, lived_ms)) = report {
            slot.held = Holding::None;
            drop(slot);
            self.note_failed(lived_ms, ended(&report));
        }
    }

    /// Makes one, like a server that is up.
    pub(crate) async fn make(&self, shared: &Shared, like: &VerifiedServer) {
        let _making = self.making.lock().await;
        let (sender, give_way) = watch::channel(false);
        {
            let mut slot = self.slot();
            if slot.closed || !matches!(slot.held, Holding::None) {
                return;
            }
            slot.held = Holding::Starting(sender);
        }
        let made = make(shared, like, give_way).await;
        let left_over = {
            let mut slot = self.slot();
            slot.held = Holding::None;
            match made {
                Ok(spare) if slot.closed => Some(spare),
                Ok(spare) => {
                    tracing::info!(pid = spare.waiting.pid(), "a spare waits");
                    slot.held = Holding::Waiting(Box::new(spare));
                    slot.reason = None;
                    None
                }
                Err(NotMade::GaveWay) => None,
                Err(NotMade::Failed(refusal)) => {
                    drop(slot);
                    self.note_failed(0, refusal);
                    None
                }
            }
        };
        if let Some(spare) = left_over {
            spare.waiting.end().await;
        }
    }

    /// The spare, if it may become a server of that program. One that may not is ended; one that is being made gives way, so
    /// that the start has the processor for itself.
    pub(super) async fn take(&self, program: &Program) -> Option<Spare> {
        let spare = {
            let mut slot = self.slot();
            match std::mem::take(&mut slot.held) {
                Holding::Waiting(spare) => spare,
                Holding::Starting(sender) => {
                    sender.send_replace(true);
                    slot.held = Holding::Starting(sender);
                    return None;
                }
                Holding::None => return None,
            }
        };
        self.changed.notify_one();
        let report = spare.waiting.exited().borrow().clone();
        match spare_fit(report.is_some(), &spare.program_digest, &program.digest()) {
            SpareFit::Fits => Some(*spare),
            SpareFit::Ended => {
                if let Some(report) = report {
                    self.note_failed(lived_ms(&spare), ended(&report));
                }
                None
            }
            SpareFit::OtherInstall => {
                tracing::info!("the spare has imported another install and is ended");
                spare.waiting.end().await;
                None
            }
        }
    }

    /// One became a server that was proved: failures before count no more.
    pub(super) fn note_used(&self) {
        let mut slot = self.slot();
        (slot.failures, slot.reason) = (Failures::default(), None);
    }

    /// One could not be made, ended while it waited, or did not become the server that it was to be.
    pub(super) fn note_failed(&self, lived_ms: u64, refusal: Refusal) {
        tracing::warn!(%refusal, "the spare failed");
        let now_ms = millis(self.origin);
        let mut slot = self.slot();
        slot.failures = slot.failures.failed(lived_ms, now_ms, crate::servers::jitter_permille(), self.limits);
        slot.reason = Some(refusal);
        drop(slot);
        self.changed.notify_one();
    }

    /// Ends it, and makes none any more; says how many processes are left.
    pub(crate) async fn close(&self) -> usize {
        let held = {
            let mut slot = self.slot();
            slot.closed = true;
            std::mem::take(&mut slot.held)
        };
        let left = match held {
            Holding::Waiting(spare) => spare.waiting.end().await.leftover_processes,
            Holding::Starting(sender) => {
                sender.send_replace(true);
                0
            }
            Holding::None => 0,
        };
        // One that is being made is ended by whoever makes it.
        drop(self.making.lock().await);
        left
    }
}

enum NotMade {
    GaveWay,
    Failed(Refusal),
}

impl From<Refusal> for NotMade {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(refusal)
    }
}

async fn make(shared: &Shared, like: &VerifiedServer, mut give_way: watch::Receiver<bool>) -> Result<Spare, NotMade> {
    let program = spawn::program(shared)?;
    let installation = spawn::installation(shared, &program).await;
    if let Some(refusal) = installation.refusal() {
        return Err(refusal.into());
    }
    if *give_way.borrow() {
        return Err(NotMade::GaveWay);
    }
    let program_digest = program.digest();
    let spec = spawn::spare_spec(shared, program, like.owned()).map_err(super::no_randomness)?;
    // The other end is dropped only when the daemon stops, after it was told.
    let unneeded = async { drop(give_way.wait_for(|is_told| *is_told).await) };
    match process::launch::start_spare(&shared.spawner, spec, unneeded).await {
        Ok(waiting) => Ok(Spare { waiting, installation, program_digest, since: Instant::now() }),
        Err(LaunchError::Unneeded) => Err(NotMade::GaveWay),
        Err(error) => Err(spawn::failed(&error).into()),
    }
}

fn lived_ms(spare: &Spare) -> u64 {
    millis(spare.since)
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn ended(report: &ExitReport) -> Refusal {
    let status = report.status.map_or_else(|| "status unknown".to_owned(), |status| status.to_string());
    let detail = format!("the spare ended while it waited ({status}):\n{}", report.log_tail.join("\n"));
    Refusal::new(RefusalCode::ServerStartFailed, detail)
}
