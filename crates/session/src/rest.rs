//! Quiet sessions that nobody looks at rest: they hold no stream, until somebody looks or something happens in them.
//!
//! Resting changes when something is noticed, and nothing that is decided: each decision reads the log for itself. What a
//! server does by itself meanwhile is noticed by a look every `[events] rest_read_s` ([`crate::resting_round`]), or at once
//! where the latch reports it.
//! Nor is their log held in memory: it is set aside on disk, and taken up by whatever needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent_contract::WireEvent;
use rules::refusal::Refusal;
use tokio::sync::Notify;

use crate::frames::Link;
use crate::server::VerifiedServer;
use crate::session::Session;

/// A log of so many bytes leaves memory behind that is worth giving back.
const WORTH_GIVING_BACK_BYTES: usize = 256 * 1024;

/// Who looks at a session, and when somebody did last.
pub(crate) struct Watchers {
    looked_at: Mutex<Instant>,
    waiting: AtomicUsize,
    woken: Notify,
}

/// Somebody waits for events. Dropping it is the end of that look.
pub(crate) struct Waiting(Arc<Watchers>);

impl Watchers {
    pub(crate) fn new() -> Self {
        Self { looked_at: Mutex::new(Instant::now()), waiting: AtomicUsize::new(0), woken: Notify::new() }
    }

    fn note_look(&self) {
        *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long nobody has looked; no time while somebody waits.
    pub(crate) fn unwatched(&self) -> Duration {
        if self.waiting.load(Ordering::Acquire) > 0 {
            return Duration::ZERO;
        }
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Resolves when somebody looks at a session that rests.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.note_look();
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Session {
    /// Where the log ends, of a session that may go on to rest. None if a read may have consequences, even of nothing new:
    /// also where the log is not set aside yet.
    pub(crate) fn rests_at(&self) -> Option<String> {
        let end = {
            let state = self.current();
            state.last_event_id().filter(|_| state.is_aside()).map(str::to_owned)
        };
        end.filter(|_| self.may_rest())
    }

    /// Reads a session that rests. One in which something happened is followed again.
    ///
    /// # Errors
    /// As [`Self::pull`].
    pub(crate) async fn read_at_rest(self: &Arc<Self>, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        if self.current().is_aside() && self.has_nothing_new(server).await? {
            return Ok(());
        }
        let before = self.current().last_event_id().map(str::to_owned);
        let read = self.pull(server).await;
        if self.current().last_event_id() != before.as_deref() || !self.may_rest() {
            self.note_look();
        } else if read.is_ok() {
            self.set_log_aside().await;
        }
        read
    }

    /// Whether the log still ends where it did, by one request.
    async fn has_nothing_new(&self, server: &VerifiedServer) -> Result<bool, Refusal> {
        let last = self.current().last_event_id().map(str::to_owned);
        let page = server
            .client()
            .events_page(self.id(), last.as_deref())
            .await
            .map_err(|error| crate::upstream::refusal(&error))?;
        let is_last = |event: &WireEvent| Some(event.log.event_id.as_str()) == last.as_deref();
        Ok(page.next.is_none() && page.events.iter().all(is_last))
    }

    /// Sets the log aside, unless somebody looked meanwhile. What hinders it costs memory and nothing else.
    async fn set_log_aside(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let (shared, id) = (session.shared(), session.id().as_str());
            let mut state = session.state();
            if session.frames().link() != Link::Resting || state.tripped.is_some() || state.waiting(id).is_some() {
                return Ok(None);
            }
            let bytes = state.set_aside(shared, id)?;
            if bytes >= WORTH_GIVING_BACK_BYTES {
                host::memory::give_back();
            }
            Ok::<_, std::io::Error>(Some(bytes))
        })
        .await;
        match done.map_err(std::io::Error::other).flatten() {
            Ok(Some(bytes)) => tracing::debug!(session = self.id().as_str(), bytes, "the log is set aside"),
            Ok(None) => {}
            Err(why) => tracing::debug!(session = self.id().as_str(), %why, "the log could not be set aside"),
        }
    }

    /// Somebody looks, or is about to do something: a session that rests is followed again.
    pub(crate) fn note_look(&self) {
        self.watchers().note_look();
        if self.frames().wake() {
            self.watchers().woken.notify_one();
            self.mark_stale();
        }
    }

    /// Somebody waits for events, as long as what is returned lives.
    pub(crate) fn note_waiting(&self) -> Waiting {
        let watchers = self.shared_watchers();
        watchers.waiting.fetch_add(1, Ordering::AcqRel);
        self.note_look();
        Waiting(watchers)
    }

    /// How long nobody must have looked before the session may rest.
    pub(crate) fn rests_after(&self) -> Duration {
        Duration::from_secs(self.shared().settings.events.rest_after_s)
    }

    /// Whether nothing goes on, nothing waits and nobody looks.
    pub(crate) fn may_rest(&self) -> bool {
        if self.watchers().unwatched() < self.rests_after() || self.is_busy() || self.frames().is_ahead() {
            return false;
        }
        let mut state = self.current();
        let owes = !state.owed.is_empty() || state.has_unjournaled();
        // Where the log is set aside nothing waited, and nothing came since.
        let waits = state.with_log().is_some_and(|state| state.waiting(self.id().as_str()).is_some());
        !owes && state.tripped.is_none() && !waits
    }

    /// Rests from here on, unless somebody looked meanwhile.
    pub(crate) fn begin_rest(&self) -> bool {
        self.frames().set_link(Link::Resting);
        // A look after this finds the session at rest; one before it is seen here.
        if self.may_rest() {
            return true;
        }
        // The stream stands still; what it brought meanwhile was not kept.
        self.frames().set_link(Link::Open);
        self.mark_stale();
        false
    }
}
