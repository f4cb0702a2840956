//! What the journal still owes of sessions that the ledger says are closed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rules::refusal::Refusal;
use store::NewEvent;

use crate::clock;
use crate::supervisor::Supervisor;

/// Most closed sessions that may owe something at once.
const MAX_OWING: usize = 1024;

/// What is to be done in the journal once that is possible.
#[derive(Debug, Clone)]
pub(crate) enum Owed {
    /// These events are to be appended.
    Events(Vec<NewEvent>),
    /// The conversation was deleted: its events are to be removed.
    Removal,
}

/// By session.
#[derive(Default)]
pub(crate) struct OwedOfClosed(Mutex<BTreeMap<String, Owed>>);

impl OwedOfClosed {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Owed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, session_id: &str, owed: Owed) {
        let mut all = self.all();
        if all.len() >= MAX_OWING {
            tracing::error!(session = session_id, "the end of a session is lost to its readers: too many are owed");
            return;
        }
        all.insert(session_id.to_owned(), owed);
    }

    /// Events that a session which is taken up again journals itself.
    pub(crate) fn take_events(&self, session_id: &str) -> Vec<NewEvent> {
        match self.all().remove(session_id) {
            Some(Owed::Events(events)) => events,
            Some(Owed::Removal) | None => Vec::new(),
        }
    }
}

impl Supervisor {
    /// Journals what closed sessions owe. One that fails holds up no other.
    ///
    /// # Errors
    /// `store_failed`: the first failure; what failed is owed still.
    pub(crate) async fn journal_owed_of_closed(&self) -> Result<(), Refusal> {
        let ids: Vec<String> = self.shared().owed_of_closed.all().keys().cloned().collect();
        let mut outcome = Ok(());
        for id in ids {
            // Not while it is attached again.
            let lock = self.shared().operation_lock(&id);
            let _alone = lock.lock().await;
            let Some(owed) = self.shared().owed_of_closed.all().get(&id).cloned() else { continue };
            let (records, key) = (&self.shared().records, id.clone());
            let written = match owed {
                Owed::Events(events) => {
                    let append = move |journal: &store::Journal| journal.append(&key, events, clock::now_ms());
                    records.write_journal("append", append).await.map(|_| ())
                }
                Owed::Removal => {
                    let remove = move |journal: &store::Journal| journal.remove_session(&key);
                    records.write_journal("remove_session", remove).await.map(|_| ())
                }
            };
            match written {
                Ok(()) => drop(self.shared().owed_of_closed.all().remove(&id)),
                Err(refusal) => outcome = outcome.and(Err(refusal)),
            }
        }
        outcome
    }
}
