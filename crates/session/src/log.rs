//! What is known of a session's log: at hand, or set aside on disk while the session rests.

use std::collections::BTreeSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

use host::sealed::SetAside;
use rules::passage::{Kind, Passage, Side};
use rules::tripwire::KnownExempt;
use serde::{Deserialize, Serialize};

use crate::mirror::Mirror;
use crate::shared::Shared;
use crate::state::{Current, State};

/// What is known of the log, and of what stands in it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct KnownLog {
    pub(crate) mirror: Mirror,
    /// Events that were there before gatepost watched.
    pub(crate) baseline: BTreeSet<String>,
    /// Observations that need no accept, found so far.
    pub(crate) known_exempt: KnownExempt,
}

/// A log that was set aside.
struct Aside {
    file: SetAside,
    last_event_id: Option<String>,
}

/// The state of a session, whose log is set aside at times.
pub(crate) struct Kept {
    /// Without its log while that is set aside.
    state: State,
    aside: Option<Aside>,
}

/// The state with its log.
pub(crate) struct WithLog<'a>(MutexGuard<'a, Kept>);

/// The state as far as it can be seen without taking the log up.
pub(crate) struct WithoutLog<'a>(MutexGuard<'a, Kept>);

impl Kept {
    pub(crate) fn new(state: State) -> Self {
        Self { state, aside: None }
    }
}

impl<'a> WithLog<'a> {
    /// Takes the log up when it is set aside. One that cannot be read back is lost ([`State::lose_log`]).
    fn of(mut kept: MutexGuard<'a, Kept>, shared: &Shared, session_id: &str) -> Self {
        if let Some(aside) = kept.aside.take() {
            tracing::debug!(session = session_id, "the log is taken up");
            match take_up(&aside, shared, session_id) {
                Ok(log) => kept.state.log = log,
                Err(why) => {
                    tracing::error!(session = session_id, %why, "what was known of a log is lost; it is read anew");
                    kept.state.lose_log(&why);
                }
            }
        }
        Self(kept)
    }

    /// Sets the log aside. Returns how many bytes that took on disk.
    ///
    /// # Errors
    /// When it cannot be written; it stays at hand then.
    pub(crate) fn set_aside(mut self, shared: &Shared, session_id: &str) -> io::Result<usize> {
        let log = &self.0.state.log;
        let content = serde_json::to_vec(log).map_err(io::Error::other)?;
        let (bytes, last_event_id) = (content.len(), log.mirror.last_event_id().map(str::to_owned));
        let file = shared.sealing_key.set_aside(&shared.settings.paths.state_dir, session_id, content)?;
        self.0.aside = Some(Aside { file, last_event_id });
        self.0.state.log = KnownLog::default();
        Ok(bytes)
    }
}

impl<'a> WithoutLog<'a> {
    pub(crate) fn of(kept: MutexGuard<'a, Kept>) -> Self {
        Self(kept)
    }

    /// The same state with its log, with nobody in between.
    pub(crate) fn take_up(self, shared: &Shared, session_id: &str) -> WithLog<'a> {
        WithLog::of(self.0, shared, session_id)
    }

    /// Whether the log is set aside.
    pub(crate) fn is_aside(&self) -> bool {
        self.0.aside.is_some()
    }

    /// The event to go on reading the log from.
    pub(crate) fn last_event_id(&self) -> Option<&str> {
        match &self.0.aside {
            Some(aside) => aside.last_event_id.as_deref(),
            None => self.0.state.log.mirror.last_event_id(),
        }
    }

    /// The state with its log, when that is at hand.
    pub(crate) fn with_log(&mut self) -> Option<&mut State> {
        self.0.aside.is_none().then_some(&mut self.0.state)
    }
}

fn take_up(aside: &Aside, shared: &Shared, session_id: &str) -> io::Result<KnownLog> {
    match shared.watch.pass(Side::Before, Kind::Aside, "take_up_log") {
        Passage::GoOn => {}
        Passage::Cut => return Err(io::Error::other("it is lost")),
    }
    let content = shared.sealing_key.take_up(&aside.file, session_id)?;
    serde_json::from_slice(&content).map_err(io::Error::other)
}

impl Deref for WithLog<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0.state
    }
}

impl DerefMut for WithLog<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0.state
    }
}

impl Deref for WithoutLog<'_> {
    type Target = Current;

    fn deref(&self) -> &Current {
        &self.0.state.current
    }
}

impl DerefMut for WithoutLog<'_> {
    fn deref_mut(&mut self) -> &mut Current {
        &mut self.0.state.current
    }
}
