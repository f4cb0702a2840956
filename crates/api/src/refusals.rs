//! What became of peers that were refused unread: a count for the status, and a line in the log that comes rarely.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rules::peer::PeerRefusal;

/// Refused peers are named in the log once in this time, with the number of those that were not.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Counted since the daemon began.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    count: u64,
    last: Option<(PeerRefusal, i64)>,
    logged: Option<Instant>,
    unsaid: u64,
}

impl Refusals {
    /// Counts one, and keeps a peer that knocks without end from filling the log. Nothing in `detail` is the peer's own word.
    pub(crate) fn note(&self, reason: PeerRefusal, detail: &str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.count += 1;
        state.last = Some((reason, session::now_ms()));
        if state.logged.is_some_and(|logged| logged.elapsed() < LOG_EVERY) {
            state.unsaid += 1;
            return;
        }
        tracing::warn!(code = reason.as_str(), detail, earlier_unsaid = state.unsaid, "a peer was refused unread");
        state.logged = Some(Instant::now());
        state.unsaid = 0;
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// What the status says of it.
    pub(crate) fn told(&self) -> api_types::RefusedPeers {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        api_types::RefusedPeers {
            count: state.count,
            last_code: state.last.map(|(reason, _)| reason.as_str().to_owned()),
            last_at: state.last.map(|(_, at_ms)| session::rfc3339(at_ms)),
        }
    }
}
